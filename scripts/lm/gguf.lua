-- GGUF files, as llama.cpp has them: names of weights and settings become those of transformers.
local mx = require("mx")
local most_layers = require("lm.config").most_layers

local gguf = {}

local function fail(text, ...) error(("lm: " .. text):format(...), 0) end

-- types are config.json's model_type by GGUF's architecture.
local types = {llama = "llama", qwen2 = "qwen2", qwen2moe = "qwen2_moe", qwen3 = "qwen3", qwen3moe = "qwen3_moe",
  gemma = "gemma", gemma2 = "gemma2", gemma3 = "gemma3_text", phi3 = "phi3", granite = "granite", olmo2 = "olmo2",
  smollm3 = "smollm3", glm4 = "glm4", cohere2 = "cohere2", ["command-r"] = "cohere", seed_oss = "seed_oss",
  starcoder2 = "starcoder2", stablelm = "stablelm"}
-- norms are config.json's names of what is added to a variance, in architectures whose norms are around the mean.
local norms = {["command-r"] = "layer_norm_eps", cohere2 = "layer_norm_eps", stablelm = "layer_norm_eps",
  starcoder2 = "norm_epsilon"}
local permuted = {llama = true, granite = true, smollm3 = true} -- see unpermuted

local names = {
  ["token_embd"] = "model.embed_tokens", ["output_norm"] = "model.norm", ["output"] = "lm_head",
}
local inner = {
  attn_norm = "input_layernorm", attn_q = "self_attn.q_proj", attn_k = "self_attn.k_proj", attn_v = "self_attn.v_proj",
  attn_output = "self_attn.o_proj", attn_q_norm = "self_attn.q_norm", attn_k_norm = "self_attn.k_norm",
  attn_qkv = "self_attn.qkv_proj", ffn_norm = "post_attention_layernorm", ffn_gate = "mlp.gate_proj",
  ffn_up = "mlp.up_proj", ffn_down = "mlp.down_proj", ffn_gate_inp = "mlp.gate",
  ffn_gate_exps = "mlp.switch_mlp.gate_proj", ffn_up_exps = "mlp.switch_mlp.up_proj",
  ffn_down_exps = "mlp.switch_mlp.down_proj", ffn_gate_inp_shexp = "mlp.shared_expert_gate",
  ffn_gate_shexp = "mlp.shared_expert.gate_proj", ffn_up_shexp = "mlp.shared_expert.up_proj",
  ffn_down_shexp = "mlp.shared_expert.down_proj",
}
-- others are the names in which an architecture differs.
local others = {
  gemma2 = {post_attention_norm = "post_attention_layernorm", ffn_norm = "pre_feedforward_layernorm",
    post_ffw_norm = "post_feedforward_layernorm"},
  phi3 = {ffn_up = "mlp.gate_up_proj"},
  olmo2 = {post_attention_norm = "post_attention_layernorm", post_ffw_norm = "post_feedforward_layernorm"},
  starcoder2 = {ffn_up = "mlp.c_fc", ffn_down = "mlp.c_proj"},
  seed_oss = {post_attention_norm = "post_attention_layernorm"},
  glm4 = {post_attention_norm = "post_self_attn_layernorm", ffn_up = "mlp.gate_up_proj",
    post_ffw_norm = "post_mlp_layernorm"},
  llama = {ffn_gate_inp = "block_sparse_moe.gate", ffn_gate_exps = "block_sparse_moe.switch_mlp.gate_proj",
    ffn_up_exps = "block_sparse_moe.switch_mlp.up_proj", ffn_down_exps = "block_sparse_moe.switch_mlp.down_proj"},
}
others.gemma3 = others.gemma2

-- renamed is a weight's name in transformers' files; nil: it is not one.
local function renamed(name, arch)
  local base, kind = name:match("^(.*)%.(%a+)$")
  if not base then return nil end
  local i, what = base:match("^blk%.(%d+)%.(.+)$")
  what = what and (others[arch] and others[arch][what] or inner[what])
  local new = names[base] or what and ("model.layers.%s.%s"):format(i, what)
  return new and new .. "." .. kind
end

-- unpermuted undoes what llama.cpp does to the rows of Llama's queries and keys: it puts the halves of a head's pairs
-- beside each other.
local function unpermuted(x, heads)
  return x:unflatten(0, {heads, -1, 2}):swapaxes(1, 2):flatten(0, 2)
end

local function item(about, key)
  local v = about[key]
  if mx.type(v) == "array" then return v.size == 1 and v:item() or v:tolist() end
  return v
end

-- more(out, get, arrays) is what an architecture has beside what all have: get reads the file's settings, out has those
-- of all, arrays are the weights.
local more = {}

function more.qwen2moe(out, get)
  out.norm_topk_prob, out.qkv_bias = false, true
  out.shared_expert_intermediate_size = get("expert_shared_feed_forward_length")
end

function more.qwen3moe(out) out.norm_topk_prob = true end

-- the files of Mixtral say llama, as those of Mistral do
function more.llama(out)
  if out.num_experts then
    out.model_type, out.num_local_experts = "mixtral", out.num_experts
    out.num_experts, out.mlp_only_layers = nil, nil
  elseif out.sliding_window then
    out.model_type = "mistral"
  end
end

function more.granite(out, get)
  out.attention_multiplier, out.embedding_multiplier = get("attention.scale"), get("embedding_scale")
  out.residual_multiplier, out.logits_scaling = get("residual_scale"), get("logit_scale")
end

function more.smollm3(out) out.no_rope_layer_interval = 4 end

function more.cohere2(out, get) out.logit_scale = get("logit_scale") end

more["command-r"] = function(out, get, arrays)
  more.cohere2(out, get)
  out.use_qk_norm = arrays["model.layers.0.self_attn.q_norm.weight"] ~= nil
end

function more.starcoder2(out)
  out.use_bias, out.hidden_act = out.attention_bias, "gelu_pytorch_tanh"
  out.attention_bias, out.attention_out_bias, out.mlp_bias = nil, nil, nil
end

-- what the files say in use_parallel_residual is true, too, where config.json did not say it
function more.stablelm(out, _, arrays)
  out.use_qkv_bias, out.attention_bias = out.attention_bias, nil
  out.use_parallel_residual = arrays["model.layers.0.post_attention_layernorm.weight"] == nil
end

-- the files have 1 + the weight of a norm
function more.gemma(out, _, arrays)
  out.hidden_activation = "gelu_pytorch_tanh"
  for name, x in pairs(arrays) do
    if name:match("norm%.weight$") then arrays[name] = x - 1 end
  end
end

function more.gemma2(out, get, arrays, biggest)
  more.gemma(out, get, arrays)
  out.attn_logit_softcapping = get("attn_logit_softcapping") or 50
  out.final_logit_softcapping = get("final_logit_softcapping") or 30
  -- the files do not say it, but for the biggest model of the family it is another
  out.query_pre_attn_scalar = out.num_hidden_layers == (biggest or 46) and out.hidden_size / out.num_attention_heads
    or out.head_dim
end

function more.gemma3(out, get, arrays)
  more.gemma2(out, get, arrays, 62)
  out.attn_logit_softcapping, out.final_logit_softcapping = nil, nil
  out.rope_local_base_freq = get("rope.freq_base_swa") or 10000
end

-- config is what config.json would say; arch is the architecture.
local function config(arch, about, arrays)
  local function get(key) return item(about, arch .. "." .. key) end
  local function need(key)
    local v = get(key)
    if v == nil then fail("the GGUF file has no %s.%s", arch, key) end
    return v
  end
  local heads, hidden = need("attention.head_count"), need("embedding_length")
  local layers = need("block_count")
  if type(layers) ~= "number" or layers > most_layers then
    fail("the GGUF file has %s layers, want at most %d", tostring(layers), most_layers)
  end
  local first = "model.layers.0.self_attn."
  local size, turned = get("attention.key_length") or hidden / heads, get("rope.dimension_count")
  local out = {
    model_type = types[arch], hidden_size = hidden, num_hidden_layers = layers,
    num_attention_heads = heads, num_key_value_heads = get("attention.head_count_kv") or heads,
    head_dim = size, partial_rotary_factor = turned and turned / size or 1,
    intermediate_size = need("feed_forward_length"),
    max_position_embeddings = get("context_length"),
    [norms[arch] or "rms_norm_eps"] = need(norms[arch] and "attention.layer_norm_epsilon" or
      "attention.layer_norm_rms_epsilon"),
    vocab_size = arrays["model.embed_tokens.weight"]:dim(0), rope_theta = get("rope.freq_base") or 10000,
    num_experts = get("expert_count"), num_experts_per_tok = get("expert_used_count"),
    moe_intermediate_size = get("expert_feed_forward_length"), sliding_window = get("attention.sliding_window"),
    tie_word_embeddings = arrays["lm_head.weight"] == nil,
    attention_bias = arrays[first .. "q_proj.bias"] ~= nil, attention_out_bias = arrays[first .. "o_proj.bias"] ~= nil,
    mlp_bias = arrays["model.layers.0.mlp.up_proj.bias"] ~= nil,
    bos_token_id = item(about, "tokenizer.ggml.bos_token_id"),
  }
  for _, key in ipairs{"eos_token_id", "eot_token_id"} do
    out.eos_token_id = out.eos_token_id or {}
    table.insert(out.eos_token_id, item(about, "tokenizer.ggml." .. key))
  end
  if out.num_experts then
    out.mlp_only_layers = {}
    for i = 0, out.num_hidden_layers - 1 do
      if not arrays[("model.layers.%d.mlp.gate.weight"):format(i)] then table.insert(out.mlp_only_layers, i) end
    end
  end
  local scaling = get("rope.scaling.type")
  if scaling and scaling ~= "none" then
    out.rope_scaling = {rope_type = scaling, factor = get("rope.scaling.factor"),
      original_max_position_embeddings = get("rope.scaling.original_context_length"),
      attention_factor = get("rope.scaling.attn_factor")}
  end
  if more[arch] then more[arch](out, get, arrays) end
  return out
end

-- factors are what a file has of rotary factors, an array for each: llama3's, or longrope's two lists.
local function factors(c, found, about, arch)
  local all, short, long = found["rope_freqs.weight"], found["rope_factors_short.weight"],
    found["rope_factors_long.weight"]
  if all then c.rope_scaling = {rope_type = "factors", factors = all:tolist()} end
  if long then
    c.rope_scaling = {rope_type = "longrope", short_factor = (short or long):tolist(), long_factor = long:tolist(),
      attention_factor = item(about, arch .. ".rope.scaling.attn_factor"),
      original_max_position_embeddings = item(about, arch .. ".rope.scaling.original_context_length")}
  end
end

-- packing is config.json's quantization for what the file has packed; modes are those of blocks by names of arrays.
local function packing(arrays, modes)
  local out = {group_size = 32, bits = 4}
  for name, mode in pairs(modes) do out[name:gsub("%.weight$", "")] = {mode = mode} end
  for name, scales in pairs(arrays) do
    local path = name:match("^(.*)%.scales$")
    if path then
      local mode = arrays[path .. ".biases"] and "affine" or "mxfp4"
      local bits = arrays[path .. ".weight"]:dim(-1) / scales:dim(-1)
      out[path] = {group_size = 32, bits = bits, mode = mode}
    end
  end
  return out
end

-- load opens a GGUF file: its arrays by transformers' names, what config.json would say, and the file's own settings.
-- Where blocks is false, what is packed becomes what mlx-lm knows, too, or float16: see mx.load.
function gguf.load(file, blocks)
  blocks = blocks ~= false
  local found, about, modes = mx.load(file, {format = "gguf", return_metadata = true, blocks = blocks})
  local arch = about["general.architecture"]
  if not types[arch] then
    local known = {}
    for name in pairs(types) do known[#known + 1] = name end
    table.sort(known)
    fail("general.architecture = %s of a GGUF file is not built; these are: %s", tostring(arch),
      table.concat(known, ", "))
  end
  local arrays, left, packed = {}, {}, {}
  for name, x in pairs(found) do
    local new = renamed(name, arch)
    if new then
      arrays[new], packed[new] = x, modes and modes[name]
    elseif not name:match("^rope_f") then
      left[#left + 1] = name
    end
  end
  table.sort(left)
  if #left > 0 then fail("%s: no layer is known for %s", file, table.concat(left, ", ")) end
  if not arrays["model.embed_tokens.weight"] then fail("%s has no token_embd.weight", file) end
  local c = config(arch, about, arrays)
  factors(c, found, about, arch)
  for name, x in pairs(arrays) do
    local which = permuted[arch] and name:match("self_attn%.([qk])_proj%.")
    if which then arrays[name] = unpermuted(x, which == "q" and c.num_attention_heads or c.num_key_value_heads) end
    if name:match("shared_expert_gate%.weight") and x.ndim == 1 then arrays[name] = mx.expand_dims(x, 0) end
  end
  c.quantization = packing(arrays, packed)
  return arrays, c, about
end

return gguf
