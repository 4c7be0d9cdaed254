-- Packing a model's weights in few bits, and unpacking them.
local mx, nn = require("mx"), require("mx.nn")
local keywords, sizes = require("lm.keywords"), require("lm.layers").sizes

local quantize = {}

local function fail(text, ...) error(("lm.quantize: " .. text):format(...), 0) end

-- replace calls f(path, layer) for each layer below t, and puts what it returns in the layer's place. Elements of lists
-- count from 0 in paths, as in files.
local function replace(t, path, f)
  for k, v in pairs(t) do
    local name = path .. tostring(type(k) == "number" and k - 1 or k)
    if type(v) == "table" and k ~= "_no_grad" and k ~= "config" then
      local new = nn.Module.is_module(v) and f(name, v)
      if new then t[k] = new else replace(v, name .. ".", f) end
    end
  end
end
quantize.replace = replace

local recipes = {mixed_2_6 = {2, 6}, mixed_3_4 = {3, 4}, mixed_3_6 = {3, 6}, mixed_4_6 = {4, 6}}

-- recipe is how a path is packed by mlx-lm's recipes: the scores, and in the first and last eighth of the layers and
-- each third between values and what leads out of a layer, have more bits.
local function recipe(name, count, group_size)
  local bits = recipes[name]
  if not bits then fail("recipe = %s is not known; these are: mixed_2_6, mixed_3_4, mixed_3_6, mixed_4_6", name) end
  local first = math.floor(count / 8)
  return function(path)
    local i = tonumber(path:match("layers%.(%d+)%.") or 0)
    local more = i < first or i >= math.floor(7 * count / 8) or (i - first) % 3 == 2
    local out = path:find("v_[ab]?_?proj") or path:find("down_proj", 1, true)
    local much = path:find("lm_head", 1, true) or more and out
    return {group_size = group_size, bits = much and bits[2] or bits[1], mode = "affine"}
  end
end

-- model packs the layers of a model that can be, in place. Options: bits, group_size, mode ("affine", "mxfp4", "nvfp4",
-- "mxfp8"), recipe, predicate(path, layer) that gives true, false or such options for one layer. A layer whose rows are
-- no multiple of a group stays whole. What lies in llama.cpp's blocks is unpacked first. It gives how many layers were
-- packed, and a list of the paths of those that stay whole.
function quantize.model(model, options)
  local o = keywords.check("lm.quantize", options)
  local mode = o.mode or "affine"
  if mx.block_size(mode) then fail("mode = %s is only read, from GGUF files; nothing is packed so", mode) end
  if not sizes[mode] then fail("mode = %s is not known; these are: affine, mxfp4, nvfp4, mxfp8", mode) end
  local group_size = o.group_size or sizes[mode][1]
  local how = {group_size = group_size, bits = o.bits or sizes[mode][2], mode = mode}
  local predicate = o.predicate or model.pack_more or function() return true end
  if o.recipe then
    if mode ~= "affine" then fail("recipe = %s packs affine, and mode = %s is asked for", o.recipe, mode) end
    if o.bits then fail("recipe = %s says the bits of each layer, and bits = %s are asked for", o.recipe, o.bits) end
    predicate = recipe(o.recipe, #model.model.layers, group_size)
  end
  local count, whole = 0, {}
  replace(model, "", function(path, layer)
    if mx.block_size(layer.mode or "") then layer = layer:to_plain() end
    if not layer.to_quantized then return nil end
    local own = predicate(path, layer)
    if not own then return nil end
    own = own == true and how or keywords.check("lm.quantize.predicate", own)
    own = {group_size = own.group_size or group_size, bits = own.bits or how.bits, mode = own.mode or "affine"}
    if not mx.issubdtype(layer.weight.dtype, mx.floating) then return nil end
    if layer.weight:dim(-1) % own.group_size ~= 0 then
      whole[#whole + 1] = path
      return nil
    end
    count = count + 1
    return layer:to_quantized(own)
  end)
  model._step = nil
  table.sort(whole)
  return count, whole
end

-- unpack makes floats of packed layers, in place, and gives how many there were.
function quantize.unpack(model)
  local count = 0
  replace(model, "", function(_, layer)
    if not layer.to_plain then return nil end
    count = count + 1
    return layer:to_plain()
  end)
  model._step = nil
  return count
end

-- settings are config.json's quantization of a model: that of most packed layers, and by path those that differ; nil:
-- no layer is packed.
function quantize.settings(model)
  local counts, of, best = {}, {}, nil
  replace(model, "", function(path, layer)
    if layer.to_plain then
      local key = ("%d %d %s"):format(layer.group_size, layer.bits, layer.mode)
      counts[key], of[path] = (counts[key] or 0) + 1, {key, layer}
      if not best or counts[key] > counts[best] or counts[key] == counts[best] and key < best then best = key end
    end
  end)
  if not best then return nil end
  local out = {}
  for path, v in pairs(of) do
    local own = {group_size = v[2].group_size, bits = v[2].bits, mode = v[2].mode}
    if v[1] ~= best then
      out[model.saved_as and model:saved_as(path) or path] = own
    else
      out.group_size, out.bits, out.mode = own.group_size, own.bits, own.mode
    end
  end
  return out
end

-- check_dtype fails for a dtype that a model cannot be computed in. op is the function that the error names.
function quantize.check_dtype(op, dtype)
  if mx.type(dtype) == "dtype" and mx.issubdtype(dtype, mx.floating) then return end
  error(("%s: dtype = %s, want one of floats: mx.float16, mx.bfloat16, mx.float32 or mx.float64"):format(op,
    tostring(dtype)), 0)
end

-- cast converts a model's floats to a dtype of floats, but for packed weights' codes and what must stay float32. What
-- is packed without floats of its own gives that dtype when it is unpacked.
function quantize.cast(model, dtype)
  quantize.check_dtype("lm.cast", dtype)
  local function walk(t)
    for k, v in pairs(t) do
      if mx.type(v) == "array" then
        local fixed = k == "A_log" or k == "e_score_correction_bias" or type(k) == "string" and k:sub(1, 1) == "_"
        if not fixed and mx.issubdtype(v.dtype, mx.floating) then t[k] = v:astype(dtype) end
      elseif type(v) == "table" and k ~= "config" and k ~= "_no_grad" then
        walk(v)
      end
    end
  end
  walk(model)
  replace(model, "", function(_, layer)
    if layer.to_plain and not layer.biases then layer.dtype = dtype end
  end)
  model._step = nil
end

return quantize
