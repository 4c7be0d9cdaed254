-- packing.lua FOLDER DIRECTORY: packed models are what their unpacked weights are, rows that are no multiple of a group
-- are refused by name, and a GGUF file is the model that was written into it.
local mx, lm, host = require("mx"), require("lm"), require("lm.host")
local folder, dir = ...
package.path = folder .. "/?.lua;" .. package.path
local weights = require("weights")

local tokens = mx.array({{3, 77, 12, 91, 64, 9, 33}}, mx.int32)
local function scores(model) return model(tokens, lm.caches(model)) end
local function worst(a, b) return mx.max(mx.abs(a - b)):item() end

-- A Llama and a Qwen3-MoE with rows that groups of 128 divide.
local function shapes(moe)
  local out = {["model.embed_tokens.weight"] = {96, 128}, ["model.norm.weight"] = {128}, ["lm_head.weight"] = {96, 128}}
  for i = 0, 1 do
    local function put(name, ...) out[("model.layers.%d.%s.weight"):format(i, name)] = {...} end
    put("input_layernorm", 128)
    put("post_attention_layernorm", 128)
    for _, n in ipairs{"q", "o"} do put("self_attn." .. n .. "_proj", 128, 128) end
    for _, n in ipairs{"k", "v"} do put("self_attn." .. n .. "_proj", 64, 128) end
    if moe then
      put("self_attn.q_norm", 32)
      put("self_attn.k_norm", 32)
      put("mlp.gate", 4, 128)
      for _, n in ipairs{"gate", "up"} do put("mlp.switch_mlp." .. n .. "_proj", 4, 128, 128) end
      put("mlp.switch_mlp.down_proj", 4, 128, 128)
    else
      for _, n in ipairs{"gate", "up"} do put("mlp." .. n .. "_proj", 256, 128) end
      put("mlp.down_proj", 128, 256)
    end
  end
  return out
end
local function config(moe)
  return {model_type = moe and "qwen3_moe" or "llama", hidden_size = 128, num_hidden_layers = 2, num_attention_heads = 4,
    num_key_value_heads = 2, head_dim = 32, intermediate_size = 256, vocab_size = 96, rms_norm_eps = 1e-6,
    num_experts = moe and 4 or nil, num_experts_per_tok = moe and 2 or nil, moe_intermediate_size = moe and 128 or nil,
    norm_topk_prob = moe or nil, rope_theta = 10000}
end

for _, moe in ipairs{false, true} do
  local from = dir .. (moe and "/moe" or "/dense")
  weights.write(from, weights.arrays{shapes = shapes(moe)}, config(moe))
  local plain = scores(lm.load(from))
  local how = moe and {mode = "mxfp4"} or {recipe = "mixed_3_6", group_size = 128}
  local model, to = lm.load(from), from .. "-packed"
  local count = lm.quantize(model, how)
  assert(count == 2 + 2 * (moe and 8 or 7), count)
  lm.save(model, to)
  local again = lm.load(to)
  -- mlx-lm takes scores for those of the embedding unless config.json says otherwise
  assert(again.config:get("tie_word_embeddings") == false)
  local packed = scores(again)
  assert(worst(packed, scores(model)) == 0)
  assert(worst(packed, plain) > 1e-4) -- it is packed
  assert(lm.dequantize(again) == count)
  local d = worst(packed, scores(again))
  assert(d <= 1e-5, ("%s: %g"):format(to, d))
  lm.save(again, to .. "-plain")
  local ok, text = pcall(function() return io.open(to .. "-plain/config.json"):read("*a") end)
  assert(ok and not text:find("quantization", 1, true))
  assert(worst(packed, scores(lm.load(to .. "-plain"))) <= 1e-5)
end

-- A model that is packed on the way to its file is never in memory as a whole, and its file is the same.
do
  local from, how = dir .. "/dense", {bits = 8, group_size = 32}
  local model = lm.load(from, {lazy = true})
  lm.quantize(model, how)
  local bytes = lm.size(model)
  local count, last, all = 0, 0, nil
  mx.clear_cache()
  mx.reset_peak_memory()
  local before = mx.get_active_memory()
  lm.save(model, from .. "-consumed", {consume = true, progress = function(done, total)
    assert(done > last and done <= total)
    count, last, all = count + 1, done, total
  end})
  assert(count > 30 and last == all and all == bytes)
  local peak = mx.get_peak_memory() - before
  assert(peak < bytes / 2, ("%d bytes for %d of the file"):format(peak, bytes))
  model = lm.load(from)
  lm.quantize(model, how)
  lm.save(model, from .. "-kept")
  assert(worst(scores(lm.load(from .. "-consumed")), scores(model)) == 0)
  local a = assert(io.open(from .. "-consumed/model.safetensors", "rb")):read("*a")
  local b = assert(io.open(from .. "-kept/model.safetensors", "rb")):read("*a")
  assert(a == b)
end

-- Rows that are no multiple of a group: published.lua has the answers of a model of which a part stays whole.
local golden = weights.golden(folder, "llama")
weights.write(dir .. "/odd", weights.arrays(golden), golden.config)
local odd = lm.load(dir .. "/odd")
local done, text_of
local packed_count, whole = lm.quantize(odd, {bits = 4, group_size = 64})
assert(packed_count == 4 * 6 + 2 and #whole == 4 and whole[2] == "model.layers.1.mlp.down_proj", table.concat(whole, " "))

-- Recipes say the bits, of the affine mode.
for text, how in pairs{["recipe = mixed_4_6 packs affine, and mode = mxfp4"] = {recipe = "mixed_4_6", mode = "mxfp4"},
  ["recipe = mixed_4_6 says the bits of each layer, and bits = 4"] = {recipe = "mixed_4_6", bits = 4}} do
  done, text_of = pcall(lm.quantize, odd, how)
  assert(not done and tostring(text_of):find(text, 1, true), text_of)
end
do -- more bits for what leads to values, whatever its name
  local Linear = require("lm.layers").Linear
  local part = {kv_a_proj_with_mqa = Linear(mx.zeros({32, 64})), q_proj = Linear(mx.zeros({32, 64}))}
  assert(lm.quantize({model = {layers = {{self_attn = part}}}}, {recipe = "mixed_3_6"}) == 2)
  assert(part.kv_a_proj_with_mqa.bits == 6 and part.q_proj.bits == 3)
end

-- A step of packed keys and values is traced anew where they have other bits.
local model = lm.load(dir .. "/dense")
local plain = scores(model)
local function decoded(bits)
  local c = lm.caches(model, {kv_bits = bits, kv_group_size = 32})
  model(tokens:index(":", "0:6"), c)
  return lm.step(model)(tokens:index(":", 6), c)
end
for _, bits in ipairs{8, 4, 8} do
  local c = lm.caches(model, {kv_bits = bits, kv_group_size = 32})
  assert(worst(decoded(bits), model(tokens, c):index(":", -1)) < 1e-5)
end
local ok, why = pcall(lm.caches, model, {max_kv = 1})
assert(not ok and tostring(why):find("max_kv = 1, want at least 2", 1, true), why)

-- GGUF: names, settings, and the rows of queries and keys in llama.cpp's order.
local arrays, n = {}, {}
local inner = {["self_attn.q_proj"] = "attn_q", ["self_attn.k_proj"] = "attn_k", ["self_attn.v_proj"] = "attn_v",
  ["self_attn.o_proj"] = "attn_output", ["mlp.gate_proj"] = "ffn_gate", ["mlp.up_proj"] = "ffn_up",
  ["mlp.down_proj"] = "ffn_down", input_layernorm = "attn_norm", post_attention_layernorm = "ffn_norm"}
for name, x in pairs(weights.arrays{shapes = shapes(false)}) do
  local i, what = name:match("^model%.layers%.(%d+)%.(.*)%.weight$")
  local new = i and ("blk.%s.%s.weight"):format(i, inner[what]) or
    ({["model.embed_tokens.weight"] = "token_embd.weight", ["model.norm.weight"] = "output_norm.weight",
      ["lm_head.weight"] = "output.weight"})[name]
  local heads = ({["self_attn.q_proj"] = 4, ["self_attn.k_proj"] = 2})[what]
  if heads then x = x:unflatten(0, {heads, 2, -1}):swapaxes(1, 2):flatten(0, 2) end
  arrays[new] = x
end
local function int(v) return mx.array(v, mx.int32) end
for k, v in pairs{embedding_length = int(128), block_count = int(2), ["attention.head_count"] = int(4),
  ["attention.head_count_kv"] = int(2), feed_forward_length = int(256), context_length = int(512),
  ["attention.layer_norm_rms_epsilon"] = mx.array(1e-6), ["rope.freq_base"] = mx.array(10000)} do
  n["llama." .. k] = v
end
n["general.architecture"] = "llama"
mx.save_gguf(dir .. "/model.gguf", arrays, n)
local from_gguf = lm.load(dir .. "/model.gguf")
assert(worst(scores(from_gguf), plain) < 1e-6)
lm.save(from_gguf, dir .. "/from_gguf")
assert(worst(scores(lm.load(dir .. "/from_gguf")), plain) < 1e-6)
n["general.architecture"] = "mamba"
mx.save_gguf(dir .. "/mamba.gguf", arrays, n)
ok, why = pcall(lm.load, dir .. "/mamba.gguf")
assert(not ok and tostring(why):find("general.architecture = mamba of a GGUF file is not built", 1, true), why)
n["general.architecture"], n["llama.block_count"] = "llama", int(2000000000)
mx.save_gguf(dir .. "/deep.gguf", arrays, n)
ok, why = pcall(lm.load, dir .. "/deep.gguf")
assert(not ok and tostring(why):find("the GGUF file has 2000000000 layers, want at most 10000", 1, true), why)
n["llama.block_count"] = int(2)

-- Blocks of llama.cpp stay what they are, are saved, and unpacked or packed otherwise where that is asked for.
local function q8_0(x)
  x = x:unflatten(-1, {-1, 32})
  local d = (mx.max(mx.abs(x), -1, true) / 127):astype(mx.float16)
  local codes = mx.round(x / d:astype(mx.float32)):astype(mx.int8)
  return mx.concatenate({d:view(mx.uint8), codes:view(mx.uint8)}, -1):flatten(-2, -1)
end
local modes = {}
for name, x in pairs(arrays) do
  if x.ndim == 2 then arrays[name], modes[name] = q8_0(x), "q8_0" end
end
n["general.architecture"] = "llama"
mx.save_gguf(dir .. "/blocks.gguf", arrays, n, modes)
local blocks = lm.load(dir .. "/blocks.gguf")
local affine = lm.load(dir .. "/blocks.gguf", {blocks = false, dtype = mx.float32})
assert(blocks.lm_head.mode == "q8_0" and blocks.lm_head.weight.dtype == mx.uint8 and blocks.lm_head.scales == nil)
assert(affine.lm_head.mode == "affine" and lm.packing(affine).bits == 8)
local exact = scores(affine)
assert(worst(scores(blocks), exact) < 1e-5)
assert(scores(lm.load(dir .. "/blocks.gguf", {dtype = mx.bfloat16})).dtype == mx.bfloat16)
local bytes, count = lm.size(blocks)
local _, floats = lm.size(lm.load(dir .. "/dense"))
assert(count == floats and math.abs(bytes * 8 / count - 8.5) < 0.3, 8 * bytes / count)
lm.save(blocks, dir .. "/blocks")
local again = lm.load(dir .. "/blocks")
assert(lm.packing(again).mode == "q8_0" and mx.array_equal(scores(again), scores(blocks)):item())
ok, why = pcall(lm.quantize, blocks, {mode = "q8_0"})
assert(not ok and tostring(why):find("mode = q8_0 is only read, from GGUF files", 1, true), why)
assert(lm.quantize(again, {bits = 8, group_size = 32}) == 16 and lm.packing(again).mode == "affine")
assert(worst(scores(again), exact) < 0.05 and lm.dequantize(blocks) == 16)
assert(worst(scores(blocks), exact) < 1e-5)
print("packing")
