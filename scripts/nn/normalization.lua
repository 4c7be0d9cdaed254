-- Normalizations.
local mx, _, fail, use = ...

local layer, described = use("class").layer, use("text").described
local Module = use("class").Module
use("modes")

local function positive(name, eps)
  if eps <= 0 then fail(name, ("eps is %g, want a positive number"):format(eps)) end
end

local function affine(self, dims)
  self.weight, self.bias = mx.ones({dims}), mx.zeros({dims})
end

local function scaled(self, x)
  if self.weight then return self.weight * x + self.bias end
  return x
end

local function settings(text)
  return function(self) return described(self, text, {affine = self.weight ~= nil}) end
end

layer{
  name = "InstanceNorm", sig = "dims:int eps:number=1e-5 affine:bool=false", empty = "dims",
  help = "Each channel of each example of an array (N, ..., dims), less its mean and divided by its standard " ..
    "deviation " ..
    "(the root of its variance + eps); with affine times weight plus bias, (dims) each.",
  init = function(self, dims, eps, with)
    positive("InstanceNorm", eps)
    if with then affine(self, dims) end
    self.dims, self.eps = dims, eps
  end,
  forward = function(self, x)
    local n = x.ndim
    if n < 3 then fail("InstanceNorm", ("the array has %d dimensions, want at least 3: (N, ..., C)"):format(n)) end
    local y = x:moveaxis(-1, 1)
    y = mx.fast.layer_norm(y:flatten(2, -1), nil, nil, self.eps):reshape(y)
    return scaled(self, y:moveaxis(1, -1))
  end,
  repr = settings("dims eps= affine="),
}

layer{
  name = "LayerNorm", sig = "dims:int eps:number=1e-5 affine:bool=true bias:bool=true", empty = "dims",
  help = "The rows of an array (..., dims), each less its mean and divided by its standard deviation (the root " ..
    "of its " ..
    "variance + eps); with affine times weight and, unless bias is false, plus bias, (dims) each: see " ..
    "mx.fast.layer_norm.",
  init = function(self, dims, eps, with, bias)
    positive("LayerNorm", eps)
    if with then
      self.weight = mx.ones({dims})
      if bias then self.bias = mx.zeros({dims}) end
    end
    self.eps, self.dims = eps, dims
  end,
  forward = function(self, x) return mx.fast.layer_norm(x, self.weight, self.bias, self.eps) end,
  repr = settings("dims eps= affine="),
}

layer{
  name = "RMSNorm", sig = "dims:int eps:number=1e-5", empty = "dims",
  help = "The rows of an array (..., dims), each divided by the root of (its squares' mean + eps), times weight " ..
    "(dims): " ..
    "see mx.fast.rms_norm.",
  init = function(self, dims, eps)
    positive("RMSNorm", eps)
    self.weight, self.eps = mx.ones({dims}), eps
  end,
  forward = function(self, x) return mx.fast.rms_norm(x, self.weight, self.eps) end,
  repr = function(self) return described(self, "dims eps=", {dims = self.weight:dim(0)}) end,
}

-- as_groups is x (N, ..., C) as (N, -1, groups), or with a size as (N, -1, groups, size).
local function as_groups(x, ...) return x:reshape(mx.dims({x, 0}, -1, ...)) end

layer{
  name = "GroupNorm", sig = "num_groups:int dims:int eps:number=1e-5 affine:bool=true pytorch_compatible:bool=false",
  help = "An array (N, ..., dims) normalized as by LayerNorm, each of num_groups groups of channels of an " ..
    "example on its " ..
    "own; with affine times weight plus bias, (dims) each. A group has the channels of the same remainder by " ..
    "num_groups; with pytorch_compatible, neighbours.",
  init = function(self, num_groups, dims, eps, with, compatible)
    positive("GroupNorm", eps)
    if num_groups <= 0 then fail("GroupNorm", ("num_groups is %d, want a positive integer"):format(num_groups)) end
    if dims <= 0 then fail("GroupNorm", ("dims is %d, want a positive integer"):format(dims)) end
    if dims % num_groups ~= 0 then
      fail("GroupNorm", ("dims is %d, which is no multiple of num_groups, %d"):format(dims, num_groups))
    end
    if with then self.bias, self.weight = mx.zeros({dims}), mx.ones({dims}) end
    self.num_groups, self.dims, self.eps, self.pytorch_compatible = num_groups, dims, eps, compatible
  end,
  forward = function(self, x)
    local groups, y = self.num_groups
    if self.pytorch_compatible then
      local size = self.dims / groups
      y = as_groups(x, groups, size):transpose({0, 2, 1, 3})
      y = mx.fast.layer_norm(y:flatten(2, -1), nil, nil, self.eps):reshape(y):transpose({0, 2, 1, 3})
    else
      y = as_groups(x, groups)
      local mean, var = mx.mean(y, 1, true), mx.var(y, 1, true)
      y = (y - mean) * mx.rsqrt(var + self.eps)
    end
    return scaled(self, y:reshape(x))
  end,
  repr = settings("num_groups dims eps= affine= pytorch_compatible="),
}

local BatchNorm = layer{
  name = "BatchNorm",
  sig = "num_features:int eps:number=1e-5 momentum:number=0.1 affine:bool=true track_running_stats:bool=true",
  empty = "num_features",
  help = "Each channel of an array (N, ..., num_features) of 2 to 4 dimensions, less its mean and divided by " ..
    "its standard " ..
    "deviation (the root of its variance + eps); with affine times weight plus bias. In training, the mean and " ..
    "the " ..
    "variance are the batch's, and running_mean and running_var move towards them by momentum; in evaluation they " ..
    "are those two, unless track_running_stats is false.",
  init = function(self, num_features, eps, momentum, with, track)
    positive("BatchNorm", eps)
    self.num_features, self.eps, self.momentum, self.track_running_stats = num_features, eps, momentum, track
    if with then affine(self, num_features) end
    if track then
      self.running_mean, self.running_var = mx.zeros({num_features}), mx.ones({num_features})
      self:freeze{keys = {"running_mean", "running_var"}, recurse = false}
    end
  end,
  forward = function(self, x)
    local n = x.ndim
    if n < 2 or n > 4 then fail("BatchNorm", ("the array has %d dimensions, want 2, 3 or 4"):format(n)) end
    local axes = {}
    for i = 0, n - 2 do axes[i + 1] = i end
    local mean, var
    if self.training and x.size > 0 and x.size == x:dim(-1) then
      fail("BatchNorm", "a channel has one value only: training wants more")
    end
    if self.training or not self.track_running_stats then mean, var = mx.mean(x, axes), mx.var(x, axes) end
    if self.training and self.track_running_stats then
      local mu = self.momentum
      self.running_mean = (1 - mu) * self.running_mean + mu * mean
      self.running_var = (1 - mu) * self.running_var + mu * mx.var(x, axes, {ddof = 1})
    elseif self.track_running_stats then
      mean, var = self.running_mean, self.running_var
    end
    return scaled(self, (x - mean) * mx.rsqrt(var + self.eps))
  end,
  repr = settings("num_features eps= momentum= affine= track_running_stats="),
}

-- unfreeze leaves the running statistics frozen.
function BatchNorm:unfreeze(keywords)
  Module.unfreeze(self, keywords)
  return self:freeze{keys = {"running_mean", "running_var"}, recurse = false}
end
