-- The weights of a model directory: arrays by name, and views of them from which layers take what is theirs. Arrays lie
-- in the pages of their files and are read when they are used. What no layer took is an error in the end.
local mx, host = require("mx"), require("lm.host")
local Config, layers = require("lm.config"), require("lm.layers")

local Weights = {}
Weights.__index = Weights

local function fail(text, ...) error(("lm: " .. text):format(...), 0) end

-- files are the .safetensors files of a directory: those that the index names, or else all.
function Weights.files(dir)
  local index = dir .. "/model.safetensors.index.json"
  local names = {}
  if host.kind(index) then
    local text, why = host.read(index)
    if not text then fail("%s", why) end
    local json, wrong = host.decode(text)
    local map = type(json) == "table" and json.weight_map
    if type(map) ~= "table" then fail("%s: %s", index, wrong or "there is no weight_map") end
    for name, file in pairs(map) do
      if type(file) ~= "string" then fail("%s: weight_map has no file for %s", index, name) end
      names[file] = true
    end
  else
    local all, why = host.files(dir)
    if not all then fail("%s", why) end
    for _, file in ipairs(all) do
      if file:match("^model.*%.safetensors$") then names[file] = true end
    end
  end
  local out = {}
  for file in pairs(names) do out[#out + 1] = dir .. "/" .. file end
  table.sort(out)
  if #out == 0 then fail("%s has no model*.safetensors", dir) end
  return out
end

-- load opens the files of a directory; progress(done, all) is called after each.
function Weights.load(dir, progress)
  local files, arrays = Weights.files(dir), {}
  for i, file in ipairs(files) do
    for name, x in pairs(mx.load(file)) do arrays[name] = x end
    if progress then progress(i, #files) end
  end
  return arrays
end

-- new is the root of the views. quantization is config.json's: group_size, bits, mode, and such tables, or false, for
-- paths that differ. config is the Config of the sizes that layers ask for, if there is one.
function Weights.new(arrays, quantization, config)
  return setmetatable({path = "", root = {arrays = arrays, taken = {}, quantization = quantization or {},
    config = config}}, Weights)
end

-- at is the view below a name.
function Weights:at(name)
  return setmetatable({path = self.path .. name .. ".", root = self.root}, Weights)
end

-- find is an array below the path, or nil; of a shape, if one is given: -1 is any size.
function Weights:find(name, shape)
  local full = self.path .. name
  local x = self.root.arrays[full]
  if x == nil then return nil end
  self.root.taken[full] = true
  if shape then
    local fits = #shape == x.ndim
    for i, n in ipairs(shape) do fits = fits and (n == -1 or n == x.shape[i]) end
    if not fits then
      local config = self.root.config
      fail("%s has the shape (%s), config.json says (%s)%s", full, table.concat(x.shape, ", "),
        table.concat(shape, ", "), config and config:assumptions() or "")
    end
  end
  return x
end

-- has reports whether there is an array of that name below the path.
function Weights:has(name) return self.root.arrays[self.path .. name] ~= nil end

-- array is an array below the path that must be there: see w:find.
function Weights:array(name, ...)
  local x = self:find(name, ...)
  if x == nil then fail("the weight %s%s is missing", self.path, name) end
  return x
end

-- floats is an array of floats: a layer's weight that is not packed.
function Weights:floats(name, shape)
  local x = self:array(name, shape)
  if not mx.issubdtype(x.dtype, mx.floating) then
    fail("%s%s is of %s, want floats: is it packed in a way that config.json does not say?", self.path, name,
      tostring(x.dtype))
  end
  return x
end

-- packing is how the weights of a path are packed.
function Weights:packing(name)
  local q, path = self.root.quantization, self.path .. name
  local own = q[path]
  if type(own) ~= "table" then own = q end
  local mode = own.mode or "affine"
  local sizes, bytes = layers.sizes_of(mode)
  if not sizes then fail("config.json: quantization.mode = %s of %s is not built", tostring(mode), path) end
  local how = {group_size = own.group_size or sizes[1], bits = own.bits or sizes[2], mode = mode, bytes = bytes}
  for _, key in ipairs{"group_size", "bits"} do
    Config.want(("quantization.%s of %s"):format(key, path), how[key], "size")
  end
  return how
end

-- is_packed reports whether the weight of a path is packed: it has scales, or is blocks, which hold theirs.
function Weights:is_packed(name)
  local w = self.root.arrays[self.path .. name .. ".weight"]
  return self:has(name .. ".scales") or w ~= nil and w.dtype == mx.uint8 and self:packing(name).bytes ~= nil
end

-- packed fills a layer with packed weights, whose rows unpack to so many inputs.
function Weights:packed(layer, name, shape)
  local how = self:packing(name)
  local inputs = shape[#shape]
  local function sized(n)
    local out = {unpack(shape)}
    out[#out] = n
    return out
  end
  layer.group_size, layer.bits, layer.mode = how.group_size, how.bits, how.mode
  if how.bytes then
    layer.weight = self:array(name .. ".weight", sized(inputs / how.group_size * how.bytes))
    return layer
  end
  layer.weight = self:array(name .. ".weight", sized(inputs * how.bits / 32))
  layer.scales = self:array(name .. ".scales", sized(inputs / how.group_size))
  if how.mode == "affine" then layer.biases = self:array(name .. ".biases", sized(inputs / how.group_size)) end
  if self:has(name .. ".global_scale") then
    fail("%s%s.global_scale: packed weights with a global scale are not built", self.path, name)
  end
  return layer
end

-- linear is the layer of a name: a Linear, or a QuantizedLinear where it is packed.
function Weights:linear(name, inputs, outputs, bias)
  local layer
  if self:is_packed(name) then
    layer = self:packed(layers.QuantizedLinear(), name, {outputs, inputs})
  else
    layer = layers.Linear(self:floats(name .. ".weight", {outputs, inputs}))
  end
  if bias then layer.bias = self:array(name .. ".bias", {outputs}) end
  return layer
end

-- multi is a linear layer for each head.
function Weights:multi(name, heads, inputs, outputs)
  local shape = {heads, outputs, inputs}
  if self:is_packed(name) then return self:packed(layers.QuantizedMultiLinear(), name, shape) end
  return layers.MultiLinear(self:floats(name .. ".weight", shape))
end

-- embedding is a table of rows, from which the layer of that name takes those of its input.
function Weights:embedding(name, count, dims)
  if self:is_packed(name) then return self:packed(layers.QuantizedEmbedding(), name, {count, dims}) end
  return layers.Embedding(self:floats(name .. ".weight", {count, dims}))
end

-- switch is a linear layer for each expert, in one array.
function Weights:switch(name, experts, inputs, outputs, bias)
  local layer
  if self:is_packed(name) then
    layer = self:packed(layers.QuantizedSwitchLinear(), name, {experts, outputs, inputs})
  else
    layer = layers.SwitchLinear(self:floats(name .. ".weight", {experts, outputs, inputs}))
  end
  if bias then layer.bias = self:array(name .. ".bias", {experts, outputs}) end
  return layer
end

-- norm is the layer of a name that scales to a mean square of 1 and multiplies by the weight.
function Weights:norm(name, dims, eps) return layers.RMSNorm(self:floats(name .. ".weight", {dims}), eps) end

-- gemma_norm is norm with 1 added to the weight.
function Weights:gemma_norm(name, dims, eps) return layers.GemmaNorm(self:floats(name .. ".weight", {dims}), eps) end

-- layer_norm is the layer of a name that scales to mean 0 and variance 1, multiplies by the weight and, where bias is
-- true, adds its bias.
function Weights:layer_norm(name, dims, eps, bias)
  return layers.LayerNorm(self:floats(name .. ".weight", {dims}), eps, bias and self:array(name .. ".bias", {dims}))
end

-- check fails for arrays that no layer took.
function Weights:check()
  local left = {}
  for name in pairs(self.root.arrays) do
    if not self.root.taken[name] then left[#left + 1] = name end
  end
  table.sort(left)
  if #left > 0 then
    fail("%d weights belong to no layer: %s%s", #left, table.concat(left, ", ", 1, math.min(#left, 5)),
      #left > 5 and ", ..." or "")
  end
end

-- Renaming, for models whose files have other names -----------------------------------------------------------------

-- rename gives each array the name that f(name) says; nil drops it. Paths of quantization are renamed alike.
function Weights.rename(arrays, quantization, f)
  local function all(t)
    local out = {}
    for name, x in pairs(t) do
      local new = f(name)
      if new then out[new] = x end
    end
    return out
  end
  local q = {}
  for k, v in pairs(quantization or {}) do
    if type(v) == "table" or type(v) == "boolean" then k = f(k .. ".weight") and f(k .. ".weight"):sub(1, -8) or k end
    q[k] = v
  end
  return all(arrays), q
end

-- from_fp8 makes bfloat16 of weights that are kept in eight bits, with a scale for each block of 128 by 128.
function Weights.from_fp8(arrays)
  local scaled = {}
  for name in pairs(arrays) do scaled[#scaled + 1] = name:match("^(.*)_scale_inv$") end
  for _, name in ipairs(scaled) do
    local w, scales = arrays[name], arrays[name .. "_scale_inv"]
    if not w or w.ndim ~= 2 then fail("%s_scale_inv has no matrix %s", name, name) end
    if w.dtype == mx.uint8 then w = mx.from_fp8(w, mx.float32) end
    local rows, columns = w.shape[1], w.shape[2]
    local want = {math.ceil(rows / 128), math.ceil(columns / 128)}
    if scales.shape[1] ~= want[1] or scales.shape[2] ~= want[2] then
      fail("%s_scale_inv has the shape (%s), want (%d, %d)", name, table.concat(scales.shape, ", "), unpack(want))
    end
    scales = mx["repeat"](mx["repeat"](scales:astype(mx.float32), 128, 0), 128, 1)
    arrays[name] = (w * scales:index("0:" .. rows, "0:" .. columns)):astype(mx.bfloat16)
    arrays[name .. "_scale_inv"] = nil
  end
  return arrays
end

-- stack_experts makes one array of those of a layer's experts: prefix.experts.0.gate_proj.weight and so on become
-- prefix.switch_mlp.gate_proj.weight; a fused prefix.experts.gate_up_proj (experts, 2 hidden, inputs) becomes two. part
-- is another name for switch_mlp.
function Weights.stack_experts(arrays, experts, part)
  part = "." .. (part or "switch_mlp") .. "."
  local lists = {}
  for name, x in pairs(arrays) do
    local prefix, i, rest = name:match("^(.*)%.experts%.(%d+)%.(.+)$")
    if prefix then
      local into = prefix .. part .. rest
      lists[into] = lists[into] or {}
      lists[into][tonumber(i) + 1] = {name, x}
    end
  end
  for into, list in pairs(lists) do
    local parts = {}
    for i = 1, experts do
      if not list[i] then fail("the weight %s of expert %d is missing", into, i - 1) end
      arrays[list[i][1]], parts[i] = nil, list[i][2]
    end
    arrays[into] = mx.stack(parts)
  end
  local fused = {}
  for name in pairs(arrays) do fused[#fused + 1] = name:match("^(.*)%.experts%.gate_up_proj$") end
  for _, prefix in ipairs(fused) do
    local both = arrays[prefix .. ".experts.gate_up_proj"]
    local gate, up = unpack(mx.split(both, 2, -2))
    arrays[prefix .. part .. "gate_proj.weight"], arrays[prefix .. part .. "up_proj.weight"] = gate, up
    arrays[prefix .. part .. "down_proj.weight"] = arrays[prefix .. ".experts.down_proj"]
    arrays[prefix .. ".experts.gate_up_proj"], arrays[prefix .. ".experts.down_proj"] = nil, nil
  end
  return arrays
end

return Weights
