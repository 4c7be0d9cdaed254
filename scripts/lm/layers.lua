-- The layers that models are made of. Their weights come from a file, packed or not: see weights.lua.
local mx, nn = require("mx"), require("mx.nn")

local layers = {}

-- sizes are the elements of a group and the bits of an element by modes of packing, unless others are asked for.
layers.sizes = {affine = {64, 4}, mxfp4 = {32, 4}, nvfp4 = {16, 4}, mxfp8 = {32, 8}}

-- sizes_of is those of a mode, and for llama.cpp's blocks, which hold all that belongs to their elements, how many
-- bytes a block has; nil: the mode is not known.
function layers.sizes_of(mode)
  if layers.sizes[mode] then return layers.sizes[mode] end
  local elements, bytes, bits = mx.block_size(mode)
  return elements and {elements, bits}, bytes
end

-- pack quantizes a layer's weight: w, scales and, where the mode is affine, biases become its fields.
local function pack(self, weight, how)
  self.weight, self.scales, self.biases = mx.quantize(weight, how)
  self.group_size, self.bits, self.mode = how.group_size, how.bits, how.mode
end

-- unpacked is a packed layer's weight in floats.
local function unpacked(self)
  return mx.dequantize(self.weight, {scales = self.scales, biases = self.biases, group_size = self.group_size,
    bits = self.bits, mode = self.mode, dtype = self.dtype})
end

-- copied is an object of another class with what a layer has beside its weight.
local function copied(self, class, names)
  local out = class()
  for _, name in ipairs(names) do out[name] = self[name] end
  return out
end

-- Linear multiplies by the transposed weight (outputs, inputs) and adds its bias, if it has one.
local Linear = nn.class("Linear")
function Linear:init(weight, bias) self.weight, self.bias = weight, bias end
function Linear:forward(x)
  x = mx.matmul(x, self.weight.T)
  if self.bias then x = x + self.bias end
  return x
end

local QuantizedLinear = nn.class("QuantizedLinear")
function QuantizedLinear:forward(x)
  x = mx.quantized_matmul(x, self.weight, {scales = self.scales, biases = self.biases, transpose = true,
    group_size = self.group_size, bits = self.bits, mode = self.mode})
  if self.bias then x = x + self.bias end
  return x
end

function Linear:to_quantized(how)
  local out = copied(self, QuantizedLinear, {"bias"})
  pack(out, self.weight, how)
  return out
end

function QuantizedLinear:to_plain()
  local out = copied(self, Linear, {"bias"})
  out.weight = unpacked(self)
  return out
end

-- MultiLinear is a Linear for each head, (heads, outputs, inputs), of x (batch, heads, tokens, inputs).
local MultiLinear = nn.class("MultiLinear")
function MultiLinear:init(weight) self.weight = weight end
function MultiLinear:forward(x) return mx.matmul(x, mx.swapaxes(self.weight, -1, -2)) end

local QuantizedMultiLinear = nn.class("QuantizedMultiLinear", QuantizedLinear)

function MultiLinear:to_quantized(how)
  local out = QuantizedMultiLinear()
  pack(out, self.weight, how)
  return out
end

function QuantizedMultiLinear:to_plain() return MultiLinear(unpacked(self)) end

-- Embedding is rows of its weight; as_linear is x times the transposed weight.
local Embedding = nn.class("Embedding")
function Embedding:init(weight) self.weight = weight end
function Embedding:forward(ids) return self.weight[ids] end
function Embedding:as_linear(x) return mx.matmul(x, self.weight.T) end

local QuantizedEmbedding = nn.class("QuantizedEmbedding")
function QuantizedEmbedding:forward(ids)
  return mx.dequantize(self.weight[ids], {scales = self.scales and self.scales[ids],
    biases = self.biases and self.biases[ids], group_size = self.group_size, bits = self.bits, mode = self.mode,
    dtype = self.dtype})
end
QuantizedEmbedding.as_linear = QuantizedLinear.forward

function Embedding:to_quantized(how)
  local out = QuantizedEmbedding()
  pack(out, self.weight, how)
  return out
end

function QuantizedEmbedding:to_plain() return Embedding(unpacked(self)) end

-- SwitchLinear is a Linear for each expert, (experts, outputs, inputs): sorted promises that indices ascend.
local SwitchLinear = nn.class("SwitchLinear")
function SwitchLinear:init(weight, bias) self.weight, self.bias = weight, bias end

local function with_bias(self, x, indices)
  if not self.bias then return x end
  return x + mx.expand_dims(self.bias[indices], -2)
end

function SwitchLinear:forward(x, indices, sorted)
  x = mx.gather_mm(x, mx.swapaxes(self.weight, -1, -2), {rhs_indices = indices, sorted_indices = sorted})
  return with_bias(self, x, indices)
end

local QuantizedSwitchLinear = nn.class("QuantizedSwitchLinear")
function QuantizedSwitchLinear:forward(x, indices, sorted)
  x = mx.gather_qmm(x, self.weight, {scales = self.scales, biases = self.biases, rhs_indices = indices,
    transpose = true, group_size = self.group_size, bits = self.bits, mode = self.mode, sorted_indices = sorted})
  return with_bias(self, x, indices)
end

function SwitchLinear:to_quantized(how)
  local out = copied(self, QuantizedSwitchLinear, {"bias"})
  pack(out, self.weight, how)
  return out
end

function QuantizedSwitchLinear:to_plain()
  local out = copied(self, SwitchLinear, {"bias"})
  out.weight = unpacked(self)
  return out
end

-- RMSNorm scales to a mean square of 1 and multiplies by the weight.
local RMSNorm = nn.class("RMSNorm")
function RMSNorm:init(weight, eps) self.weight, self.eps = weight, eps end
function RMSNorm:forward(x) return mx.fast.rms_norm(x, self.weight, self.eps) end

-- GemmaNorm is an RMSNorm that multiplies by 1 + weight.
local GemmaNorm = nn.class("GemmaNorm")
function GemmaNorm:init(weight, eps) self.weight, self.eps = weight, eps end
function GemmaNorm:forward(x) return mx.fast.rms_norm(x, 1 + self.weight, self.eps) end

-- LayerNorm scales to mean 0 and variance 1, multiplies by the weight and adds its bias, if it has one.
local LayerNorm = nn.class("LayerNorm")
function LayerNorm:init(weight, eps, bias) self.weight, self.eps, self.bias = weight, eps, bias end
function LayerNorm:forward(x) return mx.fast.layer_norm(x, self.weight, self.bias, self.eps) end

-- GLU is down(act(gate(x)) * up(x)), the feed-forward part of most models.
local GLU = nn.class("MLP")
function GLU:init(w, inputs, hidden, act, bias)
  self.gate_proj = w:linear("gate_proj", inputs, hidden, bias)
  self.up_proj = w:linear("up_proj", inputs, hidden, bias)
  self.down_proj = w:linear("down_proj", hidden, inputs, bias)
  self.act = act or nn.silu
end
function GLU:forward(x) return self.down_proj(self.act(self.gate_proj(x)) * self.up_proj(x)) end

-- FusedGLU is a GLU whose gate and up are one matrix.
local FusedGLU = nn.class("MLP")
function FusedGLU:init(w, inputs, hidden, act, bias)
  self.gate_up_proj = w:linear("gate_up_proj", inputs, 2 * hidden, bias)
  self.down_proj = w:linear("down_proj", hidden, inputs, bias)
  self.act = act or nn.silu
end
function FusedGLU:forward(x)
  local gate, up = unpack(mx.split(self.gate_up_proj(x), 2, -1))
  return self.down_proj(self.act(gate) * up)
end

-- SwitchGLU is a GLU for each expert; indices (batch, tokens, k) say which experts a row of x goes to. From 64 on,
-- those of several tokens are sorted by expert, so that each expert's weights are read once. Where each example has one
-- token, as in steps, the size of the batch is not read: see generate.step.
local SwitchGLU = nn.class("SwitchGLU")
function SwitchGLU:init(w, experts, inputs, hidden, act, bias)
  self.gate_proj = w:switch("gate_proj", experts, inputs, hidden, bias)
  self.up_proj = w:switch("up_proj", experts, inputs, hidden, bias)
  self.down_proj = w:switch("down_proj", experts, hidden, inputs, bias)
  self.act = act or function(gate, up) return nn.silu(gate) * up end
end

-- each is what the expert of each row makes of it.
function SwitchGLU:each(x, indices, sort)
  return self.down_proj(self.act(self.gate_proj(x, indices, sort), self.up_proj(x, indices, sort)), indices, sort)
end

function SwitchGLU:forward(x, indices)
  local sort = indices:dim(-2) > 1 and indices.size >= 64
  local k = indices:dim(-1)
  local shape, back = indices, nil
  if sort then
    indices = mx.flatten(indices)
    local order = mx.argsort(indices)
    back = mx.argsort(order)
    x = mx.flatten(x, 0, -2)[mx.floor_divide(order, k)]
    indices = indices[order]
  else
    x = mx.expand_dims(x, -2)
  end
  x = mx.expand_dims(x, -2)
  local y = mx.squeeze(self:each(x, indices, sort), -2)
  if not sort then return y end
  return mx.reshape(y[back], mx.dims(shape, {y, -1}))
end

-- gated is the activation of a SwitchGLU whose gate has one of its own.
function layers.gated(act)
  return function(gate, up) return act(gate) * up end
end

-- SwitchMLP is fc2(act(fc1(x))) for each expert.
local SwitchMLP = nn.class("SwitchMLP", SwitchGLU)
function SwitchMLP:init(w, experts, inputs, hidden, act)
  self.fc1, self.fc2 = w:switch("fc1", experts, inputs, hidden), w:switch("fc2", experts, hidden, inputs)
  self.act = act
end

function SwitchMLP:each(x, indices, sort) return self.fc2(self.act(self.fc1(x, indices, sort)), indices, sort) end

-- MLP is two linear layers of any names around an activation, with or without biases.
local MLP = nn.class("MLP")
function MLP:init(w, first, second, inputs, hidden, act, bias)
  self[first], self[second] = w:linear(first, inputs, hidden, bias), w:linear(second, hidden, inputs, bias)
  self.first, self.second, self.act = first, second, act
end
function MLP:forward(x) return self[self.second](self.act(self[self.first](x))) end

for name, class in pairs{MLP = MLP, SwitchMLP = SwitchMLP,
  Linear = Linear, QuantizedLinear = QuantizedLinear, MultiLinear = MultiLinear,
  QuantizedMultiLinear = QuantizedMultiLinear, Embedding = Embedding, QuantizedEmbedding = QuantizedEmbedding,
  SwitchLinear = SwitchLinear, QuantizedSwitchLinear = QuantizedSwitchLinear, RMSNorm = RMSNorm,
  GemmaNorm = GemmaNorm, LayerNorm = LayerNorm, GLU = GLU, FusedGLU = FusedGLU, SwitchGLU = SwitchGLU} do
  layers[name] = class
end

-- heads is x (batch, tokens, n * size) as (batch, n, tokens, size); joined is the way back.
function layers.heads(x, n) return mx.swapaxes(mx.unflatten(x, -1, {n, -1}), 1, 2) end
function layers.joined(x) return mx.flatten(mx.swapaxes(x, 1, 2), -2, -1) end

return layers
