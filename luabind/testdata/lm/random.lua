-- random.lua DIRECTORY TOKENIZER LAYERS HIDDEN INNER WORDS: a model directory of Llama's shape with random weights in
-- bfloat16, to measure with: 12 1024 4096 32000 has 0.27 billion of them, 28 2048 8192 32000 two billions (4 GB).
-- TOKENIZER is a tokenizer.json.
local mx, host = require("mx"), require("lm.host")
local dir, tokenizer, layers, hidden, inner, words = ...
layers, hidden, inner, words = tonumber(layers), tonumber(hidden), tonumber(inner), tonumber(words)

mx.random.seed(1)
assert(host.mkdir(dir))
local map, file, total = {}, 0, 0
local function write(shapes) -- a file for each layer, so that no more is in memory
  local arrays, name = {}, ("model-%05d.safetensors"):format(file)
  file = file + 1
  for key, shape in pairs(shapes) do
    local x = #shape > 1 and mx.random.normal(shape, {scale = 0.02}) or mx.random.uniform(0.5, 1.5, shape)
    arrays[key], map[key] = x:astype(mx.bfloat16), name
    total = total + arrays[key].nbytes
  end
  mx.save_safetensors(dir .. "/" .. name, arrays, {format = "pt"})
end

write{["model.embed_tokens.weight"] = {words, hidden}, ["lm_head.weight"] = {words, hidden},
  ["model.norm.weight"] = {hidden}}
for i = 0, layers - 1 do
  local shapes = {}
  local function put(name, ...) shapes[("model.layers.%d.%s.weight"):format(i, name)] = {...} end
  put("input_layernorm", hidden)
  put("post_attention_layernorm", hidden)
  for _, n in ipairs{"q", "k", "v", "o"} do put("self_attn." .. n .. "_proj", hidden, hidden) end
  put("mlp.gate_proj", inner, hidden)
  put("mlp.up_proj", inner, hidden)
  put("mlp.down_proj", hidden, inner)
  write(shapes)
end
assert(host.write(dir .. "/model.safetensors.index.json", host.encode({metadata = {total_size = total},
  weight_map = map})))
assert(host.write(dir .. "/config.json", host.encode({model_type = "llama", architectures = host.list{"LlamaForCausalLM"},
  hidden_size = hidden, num_hidden_layers = layers, num_attention_heads = hidden / 64,
  num_key_value_heads = hidden / 64, head_dim = 64, intermediate_size = inner, vocab_size = words, rms_norm_eps = 1e-6,
  rope_theta = 10000, max_position_embeddings = 4096, torch_dtype = "bfloat16"}, "  ")))
assert(host.copy(tokenizer, dir .. "/tokenizer.json"))
assert(host.write(dir .. "/tokenizer_config.json", "{}"))
print(("%s: %.3f GB"):format(dir, total / 1e9))
