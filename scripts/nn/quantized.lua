-- Layers with quantized weights.
local mx, define, fail, use = ...
local nn = use("mx.nn")

local class, text = use("class"), use("text")
local layer, described = class.layer, text.described
use("module")

-- defaults are a mode's group_size and bits, where they are not given.
local modes = {affine = {64, 4}, mxfp4 = {32, 4}, nvfp4 = {16, 4}, mxfp8 = {32, 8}}

local function defaults(name, mode, group_size, bits)
  local of = modes[mode]
  if not of then
    local elements, _, width = mx.block_size(mode)
    if not elements then
      fail(name, ("mode is %q, want affine, mxfp4, nvfp4, mxfp8 or one of llama.cpp's blocks"):format(mode))
    end
    of = {elements, width}
  end
  return group_size or of[1], bits or of[2]
end

-- set fills the fields that a quantized weight has.
local function set(self, weight, group_size, bits, mode)
  self.weight, self.scales, self.biases = mx.quantize(weight, {group_size = group_size, bits = bits, mode = mode})
end

-- packed is what the constructors share. fill makes a weight (outputs, inputs): quantized noise, that draw gives, or
-- blocks of zeros, since blocks are only read. inputs is the columns that a layer's weight stands for.
local packed = {defaults = defaults}

function packed.fill(self, name, outputs, inputs, draw)
  local elements, bytes = mx.block_size(self.mode)
  if not elements then return set(self, draw(), self.group_size, self.bits, self.mode) end
  if self.group_size ~= elements then
    fail(name, ("group_size is %d, want %d for mode %s"):format(self.group_size, elements, self.mode))
  end
  if inputs % elements ~= 0 then
    fail(name, ("rows of %d elements are no whole blocks of %d, which mode %s has"):format(inputs, elements, self.mode))
  end
  self.weight = mx.zeros({outputs, inputs / elements * bytes}, mx.uint8)
end

function packed.inputs(self)
  local elements, bytes = mx.block_size(self.mode)
  if elements then return self.weight:dim(1) / bytes * elements end
  return math.floor(self.weight:dim(1) * 32 / self.bits)
end

local how = "mode is affine, mxfp4, nvfp4 or mxfp8, which say group_size and bits unless these are given: see " ..
  "mx.quantize. The parameters are weight, scales and, where affine, biases; they are frozen. In the modes of " ..
  "llama.cpp's blocks (see mx.dequantize) there is the weight alone, of zeros until blocks are loaded."

local settings = " group_size:int? bits:int? mode:string=affine"

local QuantizedEmbedding = layer{
  name = "QuantizedEmbedding", sig = "num_embeddings:int dims:int" .. settings, empty = "num_embeddings",
  help = "An Embedding with a quantized weight. " .. how,
  init = function(self, num_embeddings, dims, group_size, bits, mode)
    self.group_size, self.bits = defaults("QuantizedEmbedding", mode, group_size, bits)
    self.mode = mode
    packed.fill(self, "QuantizedEmbedding", num_embeddings, dims, function()
      return mx.random.normal({num_embeddings, dims}, {scale = math.sqrt(1 / dims)})
    end)
    self.num_embeddings, self.dims = num_embeddings, dims
    self:freeze()
  end,
  forward = function(self, x)
    return mx.dequantize(self.weight[x], {scales = self.scales and self.scales[x],
      biases = self.biases and self.biases[x], group_size = self.group_size,
      bits = self.bits, mode = self.mode})
  end,
  repr = function(self) return described(self, "num_embeddings dims group_size= bits= mode=") end,
}

local function product(self, x)
  return mx.quantized_matmul(x, self.weight, {scales = self.scales, biases = self.biases, transpose = true,
    group_size = self.group_size, bits = self.bits, mode = self.mode})
end

-- as_linear is x times the transposed weight.
function QuantizedEmbedding:as_linear(x) return product(self, x) end

local places = "group_size bits mode" -- of what makes a layer of another one

-- from_embedding is an Embedding quantized.
QuantizedEmbedding.from_embedding = class.taking("QuantizedEmbedding.from_embedding", places, function(
    embedding, group_size, bits, mode)
  local w = embedding.weight
  local self = nn.QuantizedEmbedding(w:dim(0), w:dim(1), group_size, bits, mode)
  set(self, w, self.group_size, self.bits, self.mode)
  return self
end)

local QuantizedLinear = layer{
  name = "QuantizedLinear", sig = "input_dims:int output_dims:int bias:bool=true" .. settings,
  empty = "output_dims",
  help = "A Linear with a quantized weight, and zeros as bias at the beginning. " .. how,
  init = function(self, input_dims, output_dims, bias, group_size, bits, mode)
    self.group_size, self.bits = defaults("QuantizedLinear", mode, group_size, bits)
    self.mode = mode
    packed.fill(self, "QuantizedLinear", output_dims, input_dims, function()
      local scale = math.sqrt(1 / input_dims)
      return mx.random.uniform(-scale, scale, {output_dims, input_dims})
    end)
    if bias then self.bias = mx.zeros({output_dims}) end
    self:freeze()
  end,
  forward = function(self, x)
    x = product(self, x)
    if self.bias then x = x + self.bias end
    return x
  end,
  repr = function(self)
    local w = self.weight
    return described(self, "input_dims= output_dims= bias= group_size= bits= mode=",
      {input_dims = packed.inputs(self), output_dims = w:dim(0), bias = self.bias ~= nil})
  end,
}

-- from_linear is a Linear quantized.
QuantizedLinear.from_linear = class.taking("QuantizedLinear.from_linear", places, function(
    linear, group_size, bits, mode)
  local w = linear.weight
  local self = nn.QuantizedLinear(w:dim(1), w:dim(0), false, group_size, bits, mode)
  set(self, w, self.group_size, self.bits, self.mode)
  self.bias = linear.bias
  return self
end)

local QQLinear = layer{
  name = "QQLinear", sig = "input_dims:int output_dims:int group_size:int? bits:int? mode:string=nvfp4",
  empty = "output_dims",
  help = "A product with the transposed weight (output_dims, input_dims) in which both sides are quantized; the " ..
    "weight " ..
    "itself is quantized while the layer is out of training mode. mode is nvfp4 or mxfp8.",
  init = function(self, input_dims, output_dims, group_size, bits, mode)
    self.group_size, self.bits = defaults("QQLinear", mode, group_size, bits)
    self.mode = mode
    local scale = math.sqrt(1 / input_dims)
    self.weight = mx.random.uniform(-scale, scale, {output_dims, input_dims})
    self._quantized = false
  end,
  forward = function(self, x)
    return mx.qqmm(x, self.weight, {scales = self.scales, group_size = self.group_size, bits = self.bits,
      mode = self.mode})
  end,
  repr = function(self)
    local w = self.weight
    local dims = w:dim(1)
    if w.dtype == mx.uint32 then dims = math.floor(dims * 32 / self.bits) end
    return described(self, "input_dims= output_dims= group_size= bits= mode=",
      {input_dims = dims, output_dims = w:dim(0)})
  end,
}

function QQLinear:quantize()
  if self._quantized then return end
  self.weight, self.scales = mx.quantize(self.weight, self.group_size, self.bits, {mode = self.mode})
  self._quantized = true
end

function QQLinear:dequantize()
  if not self._quantized then return end
  self.weight = mx.dequantize(self.weight, {scales = self.scales, group_size = self.group_size, bits = self.bits,
    mode = self.mode})
  self.scales, self._quantized = nil, false
end

function QQLinear:_set_training_mode(mode)
  self.training = mode
  if mode then self:dequantize() else self:quantize() end
end

-- from_linear is a Linear without bias quantized.
QQLinear.from_linear = class.taking("QQLinear.from_linear", places, function(linear, group_size, bits, mode)
  if linear.bias then fail("QQLinear.from_linear", "a layer with a bias cannot be one") end
  local w = linear.weight
  local self = nn.QQLinear(w:dim(1), w:dim(0), group_size, bits, mode or "nvfp4")
  self.weight = w
  self:train(linear.training)
  return self
end)

define{
  name = "quantize",
  sig = "model:any group_size:int? bits:int? mode:string=affine quantize_input:bool=false class_predicate:function?",
  help = "Replaces the layers of a model that have a method to_quantized (Linear, Embedding) by quantized ones. " ..
    "class_predicate(name, layer) may pick among all layers: by true, or by a table of keywords for to_quantized. " ..
    "group_size, bits and mode are those of mx.quantize; with quantize_input a Linear becomes a QQLinear.",
  call = function(model, group_size, bits, mode, quantize_input, predicate)
    local function one(name, m)
      local chosen
      if predicate then chosen = predicate(name, m) else chosen = m.to_quantized ~= nil end
      if not chosen then return m end
      if not m.to_quantized then fail("quantize", ("a %s cannot be quantized"):format(m.__name)) end
      if type(chosen) == "table" then return m:to_quantized(chosen) end
      if chosen ~= true then fail("quantize", "class_predicate gives true, false or a table of keywords") end
      return m:to_quantized{group_size = group_size, bits = bits, mode = mode, quantize_input = quantize_input}
    end
    local function all(t, path)
      for k, v in pairs(t) do
        local name = path .. tostring(type(k) == "number" and k - 1 or k)
        if class.is_module(v) then
          t[k] = one(name, v)
        else
          all(v, name .. ".")
        end
      end
      return t
    end
    model:update_modules(all(model:leaf_modules(), ""))
  end,
}

return {QuantizedLinear = QuantizedLinear, QuantizedEmbedding = QuantizedEmbedding, QQLinear = QQLinear,
  packed = packed}
