-- mlxlua lm bench: how many tokens a second a model reads, and goes on with, alone and in rows of several texts.
local mx, lm = require("mx"), require("lm")
local command, numbers, Rows = require("lm.command"), require("lm.numbers"), require("lm.rows")
local fail = command.fail

local commands = {}

commands.bench = {
  about = "Measures tokens a second, the best of some runs: a prompt that is read, and texts that are gone on with.",
  rows = command.with(command.model, {
    {"prompt-tokens", "count", "tokens of the prompt", short = "-p", default = 512},
    {"generation-tokens", "count", "tokens of each answer", short = "-g", default = 128},
    {"batch-size", "count", "how many texts are gone on with at once; may be repeated", short = "-b", many = true},
    {"num-trials", "count", "runs", short = "-n", default = 3},
  }),
}

function commands.bench.run(host, o)
  if o.prompt_tokens < 2 or o.generation_tokens < 1 or o.num_trials < 1 then
    fail("a prompt of two tokens, an answer of one and one run are the least")
  end
  local batches, most = o.batch_size or {1}, 1
  for _, n in ipairs(batches) do
    if n < 1 then fail("--batch-size %d: want at least 1", n) end
    most = math.max(most, n)
  end
  local model = command.load(host, o)
  local size = math.min(numbers.size(model), 2 ^ 20)
  local prompt = mx.expand_dims((mx.arange(o.prompt_tokens) * 37 + 5) % size, 0)
  local rows = Rows(model, most, {})
  local caches
  local function best(f)
    local least = math.huge
    for _ = 1, o.num_trials do
      local began = mx.clock()
      f()
      least = math.min(least, mx.clock() - began)
    end
    return least
  end
  local seconds = best(function()
    caches = rows:fresh()
    mx.eval(lm.prefill(model, prompt, caches), caches:arrays())
  end)
  host.write(("prompt %d: %.1f tokens a second\n"):format(o.prompt_tokens, o.prompt_tokens / seconds))
  for _, n in ipairs(batches) do
    local tokens = {}
    for i = 1, n do
      rows:join(caches, o.prompt_tokens + o.generation_tokens * o.num_trials + 1)
      tokens[i] = (i * 31) % size
    end
    local _, chosen = rows:step(tokens) -- which traces the step
    tokens = chosen:tolist()
    seconds = best(function()
      for _ = 1, o.generation_tokens do
        _, chosen = rows:step(tokens)
        tokens = chosen:tolist()
      end
    end)
    host.write(("answers %d x %d: %.1f tokens a second\n"):format(n, o.generation_tokens,
      n * o.generation_tokens / seconds))
    for i = n, 1, -1 do rows:leave(i) end
  end
  host.write(command.peak())
  return 0
end

return commands
