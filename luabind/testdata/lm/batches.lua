-- batches.lua FOLDER NAME DIRECTORY SIZES FIRST LAST decodes with the model of a golden file in batches of these sizes,
-- "16 17 32", whose rows are the golden file's two prompts in turns, the tokens FIRST to LAST. All steps replay one
-- trace and answer as transformers. Without sizes it only makes the directory, which is kept.
local mx, lm, host = require("mx"), require("lm"), require("lm.host")
local folder, name, dir, sizes, first, last = ...
first, last = tonumber(first), tonumber(last)
package.path = folder .. "/?.lua;" .. package.path
local weights = require("weights")

local golden = weights.golden(folder, name)
if not host.kind(dir) then weights.write(dir, weights.arrays(golden), golden.config) end
if not first then return end
local model = lm.load(dir)
local step, compiled = lm.step(model), nil
local prompts, logits = {}, {}
for i, key in ipairs{"long", "short"} do
  prompts[i], logits[i] = golden[key .. ".tokens"]["0:13"], golden[key .. ".logits"]:index("0:13", "0:32")
end
prompts, logits = mx.stack(prompts, 0), mx.stack(logits, 0)

-- two is what the first two rows say; all others are checked to say the same as one of them.
local function two(scores, batch)
  local turns = mx.arange(batch) % 2
  local d = mx.max(mx.abs(scores - scores[turns])):item()
  if not (d <= 2e-5) then error(("%s: of %d rows two that should be equal differ by %g"):format(name, batch, d), 0) end
  return scores["0:2"]
end

for size in sizes:gmatch("%d+") do
  local batch = tonumber(size)
  local tokens = prompts[mx.arange(batch) % 2]
  local caches = lm.caches(model)
  two(model(tokens:index(":", ("0:%d"):format(first)), caches), batch)
  local all = {}
  for at = first, last do
    all[#all + 1], _, compiled = step(tokens:index(":", at), caches)
    mx.async_eval(all[#all], caches:arrays())
  end
  for i, scores in ipairs(all) do
    local d = mx.max(mx.abs(two(scores, batch):index(":", "0:32") - logits:index(":", first + i - 1))):item()
    -- of llama_dynamic the golden keys are those of a longer text
    if not (d <= 2e-5) and name ~= "llama_dynamic" then
      error(("%s: batch of %d, token %d: off by %g"):format(name, batch, first + i - 1, d), 0)
    end
  end
end

local about = tostring(compiled:explain())
local traces = tonumber(about:match("(%d+) traces?"))
if traces ~= 1 then error(("%s: the step was traced %s times, want 1\n%s"):format(name, tostring(traces), about), 0) end
print(name, about:match("[^\n]*"))
