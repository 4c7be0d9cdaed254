-- The activation functions as layers.
local mx, _, fail, use = ...

local layer = use("class").layer
use("activations")
local nn = use("mx.nn")

for name, f in pairs{
  Sigmoid = "sigmoid", Mish = "mish", ReLU = "relu", ReLU2 = "relu2", ReLU6 = "relu6", Softmax = "softmax",
  Softplus = "softplus", Softsign = "softsign", SiLU = "silu", LogSoftmax = "log_softmax", LogSigmoid = "log_sigmoid",
  Tanh = "tanh", Hardswish = "hardswish", SELU = "selu", HardTanh = "hard_tanh", Softmin = "softmin",
} do
  local call = nn[f]
  layer{name = name, help = ("The layer that applies mx.nn.%s."):format(f), forward = function(_, x) return call(x) end}
end

layer{
  name = "GLU", sig = "axis:axis=-1", help = "The layer that applies mx.nn.glu along an axis.",
  init = function(self, axis) self.axis = axis end,
  forward = function(self, x) return nn.glu(x, self.axis) end,
}

layer{
  name = "LeakyReLU", sig = "negative_slope:number=0.01", help = "The layer that applies mx.nn.leaky_relu.",
  init = function(self, slope) self._negative_slope = slope end,
  forward = function(self, x) return nn.leaky_relu(x, self._negative_slope) end,
}

layer{
  name = "ELU", sig = "alpha:number=1.0", help = "The layer that applies mx.nn.elu.",
  init = function(self, alpha) self._alpha = alpha end,
  forward = function(self, x) return nn.elu(x, self._alpha) end,
}

layer{
  name = "CELU", sig = "alpha:number=1.0", help = "The layer that applies mx.nn.celu.",
  init = function(self, alpha) self._alpha = alpha end,
  forward = function(self, x) return nn.celu(x, self._alpha) end,
}

layer{
  name = "Softshrink", sig = "lambd:number=0.5", help = "The layer that applies mx.nn.softshrink.",
  init = function(self, lambd) self.lambd = lambd end,
  forward = function(self, x) return nn.softshrink(x, self.lambd) end,
}

layer{
  name = "HardShrink", sig = "lambd:number=0.5", help = "The layer that applies mx.nn.hard_shrink.",
  init = function(self, lambd) self.lambd = lambd end,
  forward = function(self, x) return nn.hard_shrink(x, self.lambd) end,
}

layer{
  name = "Step", sig = "threshold:number=0.0", help = "The layer that applies mx.nn.step.",
  init = function(self, threshold) self.threshold = threshold end,
  forward = function(self, x) return nn.step(x, self.threshold) end,
}

layer{
  name = "PReLU", sig = "num_parameters:int=1 init:number=0.25", empty = "num_parameters",
  help = "The layer that applies mx.nn.prelu with its parameter weight, (num_parameters), which begins as init.",
  init = function(self, n, value) self.weight = mx.full({n}, value) end,
  forward = function(self, x) return nn.prelu(x, self.weight) end,
}

local approximations = {none = "gelu", precise = "gelu_approx", tanh = "gelu_approx", fast = "gelu_fast_approx"}

layer{
  name = "GELU", sig = "approx:string=none",
  help = "The layer that applies mx.nn.gelu, or with approx = \"precise\" or \"tanh\" mx.nn.gelu_approx, with " ..
    "\"fast\" " ..
    "mx.nn.gelu_fast_approx.",
  init = function(self, approx)
    if not approximations[approx] then
      fail("GELU", ("approx is %q, want none, precise, tanh or fast"):format(approx))
    end
    self._approx = approx
  end,
  forward = function(self, x) return nn[approximations[self._approx]](x) end,
}

