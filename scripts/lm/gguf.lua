-- GGUF files, as llama.cpp has them: names of weights and settings become those of transformers.
local mx = require("mx")

local gguf = {}

local function fail(text, ...) error(("lm: " .. text):format(...), 0) end

-- types are config.json's model_type by GGUF's architecture.
local types = {llama = "llama", qwen3 = "qwen3", qwen3moe = "qwen3_moe"}

local names = {
  ["token_embd"] = "model.embed_tokens", ["output_norm"] = "model.norm", ["output"] = "lm_head",
}
local inner = {
  attn_norm = "input_layernorm", attn_q = "self_attn.q_proj", attn_k = "self_attn.k_proj", attn_v = "self_attn.v_proj",
  attn_output = "self_attn.o_proj", attn_q_norm = "self_attn.q_norm", attn_k_norm = "self_attn.k_norm",
  ffn_norm = "post_attention_layernorm", ffn_gate = "mlp.gate_proj", ffn_up = "mlp.up_proj", ffn_down = "mlp.down_proj",
  ffn_gate_inp = "mlp.gate", ffn_gate_exps = "mlp.switch_mlp.gate_proj", ffn_up_exps = "mlp.switch_mlp.up_proj",
  ffn_down_exps = "mlp.switch_mlp.down_proj",
}

-- renamed is a weight's name in transformers' files; nil: it is not one.
local function renamed(name)
  local base, kind = name:match("^(.*)%.(%a+)$")
  if not base then return nil end
  local i, what = base:match("^blk%.(%d+)%.(.+)$")
  local new = names[base] or i and inner[what] and ("model.layers.%s.%s"):format(i, inner[what])
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

-- config is what config.json would say.
local function config(about, arrays)
  local arch = about["general.architecture"]
  local model_type = types[arch]
  if not model_type then
    fail("general.architecture = %s of a GGUF file is not built; these are: llama, qwen3, qwen3moe", tostring(arch))
  end
  local function get(key) return item(about, arch .. "." .. key) end
  local function need(key)
    local v = get(key)
    if v == nil then fail("the GGUF file has no %s.%s", arch, key) end
    return v
  end
  local heads, hidden = need("attention.head_count"), need("embedding_length")
  local out = {
    model_type = model_type, hidden_size = hidden, num_hidden_layers = need("block_count"),
    num_attention_heads = heads, num_key_value_heads = get("attention.head_count_kv") or heads,
    head_dim = get("attention.key_length") or hidden / heads, intermediate_size = need("feed_forward_length"),
    rms_norm_eps = get("attention.layer_norm_rms_epsilon") or 1e-6, max_position_embeddings = get("context_length"),
    vocab_size = arrays["model.embed_tokens.weight"]:dim(0), rope_theta = get("rope.freq_base") or 10000,
    num_experts = get("expert_count"), num_experts_per_tok = get("expert_used_count"),
    moe_intermediate_size = get("expert_feed_forward_length"),
    sliding_window = get("attention.sliding_window"),
    tie_word_embeddings = arrays["lm_head.weight"] == nil,
    attention_bias = arrays["model.layers.0.self_attn.q_proj.bias"] ~= nil,
    mlp_bias = arrays["model.layers.0.mlp.up_proj.bias"] ~= nil,
    bos_token_id = item(about, "tokenizer.ggml.bos_token_id"),
    eos_token_id = item(about, "tokenizer.ggml.eos_token_id"),
  }
  if model_type == "qwen3_moe" then
    out.norm_topk_prob, out.mlp_only_layers = true, {}
    for i = 0, out.num_hidden_layers - 1 do
      if not arrays[("model.layers.%d.mlp.gate.weight"):format(i)] then table.insert(out.mlp_only_layers, i) end
    end
  end
  local scaling = get("rope.scaling.type")
  if scaling and scaling ~= "none" then
    out.rope_scaling = {rope_type = scaling, factor = get("rope.scaling.factor"),
      original_max_position_embeddings = get("rope.scaling.original_context_length")}
  end
  return out
end

-- load opens a GGUF file: its arrays by transformers' names, what config.json would say, and the file's own settings.
function gguf.load(file)
  local found, about = mx.load(file, {format = "gguf", return_metadata = true})
  local arrays, left = {}, {}
  for name, x in pairs(found) do
    local new = renamed(name)
    if new then arrays[new] = x elseif name ~= "rope_freqs.weight" then left[#left + 1] = name end
  end
  table.sort(left)
  if #left > 0 then fail("%s: no layer is known for %s", file, table.concat(left, ", ")) end
  if not arrays["model.embed_tokens.weight"] then fail("%s has no token_embd.weight", file) end
  local c = config(about, arrays)
  if found["rope_freqs.weight"] then
    c.rope_scaling = {rope_type = "factors", factors = found["rope_freqs.weight"]:tolist()}
  end
  if c.model_type == "llama" then
    for name, x in pairs(arrays) do
      local which = name:match("self_attn%.([qk])_proj%.")
      if which then arrays[name] = unpermuted(x, which == "q" and c.num_attention_heads or c.num_key_value_heads) end
    end
  end
  c.quantization = {group_size = 32, bits = 4}
  for name, scales in pairs(arrays) do
    local path = name:match("^(.*)%.scales$")
    if path then
      local mode = arrays[path .. ".biases"] and "affine" or "mxfp4"
      local bits = arrays[path .. ".weight"]:dim(-1) / scales:dim(-1)
      c.quantization[path] = {group_size = 32, bits = bits, mode = mode}
    end
  end
  return arrays, c, about
end

return gguf
