-- Layers that multiply by a matrix.
local mx, _, fail, use, core = ...

local layer, described = use("class").layer, use("text").described
local quantized = use("quantized")

layer{
  name = "Identity", sig = "args:any...", help = "The layer that gives its argument; it takes any arguments and " ..
  "ignores them.",
  forward = function(_, x) return x end,
}

local function uniform(scale, ...) return mx.random.uniform(-scale, scale, {...}) end

local Linear = layer{
  name = "Linear", sig = "input_dims:int output_dims:int bias:bool=true", empty = "output_dims",
  help = "x * W^T + b for arrays x (..., input_dims): the parameters are weight (output_dims, input_dims) and, " ..
    "unless " ..
    "bias is false, bias (output_dims), uniformly random within 1 / sqrt(input_dims) of 0.",
  init = function(self, input_dims, output_dims, bias)
    local scale = math.sqrt(1 / input_dims)
    self.weight = uniform(scale, output_dims, input_dims)
    if bias then self.bias = uniform(scale, output_dims) end
  end,
  forward = function(self, x)
    local bias = self.bias
    if bias then return mx.addmm(bias, x, self.weight.T) end
    return mx.matmul(x, self.weight.T)
  end,
  repr = function(self)
    local w = self.weight
    return described(self, "input_dims= output_dims= bias=",
      {input_dims = w:dim(1), output_dims = w:dim(0), bias = self.bias ~= nil})
  end,
}

-- to_quantized is the layer with quantized weights: a QuantizedLinear, or with quantize_input a QQLinear.
function Linear:to_quantized(keywords)
  keywords = keywords or {}
  local mode = keywords.mode or "affine"
  if not keywords.quantize_input then
    return quantized.QuantizedLinear.from_linear(self, keywords.group_size, keywords.bits, mode)
  end
  if mode ~= "nvfp4" and mode ~= "mxfp8" then
    fail("Linear.to_quantized", ("mode is %q: inputs are quantized in the modes nvfp4 and mxfp8 only"):format(mode))
  end
  return quantized.QQLinear.from_linear(self, keywords.group_size, keywords.bits, mode)
end

layer{
  name = "Bilinear", sig = "input1_dims:int input2_dims:int output_dims:int bias:bool=true",
  empty = "input2_dims output_dims",
  help = "x1^T W_i x2 + b_i for each output i, of arrays x1 (..., input1_dims) and x2 (..., input2_dims): " ..
    "weight is " ..
    "(output_dims, input2_dims, input1_dims), bias (output_dims).",
  init = function(self, input1_dims, input2_dims, output_dims, bias)
    local scale = math.sqrt(1 / input1_dims)
    self.weight = uniform(scale, output_dims, input2_dims, input1_dims)
    if bias then self.bias = uniform(scale, output_dims) end
  end,
  forward = function(self, x1, x2)
    local out, in2, in1 = unpack(self.weight.shape)
    local shape = {}
    for i = 0, x1.ndim - 2 do shape[i + 1] = x1:dim(i) end
    shape[#shape + 1] = out
    local y = mx.matmul(x1:reshape({-1, in1}), self.weight:reshape({out * in2, in1}).T)
    y = mx.matmul(x2:reshape({-1, 1, in2}), y:reshape({-1, out, in2}):swapaxes(-2, -1))
    y = y:squeeze(1):reshape(shape)
    if self.bias then y = y + self.bias end
    return y
  end,
  repr = function(self)
    local w = self.weight
    return described(self, "input1_dims= input2_dims= output_dims= bias=",
      {input1_dims = w:dim(2), input2_dims = w:dim(1), output_dims = w:dim(0), bias = self.bias ~= nil})
  end,
}

layer{
  name = "Sequential", sig = "modules:any...",
  help = "The layer that calls the modules (or functions) one after the other, each with what the one before it " ..
    "gave: " ..
    "they are its field layers.",
  init = function(self, ...)
    for i = 1, select("#", ...) do
      local m = (select(i, ...))
      if not core.callable(m) then
        fail("Sequential", ("argument %d is %s, want a module or a function"):format(i,
          m == nil and "nil" or "a " .. mx.type(m)))
      end
    end
    self.layers = {...}
  end,
  forward = function(self, x)
    for _, m in ipairs(self.layers) do x = m(x) end
    return x
  end,
}

return {Linear = Linear}
