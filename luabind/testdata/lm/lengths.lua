-- lengths.lua FOLDER NAME DIRECTORY: beyond the length that a model was made for, a text read in chunks, token by token,
-- again, from a file or in a batch answers as transformers does to the text as a whole, or is refused. See lengths.py.
local mx, lm, host = require("mx"), require("lm"), require("lm.host")
local folder, name, dir = ...
package.path = folder .. "/?.lua;" .. package.path
local weights = require("weights")

local f = assert(io.open(folder .. "/keys/lengths.json"))
local all = host.decode(f:read("*a"))
f:close()
local golden = weights.golden(folder, name)
local model = lm.load(weights.write(dir, weights.arrays(golden), golden.config))
local alone, words = all[name].alone, mx.array(all.words, mx.int32)

local function list(from, to) return {unpack(all.tokens, from + 1, to)} end
local function batch(from, to) return mx.array({list(from, to)}, mx.int32) end
local function near(how, scores, want) -- scores (vocabulary)
  if not want then return end
  local d = mx.max(mx.abs(scores:take(words) - mx.array(want))):item()
  if not (d <= 2e-5) then error(("%s: %s: off by %g"):format(name, how, d), 0) end
end
local function last(scores, row) return scores:index(row or 0, -1) end
local function refused(f, ...)
  local ok, why = pcall(f, ...)
  assert(not ok and tostring(why):find("is read at once, and not gone on with", 1, true), why)
end

for n, want in pairs(alone) do
  n = tonumber(n)
  near("whole, " .. n, last(model(batch(0, n), lm.caches(model))), want)
  near("prefill, " .. n, lm.prefill(model, batch(0, n), lm.caches(model), 5)[0], want)
end

-- decode says the tokens from..to - 1 one by one, each a replay of a trace.
local step = lm.step(model)
local function decode(how, caches, from, to)
  for i = from, to - 1 do
    local scores = step(batch(i, i + 1)[0], caches)
    near(("%s, %d"):format(how, i + 1), scores[0], alone[tostring(i + 1)])
  end
end

if name == "llama_dynamic" then
  local caches = lm.caches(model)
  model(batch(0, 7), caches)
  decode("decoded", caches, 7, 16)
  refused(step, batch(16, 17)[0], caches)
  refused(model, batch(16, 20), caches:resting())
  caches = lm.caches(model)
  lm.prefill(model, batch(0, 24), caches, 5)
  assert(not caches:trim(12))
  refused(step, batch(24, 25)[0], caches)
  print(name)
  return
end

local caches = lm.caches(model)
model(batch(0, 20), caches)
near("chunks", last(model(batch(20, 33), caches)), alone["33"])
near("chunks after", last(model(batch(33, 48), caches)), alone["48"])

caches = lm.caches(model)
model(batch(0, 5), caches)
decode("decoded", caches, 5, 48)
assert(caches:trim(16)) -- to 32 tokens
decode("trimmed, decoded", caches, 32, 34)
assert(caches:trim(10)) -- to 24, which are read again as the short text that they are
near("trimmed", last(model(batch(24, 32), caches:resting())), alone["32"])
decode("and beyond", caches, 32, 40)

caches:save(dir .. "/prompt")
caches = lm.caches(model, {file = dir .. "/prompt"})
decode("from a file", caches, 40, 48)
caches = lm.caches(model)
model(batch(0, 30), caches)
caches:save(dir .. "/short")
decode("from a file, beyond", lm.caches(model, {file = dir .. "/short"}), 30, 48)

-- A batch is long when its longest text is.
local rows, padding = lm.padded{list(0, all.lengths[1]), list(0, all.lengths[2])}
local function both(how, scores) -- (batch, vocabulary)
  for i = 1, 2 do near(("%s, row %d"):format(how, i), scores[i - 1], all[name].batch[i]) end
end
caches = lm.caches(model, {padding = padding})
both("batch", model(rows, caches):index(":", -1))
caches = lm.caches(model, {padding = padding})
model(rows:index(":", "0:28"), caches)
local scores
for i = 28, rows:dim(1) - 1 do scores = step(rows:index(":", i), caches) end
both("batch, decoded", scores)
print(name)
