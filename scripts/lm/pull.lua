-- mlxlua lm pull: a model of the hub becomes one of the cache. Only the program around the scripts can download:
-- host.pull(request, progress, note) gives the path of the model, or nil, why, and whether Ctrl-C has ended it.
local command = require("lm.command")
local fail = command.fail

local commands = {}

commands.pull = {
  about = "Downloads what a model needs into the cache, where --model NAME finds it, and prints its path.\n" ..
    "HF_HOME or HF_HUB_CACHE say where that is, HF_ENDPOINT which hub is asked, and HF_TOKEN who asks.\n" ..
    "After Ctrl-C the same command goes on from what has come.",
  rows = {
    {"name", "text", "the repository: org/name", place = true},
    {"revision", "text", "a branch, a tag or a commit", default = "main"},
    {"gguf", "text", "a .gguf file by its name or a part of it, such as Q4_K_M"},
  },
}

function commands.pull.run(host, o)
  if not o.name then fail("the name of a repository is needed, such as org/name") end
  if not host.pull then fail("this program downloads nothing") end
  local progress = command.bar(host, "pulling", " MB", 1e6)
  local clear = host.terminal and "\r\27[K" or ""
  local path, why, interrupted = host.pull({name = o.name, revision = o.revision, gguf = o.gguf}, function(done, all)
    if progress then progress(done, all) end
  end, function(text) host.note(clear .. text .. "\n") end)
  host.note(clear)
  if not path then error({usage = why, status = interrupted and 130 or 1}, 0) end
  host.write(path .. "\n")
  return 0
end

return commands
