-- Modules as text, as MLX prints them.
local _, _, _, use = ...

local class, walk = use("class"), use("module")

-- python is a value as Python prints it.
local function python(v)
  local kind = type(v)
  if kind == "boolean" then return v and "True" or "False" end
  if kind == "nil" then return "None" end
  if kind == "table" then
    local out = {}
    for i = 1, #v do out[i] = python(v[i]) end
    return "(" .. table.concat(out, ", ") .. (#v == 1 and ",)" or ")")
  end
  if kind ~= "number" then return tostring(v) end
  for digits = 15, 17 do
    local text = ("%." .. digits .. "g"):format(v)
    if tonumber(text) == v then return text end
  end
  return tostring(v)
end

-- float is a number as Python prints a float.
local function float(v)
  local out = python(v)
  if out:match("^-?%d+$") then out = out .. ".0" end
  return out
end

-- described is what the text of a module says of its settings: "dims, eps=eps", with its fields of those names, and
-- of
-- values beside them.
local function described(self, settings, values)
  local out = {}
  for name, eq, key in settings:gmatch("([%w_]+)(=?)([%w_]*)") do
    local v
    if values and values[name] ~= nil then v = values[name] else v = self[eq == "=" and key ~= "" and key or name] end
    out[#out + 1] = eq == "=" and name .. "=" .. python(v) or python(v)
  end
  return table.concat(out, ", ")
end

local printed = {} -- the modules whose text is being made

local function text(self)
  local out = {self.__name, "(", self._extra_repr and self:_extra_repr() or ""}
  local names, found = walk.below(self, "", {}, {})
  for i, name in ipairs(names) do
    out[#out + 1] = "\n  (" .. name .. "): " .. tostring(found[i]):gsub("\n", "\n  ")
  end
  out[#out + 1] = #names > 0 and "\n)" or ")"
  return table.concat(out)
end

-- A module that contains itself is in its text once.
function class.printing.text(self)
  if printed[self] then return self.__name .. "(...)" end
  printed[self] = true
  local ok, out = pcall(text, self)
  printed[self] = nil
  if not ok then error(out, 0) end
  return out
end

return {described = described, float = float}
