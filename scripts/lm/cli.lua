-- The commands of `mlxlua lm`. run(arguments, host) is one of them; what it needs of the program around it is in the
-- table host, of which all is optional: write(text), note(text) for what is not the answer, terminal (whether notes go
-- to one), interrupted(), which is true once after Ctrl-C, input(), all of standard input, ask(prompt), a line of
-- the user's, or nil at the end, pull(request, progress, note), which downloads a model: see lm.pull, and
-- serve(options), which answers HTTP requests: see lm.server.
local options, command = require("lm.options"), require("lm.command")
local talk, convert, pull = require("lm.talk"), require("lm.convert"), require("lm.pull")
local server, bench = require("lm.server"), require("lm.bench")

local commands = {}
local order = {"generate", "chat", "server", "bench", "pull", "convert", "quantize", "perplexity", "show"}
for _, file in ipairs{talk, convert, pull, server, bench} do
  for name, c in pairs(file) do commands[name] = c end
end

local function usage()
  local out = {"usage: mlxlua lm COMMAND [options]"}
  for _, name in ipairs(order) do out[#out + 1] = ("  %-12s %s"):format(name, commands[name].about) end
  out[#out + 1] = "mlxlua lm COMMAND --help lists a command's options.\n"
  return table.concat(out, "\n")
end

-- told is an error as a line for users: a command's own, the package's, an op's. Of others, which are mistakes in the
-- scripts, it is nil.
local function told(e)
  if type(e) == "table" then return e.usage end
  if type(e) == "string" then return e:match("^lm: (.*)") or e:match("^lm%..*") end
  return e.op and e.message:gsub("^lm/%S+%.lua:%d+: ", "") or nil
end

local function run(arguments, host)
  host = host or {}
  host.write = host.write or function(text) io.write(text) io.flush() end
  host.note = host.note or function(text) io.stderr:write(text) end
  host.ask = host.ask or function(prompt)
    host.note(prompt)
    return io.read("*l")
  end
  local name = arguments[1]
  if name == nil or name == "--help" or name == "-h" or name == "help" then
    host.write(usage())
    return name == nil and 1 or 0
  end
  local chosen = commands[name]
  local ok, status = pcall(function()
    if not chosen then command.fail("there is no command %s: %s", name, table.concat(order, ", ")) end
    local rest = {unpack(arguments, 2)}
    for _, a in ipairs(rest) do
      if a == "--help" or a == "-h" then
        host.write(options.usage(name, chosen.about, chosen.rows))
        return 0
      end
    end
    return chosen.run(host, options.parse(chosen.rows, rest))
  end)
  if ok then return status end
  local text = told(status)
  if not text then error(status, 0) end
  host.note("mlxlua lm: " .. text .. "\n")
  return type(status) == "table" and status.status or 1
end

return {run = run}
