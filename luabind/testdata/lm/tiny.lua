-- tiny.lua FOLDER DIRECTORY TOKENIZER: a model directory with a tokenizer, for tests of commands.
local host = require("lm.host")
local folder, dir, tokenizer = ...
package.path = folder .. "/?.lua;" .. package.path
local weights = require("weights")
local vocabulary = 600

local shapes = {["model.embed_tokens.weight"] = {vocabulary, 64}, ["model.norm.weight"] = {64},
  ["lm_head.weight"] = {vocabulary, 64}}
for i = 0, 1 do
  for name, shape in pairs{
    input_layernorm = {64}, post_attention_layernorm = {64}, ["self_attn.q_proj"] = {64, 64},
    ["self_attn.k_proj"] = {32, 64}, ["self_attn.v_proj"] = {32, 64}, ["self_attn.o_proj"] = {64, 64},
    ["mlp.gate_proj"] = {96, 64}, ["mlp.up_proj"] = {96, 64}, ["mlp.down_proj"] = {64, 96},
  } do
    shapes[("model.layers.%d.%s.weight"):format(i, name)] = shape
  end
end
weights.write(dir, weights.arrays{shapes = shapes}, {model_type = "llama", hidden_size = 64, num_hidden_layers = 2,
  num_attention_heads = 4, num_key_value_heads = 2, head_dim = 16, intermediate_size = 96, vocab_size = vocabulary,
  rms_norm_eps = 1e-6, rope_theta = 10000, eos_token_id = 1})
assert(host.copy(tokenizer, dir .. "/tokenizer.json"))
assert(host.write(dir .. "/tokenizer_config.json", "{}"))
