-- What transformers takes for granted where config.json leaves a key out, by model_type. A test compares this with its
-- classes, which luabind/testdata/lm/defaults.py reads.

local sizes = {"vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
  "num_key_value_heads", "head_dim", "max_position_embeddings"}

-- family is the defaults of a family: its sizes in that order, "-" for none, and what it has beside them or in which it
-- differs from most. What is false or null is left out where it is the same as nothing.
local function family(numbers, more)
  local out, i = {hidden_act = "silu", rms_norm_eps = 1e-6, rope_theta = 10000}, 0
  for n in numbers:gmatch("%S+") do
    i = i + 1
    out[sizes[i]] = tonumber(n)
  end
  for k, v in pairs(more or {}) do out[k] = v end
  return out
end

local families = {
  cohere = family("256000 8192 22528 40 64 - - 8192", {
    logit_scale = 0.0625, layer_norm_eps = 1e-5, tie_word_embeddings = true, rope_theta = 500000}),
  cohere2 = family("256000 8192 22528 40 64 - - 8192", {
    logit_scale = 0.0625, layer_norm_eps = 1e-5, tie_word_embeddings = true, sliding_window = 4096}),
  deepseek_v3 = family("129280 7168 18432 61 128 128 - 4096", {
    moe_intermediate_size = 2048, n_shared_experts = 1, n_routed_experts = 256, routed_scaling_factor = 2.5,
    kv_lora_rank = 512, q_lora_rank = 1536, qk_rope_head_dim = 64, v_head_dim = 128, qk_nope_head_dim = 128,
    n_group = 8, topk_group = 4, num_experts_per_tok = 8, first_k_dense_replace = 3, norm_topk_prob = true,
    rope_interleave = true}),
  ernie4_5 = family("103424 1024 3072 18 16 2 128 131072", {
    rms_norm_eps = 1e-5, tie_word_embeddings = true, rope_theta = 500000}),
  gemma = family("256000 3072 24576 28 16 16 256 8192", {
    hidden_act = "gelu_pytorch_tanh", tie_word_embeddings = true}),
  gemma2 = family("256000 2304 9216 26 8 4 256 8192", {
    hidden_activation = "gelu_pytorch_tanh", tie_word_embeddings = true, query_pre_attn_scalar = 256,
    sliding_window = 4096, final_logit_softcapping = 30, attn_logit_softcapping = 50}),
  gemma3_text = family("262208 2304 9216 26 8 4 256 131072", {
    hidden_activation = "gelu_pytorch_tanh", tie_word_embeddings = true, query_pre_attn_scalar = 256,
    sliding_window = 4096, rope_theta = 1000000, rope_local_base_freq = 10000}),
  gemma3n_text = family("262400 2048 16384 35 8 2 256 32768", {
    hidden_activation = "gelu_pytorch_tanh", tie_word_embeddings = true, sliding_window = 512,
    final_logit_softcapping = 30, rope_theta = 1000000, rope_local_base_freq = 10000,
    altup_active_idx = 0, altup_coef_clip = 120,
    altup_correct_scale = true, altup_num_inputs = 4, num_kv_shared_layers = 15, laurel_rank = 64,
    vocab_size_per_layer_input = 262144, hidden_size_per_layer_input = 256}),
  gemma4_text = family("262144 2304 9216 30 8 4 256 131072", {
    hidden_activation = "gelu_pytorch_tanh", tie_word_embeddings = true, sliding_window = 512,
    vocab_size_per_layer_input = 262144, hidden_size_per_layer_input = 256, num_kv_shared_layers = 0,
    rope_parameters = {
      sliding_attention = {rope_type = "default", rope_theta = 10000},
      full_attention = {rope_type = "proportional", rope_theta = 1000000, partial_rotary_factor = 0.25}}}),
  glm = family("151552 4096 13696 40 32 2 128 131072", {
    rms_norm_eps = 1.5625e-7, attention_bias = true, partial_rotary_factor = 0.5}),
  glm4 = family("151552 4096 13696 40 32 2 128 131072", {
    rms_norm_eps = 1.5625e-7, attention_bias = true, partial_rotary_factor = 0.5}),
  glm4_moe = family("151552 4096 10944 46 96 8 - 131072", {
    rms_norm_eps = 1e-5, moe_intermediate_size = 1408, num_experts_per_tok = 8, n_shared_experts = 1,
    n_routed_experts = 128, routed_scaling_factor = 1, n_group = 1, topk_group = 1, first_k_dense_replace = 1,
    norm_topk_prob = true, partial_rotary_factor = 0.5}),
  glm4_moe_lite = family("154880 2048 10240 47 20 20 - 202752", {
    rms_norm_eps = 1e-5, moe_intermediate_size = 1536, n_shared_experts = 1, n_routed_experts = 64,
    routed_scaling_factor = 1.8, kv_lora_rank = 512, q_lora_rank = 768, qk_rope_head_dim = 64, v_head_dim = 256,
    qk_nope_head_dim = 192, n_group = 1, topk_group = 1, num_experts_per_tok = 4, norm_topk_prob = true,
    rope_interleave = true}),
  gpt2 = {vocab_size = 50257, n_positions = 1024, n_embd = 768, n_layer = 12, n_head = 12, layer_norm_epsilon = 1e-5,
    activation_function = "gelu_new", scale_attn_weights = true, summary_type = "cls_index", summary_use_proj = true,
    summary_proj_to_labels = true, summary_first_dropout = 0.1, tie_word_embeddings = true},
  gpt_neox = family("50432 6144 24576 44 64 - - 2048", {
    hidden_act = "gelu", layer_norm_eps = 1e-5, attention_bias = true, use_parallel_residual = true,
    partial_rotary_factor = 0.25, classifier_dropout = 0.1}),
  granitemoehybrid = family("32000 4096 11008 32 32 - - 2048", {
    embedding_multiplier = 1, logits_scaling = 1, residual_multiplier = 1, attention_multiplier = 1,
    num_local_experts = 8, num_experts_per_tok = 2, shared_intermediate_size = 1024, mamba_n_heads = 128,
    mamba_n_groups = 1, mamba_d_state = 256, mamba_d_head = "auto", mamba_d_conv = 4, mamba_expand = 2,
    mamba_chunk_size = 256, mamba_conv_bias = true}),
  lfm2 = family("65536 2560 12288 32 32 8 - 128000", {
    norm_eps = 1e-5, tie_word_embeddings = true, conv_L_cache = 3, block_multiple_of = 256,
    block_ffn_dim_multiplier = 1, block_auto_adjust_ff_dim = true, rope_theta = 1000000}),
  lfm2_moe = family("65536 2048 7168 32 32 8 - 128000", {
    norm_eps = 1e-5, tie_word_embeddings = true, conv_L_cache = 3, moe_intermediate_size = 1792, num_dense_layers = 2,
    num_experts_per_tok = 4, num_experts = 32, use_expert_bias = true, routed_scaling_factor = 1,
    norm_topk_prob = true, rope_theta = 1000000}),
  mamba2 = {num_heads = 128, head_dim = 64, vocab_size = 32768, hidden_size = 4096, state_size = 128,
    num_hidden_layers = 64, layer_norm_epsilon = 1e-5, expand = 2, conv_kernel = 4, n_groups = 8, use_conv_bias = true,
    hidden_act = "silu", residual_in_fp32 = true, time_step_rank = "auto", time_step_min = 0.001, time_step_max = 0.1,
    time_step_floor = 1e-4, chunk_size = 256},
  minimax_m2 = family("200064 3072 1536 62 48 8 128 196608", {
    num_experts_per_tok = 8, num_local_experts = 256, rope_theta = 5000000, partial_rotary_factor = 1}),
  nemotron_h = {vocab_size = 131072, hidden_size = 4096, num_attention_heads = 32, num_key_value_heads = 8,
    head_dim = 128, max_position_embeddings = 4096, intermediate_size = 21504, mlp_hidden_act = "relu2",
    use_mamba_kernels = true, ssm_state_size = 128, mamba_num_heads = 128, mamba_head_dim = 64,
    mamba_hidden_act = "silu", n_groups = 8, conv_kernel = 4, expand = 2, time_step_min = 0.001, time_step_max = 0.1,
    time_step_floor = 1e-4, use_conv_bias = true, chunk_size = 128, mamba_ssm_cache_dtype = "float32",
    n_routed_experts = 8, n_shared_experts = 1, moe_intermediate_size = 7688,
    moe_shared_expert_intermediate_size = 7688, moe_shared_expert_overlap = true, num_experts_per_tok = 2,
    routed_scaling_factor = 1, n_group = 1, topk_group = 1, norm_topk_prob = true, layer_norm_epsilon = 1e-5,
    rescale_prenorm_residual = true, num_logits_to_keep = 1},
  olmo3 = family("50304 4096 11008 32 32 - - 2048", {
    rms_norm_eps = 1e-5, rope_theta = 500000, rope_local_base_freq = 500000, sliding_window = 4096}),
  olmoe = family("50304 2048 2048 16 16 - - 4096", {rms_norm_eps = 1e-5, num_experts_per_tok = 8, num_experts = 64}),
  phi = family("51200 2048 8192 24 32 - - 2048", {
    hidden_act = "gelu_new", layer_norm_eps = 1e-5, partial_rotary_factor = 0.5}),
  exaone4 = family("102400 4096 16384 32 32 32 - 2048", {
    rms_norm_eps = 1e-5, sliding_window = 4096, sliding_window_pattern = 4}),
  ernie4_5_moe = family("103424 2560 12288 28 20 4 - 131072", {
    rms_norm_eps = 1e-5, tie_word_embeddings = true, moe_intermediate_size = 1536, moe_k = 6, moe_num_experts = 64,
    moe_num_shared_experts = 2, moe_layer_start_index = 1, moe_layer_end_index = -1, moe_layer_interval = 1,
    moe_norm_min = 1e-12, rope_theta = 500000}),
  deepseek_v2 = family("102400 4096 11008 32 32 - - 2048", {
    first_k_dense_replace = 0, kv_lora_rank = 512, q_lora_rank = 1536, n_routed_experts = 64, n_shared_experts = 2,
    qk_nope_head_dim = 128, qk_rope_head_dim = 64, routed_scaling_factor = 1, topk_method = "greedy",
    v_head_dim = 128, moe_intermediate_size = 1407}),
  gpt_oss = family("201088 2880 2880 36 64 8 64 131072", {
    num_local_experts = 128, sliding_window = 128, rms_norm_eps = 1e-5, num_experts_per_tok = 4, swiglu_alpha = 1.702,
    swiglu_limit = 7, attention_bias = true, rope_theta = 150000,
    rope_parameters = {rope_type = "yarn", factor = 32, beta_fast = 32, beta_slow = 1, truncate = false,
      original_max_position_embeddings = 4096}}),
  granite = family("32000 4096 11008 32 32 - - 2048", {
    embedding_multiplier = 1, logits_scaling = 1, residual_multiplier = 1, attention_multiplier = 1}),
  llama = family("32000 4096 11008 32 32 - - 2048"),
  llama4_text = family("202048 5120 8192 48 40 8 128 131072", {
    rms_norm_eps = 1e-5, intermediate_size_mlp = 16384, num_experts_per_tok = 1, num_local_experts = 16,
    interleave_moe_layer_step = 1, use_qk_norm = true, no_rope_layer_interval = 4, attention_chunk_size = 8192,
    attn_temperature_tuning = true, floor_scale = 8192, attn_scale = 0.1, rope_theta = 500000}),
  ministral3 = family("131072 4096 14336 34 32 8 128 262144", {
    rms_norm_eps = 1e-5, rope_parameters = {rope_type = "yarn", rope_theta = 1000000, factor = 16, beta_fast = 32,
      beta_slow = 1, mscale_all_dim = 1, mscale = 1, llama_4_scaling_beta = 0.1,
      original_max_position_embeddings = 16384, max_position_embeddings = 262144}}),
  mistral = family("32000 4096 14336 32 32 8 - 131072", {sliding_window = 4096}),
  mixtral = family("32000 4096 14336 32 32 8 - 131072", {
    rms_norm_eps = 1e-5, num_experts_per_tok = 2, num_local_experts = 8, rope_theta = 1000000}),
  olmo2 = family("50304 4096 11008 32 32 - - 2048", {rms_norm_eps = 1e-5}),
  phi3 = family("32064 3072 8192 32 32 - - 4096", {
    original_max_position_embeddings = 4096, rms_norm_eps = 1e-5, partial_rotary_factor = 1}),
  qwen2 = family("151936 4096 22016 32 32 32 - 32768", {sliding_window = 4096, max_window_layers = 28}),
  qwen2_moe = family("151936 2048 5632 24 16 16 - 32768", {
    sliding_window = 4096, max_window_layers = 28, decoder_sparse_step = 1, moe_intermediate_size = 1408,
    shared_expert_intermediate_size = 5632, num_experts_per_tok = 4, num_experts = 60, qkv_bias = true}),
  qwen3 = family("151936 4096 22016 32 32 32 128 32768", {sliding_window = 4096, max_window_layers = 28}),
  qwen3_moe = family("151936 2048 6144 24 32 4 - 32768", {
    sliding_window = 4096, decoder_sparse_step = 1, moe_intermediate_size = 768, num_experts_per_tok = 8,
    num_experts = 128}),
  qwen2_vl_text = family("152064 8192 29568 80 64 8 - 32768", {
    rms_norm_eps = 1e-5, sliding_window = 4096, max_window_layers = 80, rope_theta = 1000000}),
  qwen3_vl_text = family("151936 4096 22016 32 32 32 128 128000", {rope_theta = 500000}),
  qwen3_vl_moe_text = family("151936 2048 5632 24 16 16 - 128000", {
    tie_word_embeddings = true, decoder_sparse_step = 1, moe_intermediate_size = 1408, num_experts_per_tok = 4,
    num_experts = 60, rope_theta = 500000}),
  qwen3_next = family("151936 2048 5632 48 16 2 256 32768", {
    linear_conv_kernel_dim = 4, linear_key_head_dim = 128, linear_value_head_dim = 128, linear_num_key_heads = 16,
    linear_num_value_heads = 32, decoder_sparse_step = 1, moe_intermediate_size = 512,
    shared_expert_intermediate_size = 512, num_experts_per_tok = 10, num_experts = 512, norm_topk_prob = true,
    partial_rotary_factor = 0.25}),
  qwen3_5_text = family("248320 4096 12288 32 16 4 256 32768", {
    linear_conv_kernel_dim = 4, linear_key_head_dim = 128, linear_value_head_dim = 128, linear_num_key_heads = 16,
    linear_num_value_heads = 32, partial_rotary_factor = 0.25}),
  qwen3_5_moe_text = family("248320 2048 - 40 16 2 256 32768", {
    linear_conv_kernel_dim = 4, linear_key_head_dim = 128, linear_value_head_dim = 128, linear_num_key_heads = 16,
    linear_num_value_heads = 32, moe_intermediate_size = 512, shared_expert_intermediate_size = 512,
    num_experts_per_tok = 8, num_experts = 256, partial_rotary_factor = 0.25}),
  seed_oss = family("155136 4096 27648 64 80 8 128 524288", {attention_bias = true, attention_out_bias = false}),
  smollm3 = family("128256 2048 11008 36 16 4 - 32768", {
    no_rope_layer_interval = 4, tie_word_embeddings = true, rope_theta = 2000000}),
  stablelm = family("50304 2560 6912 32 32 32 - 4096", {layer_norm_eps = 1e-5, partial_rotary_factor = 0.25}),
  starcoder2 = family("49152 3072 12288 30 24 2 - 4096", {
    hidden_act = "gelu_pytorch_tanh", norm_epsilon = 1e-5, use_bias = true, tie_word_embeddings = true}),
}
families.llama4, families.mistral3, families.qwen2_5_vl_text = families.llama4_text, families.mistral,
  families.qwen2_vl_text
families.qwen2_vl, families.qwen2_5_vl = families.qwen2_vl_text, families.qwen2_vl_text
families.qwen3_vl, families.qwen3_vl_moe = families.qwen3_vl_text, families.qwen3_vl_moe_text
families.gemma3n, families.gemma4 = families.gemma3n_text, families.gemma4_text
families.gemma3, families.qwen3_5 = families.gemma3_text, families.qwen3_5_text
families.qwen3_5_moe = families.qwen3_5_moe_text

return families
