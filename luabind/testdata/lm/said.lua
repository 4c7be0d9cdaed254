-- said.lua FOLDER NAME DIRECTORY COUNT: the greedy text of a golden file of peer/ is that of mlx-lm, with the same
-- log-probabilities, in floats, packed, and with a part of the tokens remembered; the first COUNT tokens of it. Packed,
-- a model answers as its unpacked weights do.
local mx, lm = require("mx"), require("lm")
local folder, name, dir, most = ...
package.path = folder .. "/?.lua;" .. package.path
local weights = require("weights")
most = tonumber(most)

local golden = weights.golden(folder .. "/peer", name)
weights.write(dir, weights.arrays(golden), golden.config)
local prompt = {3, 77, 12, 91, 64, 9, 33}
local tokens = mx.array({prompt}, mx.int32)
local function scores(model) return model(tokens, lm.caches(model)) end
local function worst(a, b) return mx.max(mx.abs(a - b)):item() end

local function same(key, model, o)
  local words, values = golden[key .. ".tokens"], golden[key .. ".values"]
  if not words then return end
  words, values = words:tolist(), values:tolist()
  o = o or {}
  o.max_tokens = math.min(most, #words)
  o.processors = lm.processors{repetition_penalty = 1.5, repetition_context_size = 20}
  local i = 0
  for token, s in lm.stream(model, prompt, o) do
    i = i + 1
    local p = (s[0]:index(token) - mx.logsumexp(s[0], -1)):item()
    local d = math.abs(p - values[i])
    if token ~= words[i] or not (d <= 5e-5) then
      error(("%s, %s: token %d is %d, mlx-lm's %d; its log-probability %.7g, mlx-lm's %.7g"):format(name, key, i, token,
        words[i], p, values[i]), 0)
    end
  end
end

local model = lm.load(dir)
local plain = scores(model)
same("floats", model)
if golden["kept.tokens"] then same("kept", model, {caches = lm.caches(model, {max_kv = 24})}) end

for key, how in pairs{affine4 = {bits = 4, group_size = 64}, affine8 = {bits = 8, group_size = 128},
  affine3 = {bits = 3, group_size = 32}, mxfp4 = {mode = "mxfp4"}, nvfp4 = {mode = "nvfp4"},
  mxfp8 = {mode = "mxfp8"}} do
  local packed = lm.load(dir)
  lm.quantize(packed, how)
  same(key, packed)
  local answer = scores(packed)
  if not (worst(answer, plain) > 1e-4) then error(name .. ", " .. key .. ": it is not packed", 0) end
  lm.dequantize(packed)
  local d, range = worst(answer, scores(packed)), mx.max(mx.abs(answer)):item()
  if not (d <= 1e-5 * math.max(range, 1)) then
    error(("%s, %s: %g from its unpacked weights, of %g"):format(name, key, d, range), 0)
  end
end
print(name)
