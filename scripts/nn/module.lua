-- What every module can do with its parameters and layers.
local mx, _, fail, use, core = ...

local class = use("class")
local Module, is_module, is_tree = class.Module, class.is_module, class.is_tree
local is_array, trees = core.is_array, core.trees

-- members are a table's names and values in the order of their making; of a module, its parameters and layers only.
local function members(t)
  local names, values = {}, {}
  local module = is_module(t)
  for k, v in pairs(t) do
    if not module or k ~= "_no_grad" and (is_array(v) or is_tree(v)) then
      names[#names + 1], values[#values + 1] = k, v
    end
  end
  return names, values
end

-- member is the name that a path has for a key: lists count from 0 there, as in MLX's files.
local function member(path, key)
  if type(key) == "number" then key = key - 1 end
  if path == "" then return tostring(key) end
  return path .. "." .. tostring(key)
end

-- private reports whether a name begins with an underscore, as "`" follows "_".
local function private(name) return name >= "_" and name < "`" end

function Module.is_module(v) return is_module(v) end

function Module.valid_child_filter(_, _, value) return type(value) == "table" end

function Module.valid_parameter_filter(_, key, value)
  return (type(value) == "table" or is_array(value)) and not private(key)
end

function Module.trainable_parameter_filter(module, key, value)
  return Module.valid_parameter_filter(module, key, value) and not module._no_grad[key]
end

local valid, trainable = Module.valid_parameter_filter, Module.trainable_parameter_filter

local function same(v) return v end

local function not_a_table(_, _, v) return type(v) ~= "table" end

-- wants fails for an argument that is no function.
local function wants(op, name, f)
  if core.callable(f) then return end
  fail(op, ("%s is %s, want a function"):format(name, f == nil and "missing" or "a " .. mx.type(f)))
end

local parameters_of

-- inside fails for a module or a table that contains itself: above are those that it is in. It is above for what the
-- table contains.
local function inside(op, t, above)
  local place = above
  while place do
    if place.table == t then
      fail(op, ("a %s contains itself, so that its tree has no end"):format(is_module(t) and t.__name or "table"))
    end
    place = place.above
  end
  return {table = t, above = above}
end

-- mapped is a value of a module, filtered and mapped; path names it in there.
local function mapped(module, path, value, filter, map, is_leaf, above)
  if is_leaf(module, path, value) then return map(value) end
  if map == same and is_leaf == not_a_table and is_module(value) then return parameters_of(value, filter, above) end
  if is_module(value) then return value:filter_and_map(filter, map, is_leaf, above) end
  local out = {}
  above = inside("Module.filter_and_map", value, above)
  for k, v in pairs(value) do
    local name = member(path, k)
    if filter(module, name, v) then
      out[k] = mapped(module, name, v, filter, map, is_leaf, above)
    else
      out[k] = {}
    end
  end
  return out
end

-- filter_and_map is a tree of what filter(module, name, value) is true of, with map(value) for each value of which
-- is_leaf(module, name, value) is true: those that are no tables.
function Module:filter_and_map(filter, map, is_leaf, above)
  wants("Module.filter_and_map", "filter_fn", filter)
  wants("Module.filter_and_map", "map_fn", map or same)
  wants("Module.filter_and_map", "is_leaf_fn", is_leaf or not_a_table)
  above = inside("Module.filter_and_map", self, above)
  map, is_leaf = map or same, is_leaf or not_a_table
  local out = {}
  local names, values = members(self)
  for i, name in ipairs(names) do
    local path = member("", name)
    if filter(self, path, values[i]) then
      out[name] = mapped(self, path, values[i], filter, map, is_leaf, above)
    end
  end
  return out
end

local filtered = Module.filter_and_map

-- parameters_of is module:filter_and_map(filter), where the filter is valid or trainable: each step asks for these, and
-- needs no path to an array for it.
function parameters_of(module, filter, above)
  if filter ~= valid and filter ~= trainable or module.filter_and_map ~= filtered then
    return module:filter_and_map(filter, nil, nil, above)
  end
  above = inside("Module.parameters", module, above)
  local out, nested = trees.own(module, filter == trainable and module._no_grad)
  for i = 1, nested and #nested or 0, 2 do
    local k = nested[i]
    out[k] = mapped(module, nested[i + 1], out[k], filter, same, not_a_table, above)
  end
  return out
end

function Module:parameters() return parameters_of(self, Module.valid_parameter_filter) end

function Module:trainable_parameters() return parameters_of(self, Module.trainable_parameter_filter) end

function Module:children()
  return self:filter_and_map(Module.valid_child_filter, nil, function(_, _, v) return is_module(v) end)
end

-- below appends the names and objects of the modules that t holds directly or in plain tables.
local function below(op, t, path, names, found, above)
  above = inside(op, t, above)
  local keys, values = members(t)
  for i, k in ipairs(keys) do
    local name, v = member(path, k), values[i]
    if is_module(v) then
      names[#names + 1], found[#found + 1] = name, v
    elseif type(v) == "table" then
      below(op, v, name, names, found, above)
    end
  end
  return names, found
end

function Module:leaf_modules()
  return self:filter_and_map(Module.valid_child_filter, nil, function(_, _, v)
    return is_module(v) and #below("Module.leaf_modules", v, "", {}, {}) == 0
  end)
end

-- apply_to_modules calls f(name, module) for the module, whose name is "", and for all below it.
function Module:apply_to_modules(f)
  wants("Module.apply_to_modules", "apply_fn", f)
  local names, found, places = {""}, {self}, {{table = self}}
  while #found > 0 do
    local name, m, place = table.remove(names), table.remove(found), table.remove(places)
    f(name, m)
    below("Module.apply_to_modules", m, name, names, found)
    for i = #places + 1, #found do places[i] = inside("Module.apply_to_modules", found[i], place) end
  end
  return self
end

function Module:modules()
  local out = {}
  self:apply_to_modules(function(_, m) out[#out + 1] = m end)
  return out
end

-- named_modules is a table of pairs {name, module}.
function Module:named_modules()
  local out = {}
  self:apply_to_modules(function(name, m) out[#out + 1] = {name, m} end)
  return out
end

-- absent fails for a name of a tree that its destination does not have.
local function absent(op, dst, key)
  if type(key) == "number" then
    fail(op, ("the list has %d elements, not element %d"):format(#dst, key))
  end
  fail(op, ("the module has no module %q"):format(tostring(key)))
end

local function wants_table(op, name, t)
  if type(t) ~= "table" then fail(op, ("%s is a %s, want a table"):format(name, mx.type(t))) end
end

-- update replaces the parameters that a tree of them has. With strict = false, names that the module has not are
-- passed
-- over.
function Module:update(parameters, strict)
  strict = class.option("Module.update", strict, "strict")
  wants_table("Module.update", "parameters", parameters)
  trees.update(self, parameters, strict ~= false)
  return self
end

local function update_modules(dst, modules, strict)
  local names, values = members(modules)
  for i, k in ipairs(names) do
    local now, new = rawget(dst, k), values[i]
    if is_module(now) and is_module(new) then
      dst[k] = new
    elseif type(now) == "table" and type(new) == "table" then
      update_modules(now, new, strict)
    elseif strict and now == nil then
      absent("Module.update_modules", dst, k)
    elseif strict and (type(new) ~= "table" or next(new) ~= nil) then
      fail("Module.update_modules", ("%s is a %s, want a module"):format(tostring(k), mx.type(new)))
    end
  end
end

-- update_modules replaces the modules that a tree of them has.
function Module:update_modules(modules, strict)
  strict = class.option("Module.update_modules", strict, "strict")
  wants_table("Module.update_modules", "modules", modules)
  update_modules(self, modules, strict ~= false)
  return self
end

-- apply replaces each parameter x by f(x); those of which filter(module, name, x) is true.
function Module:apply(f, filter)
  filter = class.option("Module.apply", filter, "filter_fn") or Module.valid_parameter_filter
  wants("Module.apply", "map_fn", f)
  wants("Module.apply", "filter_fn", filter)
  return self:update(self:filter_and_map(filter, f))
end

-- flat lists a tree's arrays by their names in files: {name, array, the table that has it, its key there}.
local function flat(t, path, out)
  for k, v in pairs(t) do
    local name = member(path, k)
    if is_array(v) then
      out[#out + 1] = {name, v, t, k}
    elseif type(v) == "table" then
      flat(v, name, out)
    end
  end
  return out
end

return {inside = inside, below = below, flat = flat}
