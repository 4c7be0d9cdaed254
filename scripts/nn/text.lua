-- Modules as text, as MLX prints them.
local _, _, _, use = ...

local class, walk = use("class"), use("module")
local Module = class.Module

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

-- text is a module's text; above are those that it is in: one that contains itself is in its text once.
local function text(self, above)
  local place = above
  while place do
    if place.table == self then return self.__name .. "(...)" end
    place = place.above
  end
  above = {table = self, above = above}
  local out = {self.__name, "(", self._extra_repr and self:_extra_repr() or ""}
  local names, found = walk.below("Module", self, "", {}, {})
  for i, name in ipairs(names) do
    local shown = getmetatable(found[i]).__tostring -- tostring would not tell it what is above
    local inner = shown == Module.__tostring and shown(found[i], above) or tostring(found[i])
    out[#out + 1] = "\n  (" .. name .. "): " .. inner:gsub("\n", "\n  ")
  end
  out[#out + 1] = #names > 0 and "\n)" or ")"
  return table.concat(out)
end

class.printing.text = text

return {described = described, float = float}
