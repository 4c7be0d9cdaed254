-- What a module trains, whether it does, and its dtype.
local mx, _, fail, use = ...

local class, walk = use("class"), use("module")
local Module = class.Module

-- listed is names as a list: nil stays nil.
local function listed(keys)
  if type(keys) == "string" then return {keys} end
  return keys
end

-- check fails for keywords that a method does not have.
local function check(op, given, ...)
  if given ~= nil and type(given) ~= "table" then
    fail(op, ("the argument is a %s, want a table of %s"):format(mx.type(given), table.concat({...}, ", ")))
  end
  for k in pairs(given or {}) do
    local known = false
    for _, name in ipairs{...} do known = known or k == name end
    if not known then fail(op, ("unknown keyword %q; it takes %s"):format(tostring(k), table.concat({...}, ", "))) end
  end
  return given or {}
end

-- each calls f for a module, or for it and all modules below it; strict wants each of the keys in one of them.
local function each(op, self, keywords, f)
  keywords = check(op, keywords, "recurse", "keys", "strict")
  local keys = listed(keywords.keys)
  local all = keywords.recurse ~= false and self:modules() or {self}
  for _, key in ipairs(keywords.strict and keys or {}) do
    local found = false
    for _, m in ipairs(all) do found = found or rawget(m, key) ~= nil end
    if not found then fail(op, ("the module has no member %q"):format(key)) end
  end
  for _, m in ipairs(all) do f(m, keys) end
  return self
end

local function own(m, key, v) return not class.is_module(v) and Module.valid_parameter_filter(m, key, v) end

-- freeze has the parameters not trained: all, or those of the names keys; with recurse = false, only the module's
-- own.
function Module:freeze(keywords)
  return each("Module.freeze", self, keywords, function(m, keys)
    if keys == nil then
      keys = {}
      for _, p in ipairs(walk.flat(m:filter_and_map(own), "", {})) do keys[#keys + 1] = p[1] end
    end
    for _, key in ipairs(keys) do m._no_grad[key] = true end
  end)
end

-- unfreeze ends what freeze did.
function Module:unfreeze(keywords)
  return each("Module.unfreeze", self, keywords, function(m, keys)
    if keys == nil then m._no_grad = {} end
    for _, key in ipairs(keys or {}) do m._no_grad[key] = nil end
  end)
end

function Module:_set_training_mode(mode) self.training = mode end

-- train sets the module and all below it in training mode, or out of it: train(false).
function Module:train(mode)
  mode = class.option("Module.train", mode, "mode")
  return self:apply_to_modules(function(_, m) m:_set_training_mode(mode ~= false) end)
end

function Module:eval() return self:train(false) end

-- set_dtype casts the parameters whose dtype predicate is true of: the floating-point ones; false: all.
function Module:set_dtype(dtype, predicate)
  predicate = class.option("Module.set_dtype", predicate, "predicate")
  if predicate == nil then
    predicate = function(d) return mx.issubdtype(d, mx.floating) end
  end
  return self:apply(function(x)
    if not predicate or predicate(x.dtype) then return x:astype(dtype) end
    return x
  end)
end
