-- The classes of mx.nn. An object is a plain table with its class as metatable: its parameters, its layers and its
-- settings are its fields, so that it is a tree as every table is. Two fields are the module's own: training, a
-- boolean,
-- and _no_grad, the names of the frozen parameters.
local _, define, fail, _, core = ...

local is_module, is_tree = core.is_module, core.is_tree
local Module = {__name = "Module", __module = true}

-- An object that its parent's constructor has not filled has the parent's name in this field.
local UNFILLED = "_unfilled"

-- parent is the layer of mx.nn that a class of a script stands on, if there is one that has fields to fill.
local function parent(class)
  local c = class
  while c and not rawget(c, "__fills") do
    local above = getmetatable(c)
    c = above and above.__index
  end
  return c ~= class and c or nil
end

local function construct(class, ...)
  local above = parent(class)
  local self = setmetatable({training = true, _no_grad = {}, [UNFILLED] = above and above.__name}, class)
  class.init(self, ...)
  return self
end

-- complete gives the results of a call, or its error, with what may be wrong as the object's parent has not filled it.
local function complete(self, ok, ...)
  if ok then return ... end
  local why, above = (...), rawget(self, UNFILLED)
  local text = tostring(why)
  if text:find("attempt to", 1, true) or text:find("is missing", 1, true) then
    fail(getmetatable(self).__name, ("its init does not call nn.%s.init(self, ...), so that it has no fields of " ..
      "nn.%s's: %s"):format(above, above, text))
  end
  error(why, 0)
end

local function call(self, ...)
  local forward = self.forward
  if forward == nil then
    fail("Module", ("%s has no method forward(...), which is what a call does"):format(getmetatable(self).__name))
  end
  if rawget(self, UNFILLED) then return complete(self, pcall(forward, self, ...)) end
  return forward(self, ...)
end

local printing = {} -- text.lua sets printing.text

local function text(self, above)
  if rawget(self, UNFILLED) then return complete(self, pcall(printing.text, self, above)) end
  return printing.text(self, above)
end

-- enter makes c a class below another one.
local function enter(c, parent)
  c.__call, c.__tostring = call, text
  c.__index = function(self, key)
    if key == "state" then return self end
    return c[key]
  end
  local function name() return "class " .. c.__name end
  return setmetatable(c, {__index = parent, __call = construct, __tostring = name})
end

enter(Module, nil)

function Module.init() end

local function class(name, parent)
  return enter({__name = name, __module = true}, parent or Module)
end

define{
  name = "class", sig = "name:string parent:table?",
  help = "A class of modules with that name: function C:init(...) ... end fills a new object's fields, function " ..
    "C:forward(...) ... end is what calling the object does, and C(...) makes one. It has what nn.Module has, " ..
    "or what " ..
    "parent has: C:init of a class below nn.Linear begins with nn.Linear.init(self, 4, 2).",
  call = class,
}

define{
  name = "Module", sig = "", class = Module,
  help = "What all layers and models are: a table whose fields are arrays (parameters), other modules, plain " ..
    "tables of " ..
    "these, and settings. Make a class of your own by nn.class. Methods as in MLX: parameters, " ..
    "trainable_parameters, " ..
    "children, leaf_modules, modules, named_modules, update, update_modules, apply, apply_to_modules, " ..
    "filter_and_map, " ..
    "freeze, unfreeze, train, eval, set_dtype, load_weights, save_weights. m.training is false after m:eval(); " ..
    "m.state " ..
    "is m itself.",
  call = function() return construct(Module) end,
}

-- is_keywords reports whether an argument is a table of keywords.
local function is_keywords(t) return type(t) == "table" and getmetatable(t) == nil and #t == 0 end

-- unknown fails for a keyword that a function does not have.
local function unknown(op, key, names)
  fail(op, ("unknown keyword %q; it takes %s"):format(tostring(key), table.concat(names, ", ")))
end

-- spread are the arguments of a call, those in a last table of keywords in the places that names gives them.
local function spread(op, names, ...)
  local n = select("#", ...)
  if n == 0 or not is_keywords((select(n, ...))) then return ... end
  local out = {...}
  local keywords, places = out[n], {}
  out[n] = nil
  for i, name in ipairs(names) do places[name] = i end
  for k, v in pairs(keywords) do
    local i = places[k]
    if not i then unknown(op, k, names) end
    if i < n then fail(op, k .. " is given twice") end
    out[i] = v
  end
  return unpack(out, 1, #names)
end

-- listed are the names in a text.
local function listed(text)
  local out = {}
  for name in text:gmatch("%S+") do out[#out + 1] = name end
  return out
end

-- taking is f(first, ...), whose other arguments may come by their names too.
local function taking(op, text, f)
  local names = listed(text)
  return function(first, ...) return f(first, spread(op, names, ...)) end
end

-- option is the value of a parameter that stands alone: given in its place, or as a keyword.
local function option(op, t, name)
  if not is_keywords(t) then return t end
  for k in pairs(t) do
    if k ~= name then unknown(op, k, {name}) end
  end
  return t[name]
end

-- sizes are the parameters of a constructor that are sizes or counts, with their least values: 1, but for those that
-- may be nothing, as paddings and the names in empty.
local function sizes(sig, empty)
  local out, i, none = {}, 0, {}
  for _, name in ipairs(listed(empty)) do none[name] = true end
  for name, kind in sig:gmatch("([%w_]+):(%a+)") do
    i = i + 1
    if kind == "int" or kind == "ints" then
      none[name] = none[name] or name:find("padding", 1, true) or name:find("^num_.*layers$")
      out[#out + 1] = {i, name, none[name] and 0 or 1}
    end
  end
  return out
end

-- check_sizes fails for a size that is too small.
local function check_sizes(op, sizes, ...)
  local given = {...}
  for k = 1, #sizes do
    local size = sizes[k]
    local n = given[size[1]]
    if type(n) == "table" then n = n[1] and math.min(unpack(n)) end
    if n and n < size[3] then fail(op, ("%s is %d, want at least %d"):format(size[2], n, size[3])) end
  end
end

-- layer makes a class of mx.nn of its description: name, sig and help are those of its constructor, init is told the
-- constructor's arguments, forward is what calling an object does, with the parameters takes, repr is what an object's
-- text says of it. The sizes with the names empty may be 0.
local function layer(d)
  local c = class(d.name, d.parent)
  local init, object = d.init or function() end, nil
  local sizes = sizes(d.sig or "", d.empty or "")
  c.__fills = d.init and true
  local make = define{
    name = d.name, sig = d.sig or "", help = d.help, class = c,
    call = function(...)
      local self = object
      object = nil
      check_sizes(d.name, sizes, ...)
      init(self, ...)
      if rawget(self, UNFILLED) == d.name then self[UNFILLED] = nil end
    end,
  }
  function c:init(...)
    object = self
    make(...)
  end
  local forward = d.takes and taking(d.name, d.takes, d.forward) or d.forward
  if forward then
    function c:forward(...) return forward(self, ...) end
  end
  c._extra_repr = d.repr
  return c
end

return {Module = Module, layer = layer, is_module = is_module, is_tree = is_tree,
  taking = taking, option = option, printing = printing}
