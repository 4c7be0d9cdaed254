-- Files of weights.
local mx, _, fail, use, core = ...

local class, walk = use("class"), use("module")
local Module = class.Module

-- named is weights by their names: those of a file, of a table of them, or of a table of pairs.
local function named(weights)
  if type(weights) == "string" then weights = mx.load(weights) end
  if type(weights) ~= "table" then
    fail("Module.load_weights", ("weights is a %s, want the name of a file or a table of arrays"):format(
      mx.type(weights)))
  end
  if type(weights[1]) ~= "table" then return weights end
  local out = {}
  for _, pair in ipairs(weights) do out[pair[1]] = pair[2] end
  return out
end

-- The most names that an error lists.
local most_names = 12

-- missing fails for the names of a that b has not; mixed is what to say where one of them is quantized.
local function missing(a, b, text, mixed)
  local out, quantized = {}, false
  for name in pairs(a) do
    if b[name] == nil then
      out[#out + 1] = name
      quantized = quantized or name:find("%.?scales$") and b[(name:gsub("scales$", "weight"))] ~= nil
    end
  end
  if #out == 0 then return end
  table.sort(out)
  local listed = table.concat(out, ", ", 1, math.min(#out, most_names)) .. (#out > most_names and ", ..." or "")
  fail("Module.load_weights", text:format(#out, listed) .. (quantized and mixed or ""))
end

local function size(x) return "(" .. table.concat(x.shape, ", ") .. ")" end

-- load_weights replaces the parameters by those of a .npz or .safetensors file, or of a table: {name = array} or a
-- list of
-- {name, array}. They must be the module's, all of them, of the same shapes; with strict = false, what fits is taken.
function Module:load_weights(weights, strict)
  strict = class.option("Module.load_weights", strict, "strict")
  local new, now, holders = named(weights), {}, {}
  local function gather(t, path, above)
    above = walk.inside("Module.load_weights", t, above)
    for k, v in pairs(t) do
      local name = path .. tostring(type(k) == "number" and k - 1 or k)
      if core.is_array(v) then
        now[name], holders[name] = v, {t, k}
      elseif k ~= "_no_grad" and class.is_tree(v) then
        gather(v, name .. ".", above)
      end
    end
  end
  gather(self, "")
  if strict ~= false then
    local parameters = {}
    for _, p in ipairs(walk.flat(self:parameters(), "", {})) do parameters[p[1]] = p[2] end
    missing(new, parameters, "%d parameters are not in the module: %s",
      "; the weights are of a quantized model: call nn.quantize(module, ...) first, as it was for them")
    missing(parameters, new, "%d parameters are missing: %s", "; the module is quantized, and the weights are not")
    for name, x in pairs(parameters) do
      if not core.is_array(new[name]) then
        fail("Module.load_weights", ("%s is a %s, want an array"):format(name, mx.type(new[name])))
      end
      if size(x) ~= size(new[name]) then
        fail("Module.load_weights", ("%s has the shape %s, want %s"):format(name, size(new[name]), size(x)))
      end
    end
  end
  for name, x in pairs(new) do
    local holder = holders[name]
    if holder then holder[1][holder[2]] = x end
  end
  return self
end

-- save_weights writes the parameters to a .npz or .safetensors file.
function Module:save_weights(file)
  local arrays = {}
  for _, p in ipairs(walk.flat(self:parameters(), "", {})) do arrays[p[1]] = p[2] end
  if file:sub(-4) == ".npz" then
    mx.savez(file, arrays)
  elseif file:sub(-12) == ".safetensors" then
    mx.save_safetensors(file, arrays)
  else
    fail("Module.save_weights", ("%s is neither a .npz nor a .safetensors file"):format(file))
  end
end
