-- mx.nn: functions that neural networks are made of, by their definitions in MLX.
local mx, define = ...

define{name = "sigmoid", sig = "x", help = "1 / (1 + exp(-x)), element by element.", call = mx.sigmoid}

define{name = "tanh", sig = "x", help = "The hyperbolic tangent of each element.", call = mx.tanh}

define{
  name = "relu", sig = "x", help = "max(x, 0), element by element.",
  call = function(x) return mx.maximum(x, 0) end,
}

define{
  name = "leaky_relu", sig = "x negative_slope:number=0.01",
  help = "max(negative_slope * x, x), element by element.",
  call = function(x, slope) return mx.maximum(slope * x, x) end,
}

define{
  name = "silu", sig = "x", help = "x * sigmoid(x), element by element; it is also called swish.",
  call = function(x) return x * mx.sigmoid(x) end,
}

define{
  name = "softplus", sig = "x", help = "log(1 + exp(x)), element by element, without overflow.",
  call = function(x) return mx.logaddexp(x, 0) end,
}

define{
  name = "gelu", sig = "x",
  help = "x * (1 + erf(x / sqrt(2))) / 2, element by element: x times the normal distribution's share below x.",
  call = function(x) return x * (1 + mx.erf(x / math.sqrt(2))) / 2 end,
}

define{
  name = "gelu_approx", sig = "x",
  help = "gelu by a hyperbolic tangent: x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))), element by element.",
  call = function(x) return 0.5 * x * (1 + mx.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x))) end,
}

define{
  name = "softmax", sig = "x axis:axes=-1", help = "exp(x) / sum(exp(x)) along an axis.",
  call = function(x, axis) return mx.softmax(x, axis) end,
}

define{
  name = "log_softmax", sig = "x axis:axes=-1", help = "x - log(sum(exp(x))) along an axis, without overflow.",
  call = function(x, axis) return x - mx.logsumexp(x, axis, true) end,
}
