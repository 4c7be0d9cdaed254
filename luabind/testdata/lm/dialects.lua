-- dialects.lua FOLDER DIRECTORY: what directories differ in: keys of transformers 4, weights in foreign forms, and
-- settings and weights that are not built.
local mx, lm, host = require("mx"), require("lm"), require("lm.host")
local folder, dir = ...
package.path = folder .. "/?.lua;" .. package.path
local weights = require("weights")

local function worst(a, b) return mx.max(mx.abs(a - b)):item() end
local function scores(model, tokens) return model(mx.expand_dims(tokens, 0), lm.caches(model))[0] end
local function copy(t)
  local out = {}
  for k, v in pairs(t) do out[k] = v end
  return out
end

-- The keys of transformers 4.
local golden = weights.golden(folder, "llama")
local arrays, tokens = weights.arrays(golden), golden["long.tokens"]
local old = copy(golden.config)
old.rope_scaling, old.rope_theta, old.rope_parameters = old.rope_parameters, old.rope_parameters.rope_theta, nil
local model = lm.load(weights.write(dir .. "/old", arrays, old))
assert(worst(scores(model, tokens), golden["long.logits"]) < 2e-5)
lm.save(model, dir .. "/both") -- keys of both
local saved = copy(lm.Config.read(dir .. "/both").raw)
assert(saved.rope_scaling.rope_type == "llama3")
old = copy(golden.config)
old.rope_parameters = {rope_type = "default", rope_theta = 10000}
assert(worst(scores(lm.load(weights.write(dir .. "/plain", arrays, old)), tokens), golden["long.logits"]) > 1e-3)

-- Kimi K2 is DeepSeek V3 by another name.
do
  local whole = weights.golden(folder, "deepseek_v3")
  local kimi = copy(whole.config)
  kimi.model_type = "kimi_k2"
  local built = lm.build(weights.arrays(whole), lm.Config.new(kimi))
  assert(worst(scores(built, whole["long.tokens"]), whole["long.logits"]) < 2e-5)
end

-- Files of GPT-2 as the first ones call weights, with masks and the head, which is the embedding or has a weight.
do
  local whole, first = weights.golden(folder, "gpt2"), {}
  for name, x in pairs(weights.arrays(whole)) do first[name:gsub("^transformer%.", "")] = x end
  first["h.0.attn.bias"], first["h.0.attn.masked_bias"] = mx.ones({1, 1, 64, 64}), mx.array(-1e4)
  assert(first["wte.weight"] and first["lm_head.weight"] == nil)
  local function answers(head, tied)
    local all, config = copy(first), copy(whole.config)
    all["lm_head.weight"], config.tie_word_embeddings = head, tied
    return scores(lm.build(all, lm.Config.new(config)), whole["long.tokens"])
  end
  assert(worst(answers(nil, true), whole["long.logits"]) < 2e-5)
  assert(worst(answers(first["wte.weight"] * 2, true), whole["long.logits"]) < 2e-5)
  assert(worst(answers(first["wte.weight"] * 2, false), whole["long.logits"] * 2) < 4e-5)
end

-- What is not built has its name in the error.
local count = 0
local function refused(text, changes, more)
  local config, all = copy(golden.config), copy(arrays)
  for k, v in pairs(changes or {}) do config[k] = v end
  for k, v in pairs(more or {}) do all[k] = v or nil end
  count = count + 1
  local ok, why = pcall(lm.load, weights.write(("%s/refused%d"):format(dir, count), all, config))
  assert(not ok and tostring(why):find(text, 1, true), tostring(why))
end
refused("attn_logit_softcapping asks for something that llama models do not have", {attn_logit_softcapping = 50})
refused('to go past what does not matter: --ignore-key attn_logit_softcapping, or lm.load(dir, {ignore = {"attn_logit',
  {attn_logit_softcapping = 50})
refused("model_type = somebody is not built", {model_type = "somebody", text_config = golden.config}) -- the whole's
refused("rope_type = spiral is not built", {rope_parameters = {rope_type = "spiral", rope_theta = 10}})
refused("factor is missing for rope_type linear", {rope_parameters = {rope_type = "linear", rope_theta = 10}})
refused("hidden_act = tanhshrink is not built", {hidden_act = "tanhshrink"})
refused("model_type = nobody is not built", {model_type = "nobody"})
refused("hidden_size is missing", {hidden_size = host.null})
do -- what is left out is what transformers takes for granted, and a file of another size is refused with it
  local small = copy(golden.config)
  small.intermediate_size = nil
  local ok, why = pcall(lm.load, weights.write(dir .. "/assumed", arrays, small))
  assert(not ok and tostring(why):find("it leaves out what is taken as intermediate_size = 11008", 1, true), why)
end
refused("quantization_config.quant_method = awq is not built", {quantization_config = {quant_method = "awq"}})
refused("quantization_config.weight_block_size", {quantization_config = {quant_method = "fp8",
  weight_block_size = host.list{64, 64}}})
refused("layer_types has chunked_attention", {layer_types = host.list{"chunked_attention", "full_attention",
  "full_attention", "full_attention"}})
refused("model.norm.weight is missing", {}, {["model.norm.weight"] = false})
refused("1 weights belong to no layer: model.layers.9.x.weight", {}, {["model.layers.9.x.weight"] = mx.zeros({2})})
refused("model.norm.weight has the shape (3), config.json says (64)", {}, {["model.norm.weight"] = mx.zeros({3})})
refused("rope_parameters.wibble is not built", {rope_parameters = {rope_type = "default", wibble = 3}})
refused("rope_parameters is a number, want an object", {rope_parameters = 3})
refused("rope_parameters.rope_theta is the text \"1e4\"", {rope_parameters = {rope_theta = "1e4"}})
refused("partial_rotary_factor = 0.2 is not built for llama", {rope_parameters = {rope_theta = 1e4,
  partial_rotary_factor = 0.2}})
refused("an even number of a head's elements is turned, not 3", {model_type = "stablelm", rope_parameters = {
  rope_theta = 1e4, partial_rotary_factor = 0.2}})
refused("hidden_size is the text \"64\", want a number", {hidden_size = "64"})
refused("text_config is a number, want an object", {text_config = 3})
refused("sliding_window asks for something that llama models do not have", {sliding_window = 8})
local types = host.list{"sliding_attention", "full_attention", "full_attention", "full_attention"}
refused("sliding_window = nil, want a positive integer", {layer_types = types})
refused("sliding_window = 0, want a positive integer", {model_type = "mistral", sliding_window = 0})
refused("model.norm.weight is of uint8, want floats", {}, {["model.norm.weight"] = mx.zeros({64}, mx.uint8)})
refused("up_proj.weight is of int8, want floats", {}, {["model.layers.0.mlp.up_proj.weight"] = mx.zeros({96, 64}, mx.int8)})
for key, value in pairs{layer_types = 3, no_rope_layers = 1, num_hidden_layers = 2.5, hidden_size = true,
  quantization = 4, quantization_config = 4, partial_rotary_factor = "x", rope_theta = 0, model_type = 3,
  no_rope_layer_interval = 0, hidden_act = 3, max_position_embeddings = "x", num_attention_heads = 0,
  rms_norm_eps = "1e-5x", attention_bias = "yes", rope_scaling = host.list{}} do
  refused(("config.json: %s "):format(key), {[key] = value, rope_parameters = host.null})
end
refused('layer_types[1] = 3, want text', {layer_types = host.list{"full_attention", 3, "x", "x"}})
refused("layer_types has 1 entries for 4 layers", {layer_types = host.list{"full_attention"}})
refused("no_rope_layers has 1 entries for 4 layers", {no_rope_layers = host.list{1}})
refused('num_hidden_layers is the text "x", want a positive integer', {num_hidden_layers = "x"})
refused("num_hidden_layers = 2000000000, want a positive integer of at most 10000", {num_hidden_layers = 2e9})
refused('rope_parameters.factor is the text "x", want a positive number', {rope_parameters = {rope_type = "linear",
  factor = "x"}})
refused("rope_parameters.short_factor is a number, want a list", {rope_parameters = {rope_type = "longrope",
  original_max_position_embeddings = 8, short_factor = 3, long_factor = host.list{1}}})
refused('rope_parameters.long_factor[0] is the text "a"', {rope_parameters = {rope_type = "longrope",
  original_max_position_embeddings = 8, short_factor = host.list{1}, long_factor = host.list{"a"}}})
refused('num_experts_per_tok is the text "x"', {model_type = "mixtral", num_local_experts = 4, num_experts_per_tok = "x"})
refused('mlp_only_layers[0] is the text "a"', {model_type = "qwen3_moe", mlp_only_layers = host.list{"a"},
  num_experts = 4, num_experts_per_tok = 2, moe_intermediate_size = 8})
refused("quantization.bits of model.embed_tokens = 0, want a positive integer", {quantization = {bits = 0}},
  {["model.embed_tokens.scales"] = mx.zeros({3})})
for text, files in pairs{["config.json: it is a number, want an object"] = {["config.json"] = "3"},
  ["config.json: it is a list, want an object"] = {["config.json"] = "[]"},
  ["config.json: it is null, want an object"] = {["config.json"] = "null"},
  ["weight_map has no file for a"] = {["model.safetensors.index.json"] = '{"weight_map": {"a": 3}}'},
  ["there is no weight_map"] = {["model.safetensors.index.json"] = "3"}} do
  count = count + 1
  local at = weights.write(("%s/refused%d"):format(dir, count), arrays, golden.config)
  for name, text_of in pairs(files) do assert(host.write(at .. "/" .. name, text_of)) end
  local ok, why = pcall(lm.load, at)
  assert(not ok and tostring(why):find(text, 1, true), tostring(why))
end
local ok, why = pcall(lm.load, dir .. "/nowhere")
assert(not ok and tostring(why):find("there is no model " .. dir .. "/nowhere: no such directory", 1, true), why)
local config = copy(golden.config)
config.attn_logit_softcapping = 50
assert(lm.load(weights.write(dir .. "/ignored", arrays, config), {ignore = {"attn_logit_softcapping"}}))

-- Keys of published files that ask for nothing, since transformers does not read them or what they say is so anyway;
-- with another value they are errors that name them. Sources: the files of SmolLM2, Phi-4-mini, Command R7B, Qwen3-Coder,
-- StableLM 2, StarCoder 2 and fine-tuned models as transformers 4 and other programs write them.
local published = {
  llama = {{is_llama_config = true, rope_interleaved = false, ["transformers.js_config"] = {dtype = "q4"},
    neftune_noise_alpha = 0.0, num_beams = 1, length_penalty = 1.0, typical_p = 1.0, diversity_penalty = 0.0,
    early_stopping = false, bad_words_ids = host.null, is_decoder = false, torchscript = false, activation = "swiglu",
    unsloth_version = "2025.1", _flash_attn_2_enabled = true, classifier_dropout = 0.1, model_max_length = 4096,
    use_flash_attention = true, mlp_dropout = 0.1, init_std = 0.02, num_labels = 2, pad_token_id = 0},
    {rope_interleaved = true, activation = "gelu", document_attention = true}},
  phi3 = {{full_attn_mod = 1, interpolate_factor = 1, lm_head_bias = false, mlp_bias = false, attention_bias = false,
    auto_map = {AutoConfig = "x"}, embd_pdrop = 0.0, resid_pdrop = 0.0}, {full_attn_mod = 2, interpolate_factor = 4,
    lm_head_bias = true}},
  cohere2 = {{cache_implementation = "hybrid", layer_switch = 4, order_of_interleaved_layers = "local_attn_first",
    position_embedding_type = "rope_gptj", rotary_pct = 1.0, use_embedding_sharing = true, use_gated_activation = true,
    use_parallel_block = true, use_parallel_embedding = true, use_qk_norm = false},
    {layer_switch = 2, order_of_interleaved_layers = "x", rotary_pct = 0.5, use_embedding_sharing = false,
      use_parallel_block = false}},
  qwen3_moe = {{use_qk_norm = true, qkv_bias = false, shared_expert_intermediate_size = 0, max_window_layers = 28},
    {use_qk_norm = false}},
  qwen2 = {{use_mrope = false}, {use_mrope = true}},
  stablelm = {{use_norm_bias = false, rotary_scaling_factor = 1.0}, {rotary_scaling_factor = 2.0}},
  ernie4_5 = {{compression_ratio = 1.0}, {compression_ratio = 2.0}},
  starcoder2 = {{scale_attn_weights = true, attention_softmax_in_fp32 = true, scale_attention_softmax_in_fp32 = true,
    layer_norm_epsilon = 1e-5}, {mlp_type = "gated", norm_type = "rms_norm"}},
}
for name, keys in pairs(published) do
  local whole = weights.golden(folder, name)
  local function built(more)
    local config = copy(whole.config)
    for k, v in pairs(more) do config[k] = v end
    return lm.build(weights.arrays(whole), lm.Config.new(config))
  end
  local d = worst(scores(built(keys[1]), whole["long.tokens"]), whole["long.logits"])
  assert(d < 2e-5, name)
  for key, value in pairs(keys[2]) do
    local ok, why = pcall(built, {[key] = value})
    assert(not ok and tostring(why):find(key, 1, true), ("%s: %s is not refused: %s"):format(name, key, tostring(why)))
  end
end

-- Files of Qwen3-MoE can say that there is no shared expert.
do
  local moe = weights.golden(folder, "qwen3_moe")
  moe.config.shared_expert_intermediate_size = 0
  local got = scores(lm.load(weights.write(dir .. "/unshared", weights.arrays(moe), moe.config)), moe["long.tokens"])
  assert(worst(got, moe["long.logits"]) < 2e-5)
end

-- What mlx-lm calls otherwise is in what is saved, under both names.
local function portable(name, script, change)
  local raw = copy(weights.golden(folder, name).config)
  for k, v in pairs(change or {}) do raw[k] = v end
  return lm.Config.new(raw):portable(true, require("lm.models." .. script).portable)
end
local both = portable("gemma3", "gemma3")
assert(both.rope_local_base_freq == 10000 and both.rope_theta == 1000000 and both.sliding_window_pattern == 6)
assert(portable("gemma3", "gemma3", {rope_parameters = host.null}).rope_local_base_freq == nil)
local renamed = {num_experts = nil, num_local_experts = 4}
require("lm.models.qwen3").portable(renamed)
assert(renamed.num_experts == 4)
assert(portable("qwen3_5", "qwen3_next", {model_type = "qwen3_5_text"}).model_type == "qwen3_5")

-- As many experts for each token as there are, and no more.
do
  local moe = weights.golden(folder, "mixtral")
  local all = weights.arrays(moe)
  moe.config.num_experts_per_tok = 7
  local fits, text = pcall(lm.load, weights.write(dir .. "/chosen", all, moe.config))
  assert(not fits and text:find("num_experts_per_tok = 7 of 6 experts", 1, true), text)
end

-- Floats of eight bits with a scale for each block.
local eight, plain = copy(arrays), copy(arrays)
for _, name in ipairs{"model.layers.0.self_attn.q_proj.weight", "model.layers.2.mlp.down_proj.weight"} do
  eight[name] = mx.to_fp8(arrays[name])
  eight[name .. "_scale_inv"] = mx.full({1, 1}, 0.5)
  plain[name] = (mx.from_fp8(eight[name], mx.float32) * 0.5):astype(mx.bfloat16)
end
config = copy(golden.config)
config.quantization_config = {quant_method = "fp8", weight_block_size = host.list{128, 128}}
local a = scores(lm.load(weights.write(dir .. "/eight", eight, config)), tokens)
local b = scores(lm.load(weights.write(dir .. "/eight_plain", plain, golden.config)), tokens)
assert(worst(a, b) == 0 and worst(a, golden["long.logits"]) > 1e-3)

-- gpt-oss' experts in mxfp4: blocks of bytes, in which the rows of gate and up alternate.
golden = weights.golden(folder, "gpt_oss")
arrays = weights.arrays(golden)
local foreign, unpacked = copy(arrays), copy(arrays)
for name, x in pairs(arrays) do
  if name:match("experts%.%l+_?%l*_proj$") then
    local rows = x:swapaxes(-1, -2)
    local w, s = mx.quantize(rows, {mode = "mxfp4"})
    unpacked[name] = mx.dequantize(w, {scales = s, mode = "mxfp4"}):astype(mx.float32):swapaxes(-1, -2)
    foreign[name] = nil
    foreign[name .. "_blocks"], foreign[name .. "_scales"] = mx.view(w, mx.uint8):unflatten(-1, {-1, 16}), s
  end
end
config = copy(golden.config)
config.quantization_config = {quant_method = "mxfp4"}
model = lm.load(weights.write(dir .. "/mxfp4", foreign, config))
assert(lm.packing(model).mode == "mxfp4")
a = scores(model, golden["long.tokens"])
b = scores(lm.load(weights.write(dir .. "/mxfp4_plain", unpacked, golden.config)), golden["long.tokens"])
assert(worst(a, b) <= 1e-5 and worst(a, golden["long.logits"]) > 1e-3)
lm.save(model, dir .. "/mxfp4_saved")
assert(worst(a, scores(lm.load(dir .. "/mxfp4_saved"), golden["long.tokens"])) == 0)
print("dialects")
