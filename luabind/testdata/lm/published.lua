-- published.lua FOLDER NAME DIRECTORY: a model in the layout of published files answers as transformers does; packed it
-- has the names and settings that mlx-lm writes, and answers as mlx-lm does, where a part of it stays whole, too. See
-- published.py.
local mx, lm, host = require("mx"), require("lm"), require("lm.host")
local folder, name, dir = ...
package.path = folder .. "/?.lua;" .. package.path
local weights = require("weights")

local f = assert(io.open(("%s/keys/%s.json"):format(folder, name)))
local golden = host.decode(f:read("*a"))
f:close()
local tokens, words = mx.array({golden.tokens}, mx.int32), mx.array(golden.words, mx.int32)

local function check(how, model, want)
  local scores = model(tokens, lm.caches(model))
  local d = mx.max(mx.abs(scores:index(0, -1):take(words) - mx.array(want))):item()
  if not (d <= 2e-5) then error(("%s: %s: off by %g"):format(name, how, d), 0) end
end
local function same(how, got, want)
  if type(want) ~= "table" or type(got) ~= "table" then
    if got ~= want then error(("%s is %s, mlx-lm's %s"):format(how, tostring(got), tostring(want)), 0) end
    return
  end
  for k, v in pairs(want) do same(how .. "." .. tostring(k), got[k], v) end
  for k, v in pairs(got) do
    if want[k] == nil and v ~= "affine" then error(("%s.%s is %s, mlx-lm has none"):format(how, tostring(k), tostring(v)), 0) end
  end
end

local model = lm.load(weights.write(dir, weights.arrays(golden), golden.config))
check("in floats", model, golden.logits)

lm.quantize(model, {bits = 4, group_size = 64})
check("packed", model, golden.packed)
lm.save(model, dir .. "/packed")
local saved = lm.Config.read(dir .. "/packed").raw
same("quantization", saved.quantization, golden.quantization)
local got, want = {}, {}
for _, file in ipairs(lm.Weights.files(dir .. "/packed")) do
  for key in pairs(mx.load(file)) do got[key] = true end
end
for _, key in ipairs(golden.names) do want[key] = true end
same("weights", got, want)
check("saved", lm.load(dir .. "/packed"), golden.packed)
print(name)
