-- What the commands of `mlxlua lm` share: see lm.cli.
local mx, lm = require("mx"), require("lm")
local files, fail = require("lm.host"), require("lm.options").fail

local command = {fail = fail}

-- bar gives a function (done, all) that shows progress in one line, and takes the line away when all is done. unit says
-- what is counted, and how many make one.
function command.bar(host, label, unit, size)
  if not host.terminal then return nil end
  return function(done, all)
    if done >= all then return host.note("\r\27[K") end
    local n, of = math.floor(30 * done / all), size or 1
    host.note(("\r%s [%s%s] %d/%d%s"):format(label, ("#"):rep(n), (" "):rep(30 - n), done / of, all / of, unit or ""))
  end
end

-- ignore_key is an option of all commands that load a model.
command.ignore_key = {"ignore-key", "text", "a key of config.json to leave out of account; may be repeated",
  many = true}

-- model are the options that say which model.
command.model = {
  {"model", "text", "a model directory, a .gguf file, or a repository that mlxlua lm pull has downloaded"},
  {"tokenizer", "text", "a directory or a .gguf file with another tokenizer"},
  command.ignore_key,
}

-- with joins lists of options.
function command.with(...)
  local out = {}
  for _, rows in ipairs{...} do
    for _, row in ipairs(rows) do out[#out + 1] = row end
  end
  return out
end

-- read is all of a file.
function command.read(path)
  local text, why = files.read(path)
  return text or fail("%s", why)
end

-- load is the model of a command's options; options.lazy and options.blocks are those of lm.load.
function command.load(host, o, options)
  if not o.model then fail("--model is needed") end
  return lm.load(o.model, {progress = command.bar(host, "loading"), ignore = o.ignore_key,
    lazy = options and options.lazy, blocks = options and options.blocks})
end

-- peak is the figure of memory at the end. Weights that lie in the pages of files are no memory of the device's.
function command.peak()
  return ("Peak memory: %.3f GB beside the pages of files\n"):format(mx.get_peak_memory() / 1e9)
end

return command
