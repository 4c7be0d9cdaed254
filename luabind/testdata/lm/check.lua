-- check.lua FOLDER NAME DIRECTORY [short] loads the model of a golden file from a directory that it makes, and compares
-- its logits with those of transformers in each way in which a model is used; short: in a padded batch only, which is
-- read at once and goes on in compiled steps.
local mx, lm = require("mx"), require("lm")
local folder, name, dir, brief = ...
package.path = folder .. "/?.lua;" .. package.path
local weights = require("weights")

local golden = weights.golden(folder, name)
weights.write(dir, weights.arrays(golden), golden.config)
local model = lm.load(dir)
local long, short = golden["long.tokens"], golden["short.tokens"]
local worst = 0

local function near(how, got, want)
  if want:dim(-1) < got:dim(-1) then got = got:index("...", "0:" .. want:dim(-1)) end -- not all words were kept
  local d = mx.max(mx.abs(got - want)):item()
  if not (d <= 2e-5) then error(("%s: %s: the worst difference is %g"):format(name, how, d), 0) end
  worst = math.max(worst, d)
end

local function batch(x) return mx.expand_dims(x, 0) end

local step = lm.step(model)
local compiled
local function decode(caches, tokens, from, to) -- tokens (batch, length): logits (batch, to - from, vocabulary)
  local out = {}
  for i = from, to - 1 do
    local scores
    scores, _, compiled = step(tokens:index(":", i), caches)
    out[#out + 1] = scores
  end
  return mx.stack(out, 1)
end

-- A batch of prompts of different lengths, padded at the left, together to their ends.
local function padded(model, how)
  local rows = lm.padded{long["0:20"]:tolist(), short["0:9"]:tolist()}
  local c = lm.caches(model, {padding = {0, 11}})
  local scores = model(rows, c)
  near(how .. ": long", scores[0], golden["long.logits"]["0:20"])
  near(how .. ": short", scores:index(1, "11:20"), golden["short.logits"]["0:9"])
  local rest = mx.stack({long["20:24"], short["9:13"]}, 0)
  scores = decode(c, rest, 0, 4)
  near(how .. ": long, decoded", scores[0], golden["long.logits"]["20:24"])
  near(how .. ": short, decoded", scores[1], golden["short.logits"]["9:13"])
end

if brief then
  if name ~= "llama_dynamic" then padded(model, "padded") end
  print(("%-14s %.1e"):format(name, worst))
  return
end

-- Uncached: all tokens at once.
near("uncached", model(batch(long), lm.caches(model))[0], golden["long.logits"])
near("uncached, short", model(batch(short), lm.caches(model))[0], golden["short.logits"])
if name == "llama_dynamic" then -- its keys depend on the length at which they were made: no other way is the same
  print(("%-14s %.1e"):format(name, worst))
  return
end

-- In chunks, one token at a time, and compiled.
local function parts(model, caches, tokens, sizes)
  local out, at = {}, 0
  for _, n in ipairs(sizes) do
    out[#out + 1] = model(batch(tokens[("%d:%d"):format(at, at + n)]), caches)[0]
    at = at + n
  end
  return mx.concatenate(out, 0)
end
near("chunks", parts(model, lm.caches(model), long, {7, 9, 5, 3}), golden["long.logits"])
near("cached", parts(model, lm.caches(model), long, {5, 1, 1, 1, 1, 1, 1, 1, 12}), golden["long.logits"])

local caches = lm.caches(model)
model(batch(long["0:5"]), caches)
near("compiled", decode(caches, batch(long), 5, 18)[0], golden["long.logits"]["5:18"])
caches = lm.caches(model)
model(batch(long["0:14"]), caches)
near("compiled, later", decode(caches, batch(long), 14, 16)[0], golden["long.logits"]["14:16"])
near("compiled, then chunks", model(batch(long["16:24"]), caches:resting())[0], golden["long.logits"]["16:24"])

padded(model, "padded")
caches = lm.caches(model)
model(mx.stack({long["0:6"], short["0:6"], long["0:6"]}, 0), caches)
local three = decode(caches, mx.stack({long["6:9"], short["6:9"], long["6:9"]}, 0), 0, 3)
near("three", three[1], golden["short.logits"]["6:9"])
near("three", three[2], golden["long.logits"]["6:9"])

-- One trace for all positions, caches of all sizes, one and three examples; padded batches have an input more.
local about = tostring(compiled:explain())
local traces = tonumber(about:match("(%d+) traces?"))
if traces ~= 2 then error(("%s: the step was traced %s times, want 2\n%s"):format(name, tostring(traces), about), 0) end

-- A prompt saved and loaded, and the model saved by its own names and loaded.
caches = lm.caches(model)
model(batch(long["0:17"]), caches)
caches:save(dir .. "/prompt.safetensors")
caches = lm.caches(model, {file = dir .. "/prompt.safetensors"})
near("prompt file", model(batch(long["17:24"]), caches)[0], golden["long.logits"]["17:24"])
lm.save(model, dir .. "/again")
near("saved", lm.load(dir .. "/again")(batch(long), lm.caches(model))[0], golden["long.logits"])

print(("%-14s %.1e"):format(name, worst))
