-- Which keys of config.json ask for something that changes what a model computes from tokens, where no script reads
-- them. transformers passes over what it does not know; here that is an error, unless a key is one of these.
local host = require("lm.host")

local keys = {}

-- idle are keys of book-keeping, training and programs, of how text is chosen, and those that belong to others. All
-- that transformers' classes of settings have in common is among them.
local idle = {}
for key in ([[
  architectures model_type name_or_path model_name transformers_version torch_dtype dtype auto_map use_cache id2label
  label2id num_labels problem_type task_specific_params finetuning_task tokenizer_class prefix is_encoder_decoder
  is_decoder cross_attention_hidden_size add_cross_attention tie_encoder_decoder pruned_heads torchscript
  use_bfloat16 tf_legacy_loss return_dict output_hidden_states output_attentions output_router_logits
  chunk_size_feed_forward keys_to_ignore_at_inference attn_implementation experts_implementation

  assistant_confidence_threshold assistant_early_exit assistant_lookbehind bad_words_ids begin_suppress_tokens
  cache_implementation diversity_penalty do_sample early_stopping encoder_no_repeat_ngram_size
  encoder_repetition_penalty epsilon_cutoff eta_cutoff exponential_decay_length_penalty guidance_scale length_penalty
  max_length max_new_tokens min_length min_p no_repeat_ngram_size num_assistant_tokens num_assistant_tokens_schedule
  num_beam_groups num_beams num_return_sequences output_scores penalty_alpha remove_invalid_values
  repetition_penalty return_dict_in_generate suppress_tokens target_lookbehind temperature top_k top_p typical_p

  aux_loss_alpha seq_aux ep_size pretraining_tp router_jitter_noise gradient_checkpointing neftune_noise_alpha
  use_reentrant_checkpointing transformers.js_config unsloth_version unsloth_fixed model_max_length seq_length
  max_sequence_length tokenizer_model_max_length tokenizer_padding_side use_parallel_embedding initial_context_length

  num_nextn_predict_layers num_mtp_layers vision_config audio_config mm_tokens_per_image language_model_only
  vision_soft_tokens_per_image mamba_ssm_dtype quantization quantization_config quantization_bits
  max_position_embeddings max_window_layers
]]):gmatch("%S+") do
  idle[key] = true
end

-- patterns are names of such keys.
local patterns = {"^_", "_token_ids?$", "_token_index$", "dropout", "pdrop$", "_loss_", "_loss$", "^initializer_",
  "^init_std$", "_init_std$", "flash_attn", "flash_attention", "^mtp_", "^is_%w+_config$"}

-- factor says whether a key is a factor, by its name: one of 1 does nothing.
local function factor(key)
  for _, last in ipairs{"factor", "multiplier", "scaling", "scale", "pct", "ratio", "mod"} do
    if key:match("_" .. last .. "$") then return true end
  end
  return false
end

-- asks says whether a setting that nobody read may change what a model computes: not where there is nothing in it, or
-- it is false or 0, or a factor of 1, or its key is one of those above.
function keys.asks(key, value)
  if value == host.null or value == false or value == 0 or value == "" then return false end
  if type(value) == "table" and next(value) == nil then return false end
  if idle[key] or value == 1 and factor(key) then return false end
  for _, p in ipairs(patterns) do
    if key:match(p) then return false end
  end
  return true
end

return keys
