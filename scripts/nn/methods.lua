-- The methods of modules say so when they are called with a dot in the place of a colon.
local _, _, fail, use = ...

local class = use("class")
use("module")
use("modes")
use("weights")

local Module = class.Module
local methods = {
  "apply", "apply_to_modules", "children", "eval", "filter_and_map", "freeze", "leaf_modules", "load_weights",
  "modules", "named_modules", "parameters", "save_weights", "set_dtype", "train", "trainable_parameters", "unfreeze",
  "update", "update_modules",
}

for _, name in ipairs(methods) do
  local method = Module[name]
  Module[name] = function(self, ...)
    if not class.is_module(self) then
      fail("Module." .. name, ("the first argument is no module: call it with a colon, model:%s(...)"):format(name))
    end
    return method(self, ...)
  end
end
