-- Options of a command: --name VALUE, --name=VALUE, -n VALUE.
local host = require("lm.host")

local options = {}

-- fail ends a command with a message, and the status 1.
local function fail(text, ...) error({usage = text:format(...)}, 0) end
options.fail = fail

-- kinds turn an option's text into its value.
local kinds = {}

function kinds.number(name, text)
  local v = tonumber(text)
  if not v then fail("%s %s: want a number", name, text) end
  return v
end

function kinds.count(name, text)
  local v = tonumber(text)
  if not v or v < 0 or v ~= math.floor(v) then fail("%s %s: want an integer that is not negative", name, text) end
  return v
end

function kinds.text(_, text) return text end

function kinds.boolean(name, text)
  local v = ({["true"] = true, t = true, ["1"] = true, yes = true, ["false"] = false, f = false, ["0"] = false,
    no = false})[text:lower()]
  if v == nil then fail("%s %s: want true or false", name, text) end
  return v
end

function kinds.json(name, text)
  local v, why = host.decode(text)
  if v == nil or type(v) ~= "table" then fail("%s %s: %s", name, text, why or "want a JSON object") end
  return v
end

-- bias is {"id=number,id=number"} or a JSON object.
function kinds.bias(name, text)
  local out = {}
  if text:match("^%s*{") then
    for id, v in pairs(kinds.json(name, text)) do
      if not id:match("^%d+$") then fail("%s: %s is no token's number", name, id) end
      if type(v) ~= "number" then fail("%s: want a number for token %s, not %s", name, id, tostring(v)) end
      out[tonumber(id)] = v
    end
    return out
  end
  for part in text:gmatch("[^,]+") do
    local id, v = part:match("^%s*(%d+)%s*=%s*(%S+)%s*$")
    if not tonumber(v) then fail("%s %s: want token=number,...", name, text) end
    out[tonumber(id)] = tonumber(v)
  end
  return out
end

-- parse reads arguments by rows {name, kind, help, default = v, short = "-m", many = true}: a row of kind "flag" has no
-- value, and one with place = true is given by its place, without its name. It gives the values by names, in which "-"
-- is "_".
function options.parse(rows, arguments)
  local by, out, places = {}, {}, {}
  for _, row in ipairs(rows) do
    if row.place then places[#places + 1] = row end
    by["--" .. row[1]] = not row.place and row or nil
    if row.short then by[row.short] = row end
    if row.also then by["--" .. row.also] = row end
    out[row[1]:gsub("-", "_")] = row.default
  end
  local i = 1
  while i <= #arguments do
    local a = arguments[i]
    local name, value = a:match("^(%-%-[^=]+)=(.*)$")
    name = name or a
    local row = by[name]
    if not row and not a:match("^-") then row = table.remove(places, 1) end
    if not row then fail("unrecognized argument %s", a) end
    local key = row[1]:gsub("-", "_")
    if row.place then
      out[key] = kinds[row[2]](row[1]:upper(), a)
    elseif row[2] == "flag" then
      if value then fail("%s takes no value", name) end
      out[key] = true
    else
      if not value then
        i = i + 1
        value = arguments[i]
        if value == nil then fail("%s needs a value", name) end
      end
      value = kinds[row[2]](name, value)
      if row.many then
        out[key] = out[key] or {}
        table.insert(out[key], value)
      else
        out[key] = value
      end
    end
    i = i + 1
  end
  return out
end

-- usage is the text of --help.
function options.usage(command, about, rows)
  local places = ""
  for _, row in ipairs(rows) do
    if row.place then places = places .. row[1]:upper() .. " " end
  end
  local out = {("usage: mlxlua lm %s %s[options]\n%s\n"):format(command, places, about)}
  for _, row in ipairs(rows) do
    local name = "--" .. row[1] .. (row[2] == "flag" and "" or " " .. row[2]:upper())
    if row.place then name = row[1]:upper() end
    if row.short then name = row.short .. ", " .. name end
    local default = row.default ~= nil and (" (%s)"):format(tostring(row.default)) or ""
    out[#out + 1] = ("  %-30s %s%s"):format(name, row[3], default)
  end
  return table.concat(out, "\n") .. "\n"
end

return options
