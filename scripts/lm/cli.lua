-- The commands of `mlxlua lm`. run(arguments, host) is one of them; what it needs of the program around it is in the
-- table host, of which all is optional: write(text), note(text) for what is not the answer, terminal (whether notes go
-- to one), interrupted(), which is true once after Ctrl-C, and ask(prompt), a line of the user's, or nil at the end.
local options, command = require("lm.options"), require("lm.command")
local talk, convert = require("lm.talk"), require("lm.convert")

local commands, order = {}, {"generate", "chat", "convert", "quantize", "perplexity", "show"}
for _, name in ipairs(order) do commands[name] = talk[name] or convert[name] end

local function usage()
  local out = {"usage: mlxlua lm COMMAND [options]"}
  for _, name in ipairs(order) do out[#out + 1] = ("  %-12s %s"):format(name, commands[name].about) end
  out[#out + 1] = "mlxlua lm COMMAND --help lists a command's options.\n"
  return table.concat(out, "\n")
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
  local text = type(status) == "string" and status:match("^lm[:.].*$")
  if text then status = {usage = text:gsub("^lm: ", "")} end
  if type(status) ~= "table" or not status.usage then error(status, 0) end
  host.note(("mlxlua lm: %s\n"):format(status.usage))
  return 1
end

return {run = run, commands = commands}
