-- The activation functions, by their definitions in MLX.
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
  call = function(x, axis)
    x = x - mx.stop_gradient(mx.max(x, axis, true)) -- beside a large number the logarithm would be rounded away
    return x - mx.logsumexp(x, axis, true)
  end,
}

define{
  name = "relu2", sig = "x", help = "max(x, 0)^2, element by element.",
  call = function(x) return mx.square(mx.maximum(x, 0)) end,
}

define{
  name = "relu6", sig = "x", help = "min(max(x, 0), 6), element by element.",
  call = function(x) return mx.minimum(mx.maximum(x, 0), 6.0) end,
}

define{
  name = "elu", sig = "x alpha:number=1.0",
  help = "x where it is positive, alpha * (exp(x) - 1) elsewhere.",
  call = function(x, alpha) return mx.where(mx.greater(x, 0), x, alpha * (mx.exp(x) - 1)) end,
}

define{
  name = "celu", sig = "x alpha:number=1.0",
  help = "max(x, 0) + alpha * (exp(min(x, 0) / alpha) - 1), element by element.",
  call = function(x, alpha)
    return mx.maximum(x, 0) + alpha * (mx.exp(mx.minimum(x, 0) / alpha) - 1)
  end,
}

define{
  name = "selu", sig = "x", help = "1.0507 * elu(x, 1.67326), element by element.",
  call = function(x) return mx.where(mx.greater(x, 0), x, 1.67326 * (mx.exp(x) - 1)) * 1.0507 end,
}

define{
  name = "softsign", sig = "x", help = "x / (1 + |x|), element by element.",
  call = function(x) return mx.divide(x, 1 + mx.abs(x)) end,
}

define{
  name = "softshrink", sig = "x lambd:number=0.5",
  help = "x moved towards 0 by lambd, and 0 where |x| is at most lambd.",
  call = function(x, lambd)
    return mx.where(mx.greater(mx.abs(x), lambd), x - mx.sign(x) * lambd, 0)
  end,
}

define{
  name = "hard_shrink", sig = "x lambd:number=0.5", help = "x where |x| is above lambd, 0 elsewhere.",
  call = function(x, lambd) return mx.where(mx.greater(mx.abs(x), lambd), x, 0) end,
}

define{
  name = "hard_tanh", sig = "x min_val:number=-1.0 max_val:number=1.0",
  help = "min(max(x, min_val), max_val), element by element.",
  call = function(x, low, high) return mx.minimum(mx.maximum(x, low), high) end,
}

define{
  name = "hardswish", sig = "x", help = "x * min(max(x + 3, 0), 6) / 6, element by element.",
  call = function(x) return x * mx.minimum(mx.maximum(x + 3, 0), 6) / 6 end,
}

define{
  name = "log_sigmoid", sig = "x", help = "log(sigmoid(x)), element by element, without overflow.",
  call = function(x) return -mx.logaddexp(-x, 0) end,
}

define{
  name = "mish", sig = "x", help = "x * tanh(softplus(x)), element by element.",
  call = function(x) return x * mx.tanh(mx.logaddexp(x, 0)) end,
}

define{
  name = "gelu_fast_approx", sig = "x", help = "gelu by a sigmoid: x * sigmoid(1.702 * x), element by element.",
  call = function(x) return x * mx.sigmoid(1.702 * x) end,
}

define{
  name = "glu", sig = "x axis:axis=-1",
  help = "The first half of x along an axis, times the sigmoid of the second half.",
  call = function(x, axis)
    local parts = mx.split(x, 2, axis)
    return parts[1] * mx.sigmoid(parts[2])
  end,
}

define{
  name = "step", sig = "x threshold:number=0.0", help = "1 where x is at least threshold, 0 elsewhere: int32.",
  call = function(x, threshold) return mx.where(mx.greater_equal(x, threshold), 1, 0) end,
}

define{
  name = "prelu", sig = "x alpha", help = "max(x, 0) + alpha * min(x, 0), element by element: alpha is an array.",
  call = function(x, alpha) return mx.maximum(0, x) + alpha * mx.minimum(0, x) end,
}

define{
  name = "softmin", sig = "x axis:axes=-1", help = "softmax(-x) along an axis.",
  call = function(x, axis) return mx.softmax(-x, axis) end,
}
