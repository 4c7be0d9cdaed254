-- What config.json says, in both dialects of transformers (4 and 5), by one set of names. A model takes what it needs
-- by need, get and only; check then finds what nobody took: a setting that is not built is an error that names its key.
local host = require("lm.host")

local Config = {}
Config.__index = Config

local function fail(text, ...) error(("lm: config.json: " .. text):format(...), 0) end

-- idle are keys that do not change what a model computes from tokens: book-keeping, training, defaults of generation.
local idle = {}
for key in ([[
     architectures model_type _name_or_path name_or_path transformers_version torch_dtype dtype auto_map use_cache
  id2label   label2id bos_token_id eos_token_id pad_token_id initializer_range attention_dropout hidden_dropout
  resid_pdrop embd_pdrop embedding_dropout router_aux_loss_coef output_router_logits router_jitter_noise
  aux_loss_alpha seq_aux pretraining_tp   rope_theta rope_scaling rope_parameters rope_local_base_freq
  partial_rotary_factor max_position_embeddings   quantization quantization_config chunk_size_feed_forward
  return_dict output_hidden_states output_attentions   is_encoder_decoder problem_type gradient_checkpointing
  use_bfloat16 unsloth_version unsloth_fixed max_window_layers   use_sliding_window full_attention_interval
  initial_context_length swiglu_limit ep_size num_nextn_predict_layers   mtp_num_hidden_layers
  mtp_use_dedicated_embeddings vision_config vision_start_token_id vision_end_token_id   image_token_id
  video_token_id image_token_index boi_token_index eoi_token_index mm_tokens_per_image language_model_only
  sliding_window_pattern _sliding_window_pattern layer_types cache_implementation tokenizer_class
  vision_soft_tokens_per_image   mamba_ssm_dtype attn_implementation _attn_implementation_autoset tf_legacy_loss
  torchscript pruned_heads   task_specific_params finetuning_task tie_encoder_decoder cross_attention_hidden_size
  add_cross_attention prefix   sep_token_id decoder_start_token_id tie_word_embeddings experts_per_token head_dim
  attn_output_gate is_decoder   max_length min_length do_sample temperature top_k top_p quantization_bits
  keys_to_ignore_at_inference residual_dropout
]]):gmatch("%S+") do
  idle[key] = true
end

-- new is a Config of a decoded config.json. Models for text and pictures have the settings of the text in text_config.
function Config.new(raw)
  local self = setmetatable({raw = raw, taken = {}}, Config)
  local text = raw.text_config
  if text == host.null then text = nil end
  if text ~= nil and type(text) ~= "table" then fail("text_config is a %s, want an object", type(text)) end
  self.settings = {}
  for k, v in pairs(raw) do
    if k ~= "text_config" then self.settings[k] = v end
  end
  for k, v in pairs(text or {}) do self.settings[k] = v end
  self.model_type = self:need("model_type")
  return self
end

-- read decodes the config.json of a directory.
function Config.read(dir)
  local path = dir .. "/config.json"
  local f, why = io.open(path, "rb")
  if not f then error(("lm: %s is no model directory: %s"):format(dir, why), 0) end
  local text = f:read("*a")
  f:close()
  local raw, wrong = host.decode(text)
  if not raw then error(("lm: %s: %s"):format(path, wrong), 0) end
  return Config.new(raw)
end

-- get is a setting, or the default where there is none; null is none.
function Config:get(key, default)
  self.taken[key] = true
  local v = self.settings[key]
  if v == nil or v == host.null then return default end
  if type(v) == "string" and tonumber(v) then fail("%s is the text %q, want a number", key, v) end
  if default ~= nil and type(v) ~= type(default) then
    fail("%s is a %s, want a %s", key, type(v), type(default))
  end
  return v
end

-- need is a setting that must be there, under one of the names.
function Config:need(key, ...)
  local v
  for _, name in ipairs{key, ...} do
    local found = self:get(name)
    if v == nil then v = found end
  end
  if v == nil then fail("%s is missing", key) end
  return v
end

-- only is a setting of which the given values are built; the first is the default.
function Config:only(key, ...)
  local v, known = self:get(key), {...}
  if v == nil then return known[1] end
  for _, k in ipairs(known) do
    if v == k then return v end
    known[_] = tostring(k)
  end
  fail("%s = %s is not built; these are: %s", key, tostring(v), table.concat(known, ", "))
end

-- act is the activation function that a key names.
function Config:act(key, default)
  local nn = require("mx.nn")
  local v = self:get(key, default or "silu")
  local known = {silu = nn.silu, swish = nn.silu, gelu = nn.gelu, gelu_pytorch_tanh = nn.gelu_approx,
    gelu_new = nn.gelu_approx, relu = nn.relu}
  if not known[v] then fail("%s = %s is not built; these are: silu, gelu, gelu_pytorch_tanh, relu", key, v) end
  return known[v]
end

-- layer_types is the type of each layer: as listed, or by every(i), i from 1.
function Config:layer_types(count, every)
  local list = self:get("layer_types")
  if list and #list < count then fail("layer_types has %d entries for %d layers", #list, count) end
  local out = {}
  for i = 1, count do out[i] = list and list[i] or every(i) end
  return out
end

-- rope_keys are what rotary settings can say.
local rope_keys = {}
for key in ([[rope_type type rope_theta factor low_freq_factor high_freq_factor original_max_position_embeddings
  max_position_embeddings beta_fast beta_slow attention_factor mscale mscale_all_dim truncate short_factor long_factor
  partial_rotary_factor mrope_section mrope_interleaved finetuned factors]]):gmatch("%S+") do
  rope_keys[key] = true
end

-- rotary copies rotary settings: what they say and rope_keys do not have is an error.
local function rotary(key, settings)
  if type(settings) ~= "table" then fail("%s is a %s, want an object", key, type(settings)) end
  local out = {}
  for k, v in pairs(settings) do
    if not rope_keys[k] then fail("%s.%s is not built", key, tostring(k)) end
    if type(v) == "string" and tonumber(v) then fail("%s.%s is the text %q, want a number", key, k, v) end
    if v ~= host.null then out[k] = v end
  end
  return out
end

-- rope is what config says of rotary embeddings, {rope_type, rope_theta, ...}, for layers of a type where it differs by
-- type. transformers 5 has all of it in rope_parameters, 4 in rope_theta and rope_scaling.
function Config:rope(layer_type, theta_key, default)
  local nested = self:get("rope_parameters")
  local out = {}
  if nested then
    out = rotary("rope_parameters", type(nested) == "table" and layer_type and nested[layer_type] or nested)
  else
    if theta_key ~= "rope_local_base_freq" then out = rotary("rope_scaling", self:get("rope_scaling", {})) end
    out.rope_theta = self:get(theta_key or "rope_theta")
  end
  out.rope_type = out.rope_type or out.type or "default"
  out.rope_theta = out.rope_theta or default or self:get("rope_theta", 10000)
  out.partial_rotary_factor = out.partial_rotary_factor or self:get("partial_rotary_factor")
  out.max_position_embeddings = self:get("max_position_embeddings")
  local original = self:get("original_max_position_embeddings")
  out.original_max_position_embeddings = out.original_max_position_embeddings or original
  return out
end

-- portable is config.json with the keys of both dialects, for programs that know one of them, and with what they take
-- for granted in different ways: tied says whether the scores come from the embedding.
function Config:portable(tied)
  local out = {}
  for k, v in pairs(self.raw) do out[k] = v end
  local into = out
  if out.text_config then
    into = {}
    for k, v in pairs(out.text_config) do into[k] = v end
    out.text_config = into
  end
  local function set(key, value)
    if into[key] == nil and value ~= nil and value ~= host.null then into[key] = value end
  end
  set("tie_word_embeddings", tied)
  local rope = into.rope_parameters
  if rope and rope.full_attention then
    set("rope_theta", rope.full_attention.rope_theta)
    set("rope_local_base_freq", rope.sliding_attention and rope.sliding_attention.rope_theta)
    rope = rope.full_attention
  elseif rope then
    set("rope_theta", rope.rope_theta)
    set("partial_rotary_factor", rope.partial_rotary_factor)
  end
  if rope and (rope.rope_type or "default") ~= "default" then
    local scaling = {type = rope.rope_type} -- its older name
    for k, v in pairs(rope) do scaling[k] = v end
    set("rope_scaling", scaling)
    set("original_max_position_embeddings", rope.original_max_position_embeddings)
  end
  set("sliding_window_pattern", into._sliding_window_pattern)
  if self.model_type:match("^qwen3") then
    set("num_experts", into.num_local_experts)
    if not out.text_config then out.model_type = out.model_type:gsub("^(qwen3_5.*)_text$", "%1") end
  end
  return out
end

-- check fails for settings that nobody took and that ask for something.
function Config:check()
  local out = {}
  for k, v in pairs(self.settings) do
    local asks = v ~= host.null and v ~= false and not (type(v) == "table" and next(v) == nil)
    if asks and not self.taken[k] and not idle[k] and k:sub(1, 1) ~= "_" then out[#out + 1] = k end
  end
  table.sort(out)
  if #out > 0 then
    fail("%s asks for something that %s models do not have here: %s", table.concat(out, ", "), self.model_type,
      "lm.load(dir, {ignore = {...}}) leaves keys out of account")
  end
end

-- ignore takes keys out of account.
function Config:ignore(keys)
  for _, k in ipairs(keys or {}) do self.taken[k] = true end
end

return Config
