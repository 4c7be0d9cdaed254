-- Answers each number of steps on stdin with seconds and the peak in MiB: see train.py.
-- train_serve.lua mlp|gpt eager|compiled
local mx = require("mx")
local here = debug.getinfo(1, "S").source:match("^@?(.*[/\\])") or "./"
local step = assert(loadfile(here .. "train.lua"))(...)
for line in io.lines() do
  mx.reset_peak_memory()
  local start = mx.clock()
  for _ = 1, tonumber(line) do step() end
  print(mx.clock() - start, mx.get_peak_memory() / 2 ^ 20)
  io.stdout:flush()
end
