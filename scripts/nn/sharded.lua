-- Linear layers of which each process of a group has a part.
local mx, define, fail, use = ...
local nn, utils = use("mx.nn"), use("mx.utils")

local class, text = use("class"), use("text")
local layer, described, Module = class.layer, text.described, class.Module
use("linear")
local packed = use("quantized").packed
use("modes")

-- parts are x in segments along an axis: as many, or cut at places, or at shares of the whole.
local function parts(x, segments, axis)
  if type(segments) == "table" and segments[1] ~= math.floor(segments[1]) then
    local n, cuts = x:dim(axis), {}
    for i, share in ipairs(segments) do cuts[i] = math.floor(share * n) end
    segments = cuts
  end
  return mx.split(x, segments, axis)
end

-- shard is this process's part of a parameter: of each segment along an axis, its share.
local function shard(x, axis, segments, group)
  local out = {}
  for i, part in ipairs(parts(x, segments, axis)) do
    out[i] = mx.split(part, group:size(), axis)[group:rank() + 1]
  end
  return mx.contiguous(mx.concatenate(out, axis))
end

-- sharded are the parameters of a layer for one of the ways: a part of the outputs, or of the inputs, for which the
-- bias stays whole.
local function sharded(parameters, outputs, segments, group)
  local out = {}
  for name, x in pairs(parameters) do
    if name ~= "bias" then
      out[name] = shard(x, outputs and math.max(x.ndim - 2, 0) or -1, segments, group)
    elseif outputs then
      out[name] = shard(x, -1, segments, group)
    else
      out[name] = x
    end
  end
  return out
end

-- summed is x, whose gradient is the sum of those of all processes.
local function summed(x, group)
  if group:size() == 1 then return x end
  local f = mx.custom_function(function(v) return v end)
  f:vjp(function(_, dx) return mx.distributed.all_sum(dx, {group = group}) end)
  return f(x)
end

-- share is n over the group's processes.
local function share(name, setting, n, group)
  if n % group:size() ~= 0 then
    fail(name, ("%s is %d, which is no multiple of the %d processes"):format(setting, n, group:size()))
  end
  return n / group:size()
end

-- keywords of from_linear and from_quantized_linear.
local function settings(t)
  t = t or {}
  return t.segments or 1, t.group or mx.distributed.init()
end

local kinds = {
  {name = "AllToShardedLinear", outputs = true, help = "of which each process has a part of the outputs"},
  {name = "ShardedToAllLinear", outputs = false,
    help = "of which each process has a part of the inputs, and whose result is the sum of all processes'"},
}

-- sizes are the dimensions of a process's weight.
local function sizes(name, outputs, input_dims, output_dims, group)
  if outputs then return share(name, "output_dims", output_dims, group), input_dims end
  return output_dims, share(name, "input_dims", input_dims, group)
end

-- forward makes a layer's function of the product with its weight.
local function forward(outputs, product)
  return function(self, x)
    if outputs then return product(self, summed(x, self.group), self.bias) end
    local y = mx.distributed.all_sum(product(self, x), {group = self.group})
    if self.bias then y = y + self.bias end
    return y
  end
end

local function whole(self, outputs, inner)
  local out, n = self.weight:dim(0), self.group:size()
  return {input_dims = outputs and inner or inner * n, output_dims = outputs and out * n or out,
    bias = self.bias ~= nil}
end

for _, kind in ipairs(kinds) do
  local name, outputs = kind.name, kind.outputs
  local Sharded = layer{
    name = name, sig = "input_dims:int output_dims:int bias:bool=true group:any?", empty = "output_dims",
    help = "A Linear " .. kind.help .. ": group is that of mx.distributed.init() unless it is given. " ..
      "nn." .. name .. ".from_linear(linear, {segments = 1, group = nil}) makes one of a Linear.",
    init = function(self, input_dims, output_dims, bias, group)
      self.group = group or mx.distributed.init()
      local scale = math.sqrt(1 / input_dims)
      local rows, columns = sizes(name, outputs, input_dims, output_dims, self.group)
      self.weight = mx.random.uniform(-scale, scale, {rows, columns})
      if bias then self.bias = mx.random.uniform(-scale, scale, {rows}) end
    end,
    forward = forward(outputs, function(self, x, bias)
      if bias then return mx.addmm(bias, x, self.weight.T) end
      return mx.matmul(x, self.weight.T)
    end),
    repr = function(self)
      return described(self, "input_dims= output_dims= bias=", whole(self, outputs, self.weight:dim(1)))
    end,
  }

  function Sharded.from_linear(linear, keywords)
    local segments, group = settings(keywords)
    local w = linear.weight
    local self = nn[name](w:dim(1), w:dim(0), linear.bias ~= nil, group)
    return self:update(sharded(linear:parameters(), outputs, segments, group))
  end

  local quantized = "Quantized" .. name
  local Quantized = layer{
    name = quantized,
    sig = "input_dims:int output_dims:int bias:bool=true group_size:int=64 bits:int=4 mode:string=affine group:any?",
    empty = "output_dims",
    help = "A QuantizedLinear " .. kind.help .. ": see nn." .. name .. ". nn." .. quantized ..
      ".from_quantized_linear(linear, {segments = 1, group = nil}) makes one of a QuantizedLinear.",
    init = function(self, input_dims, output_dims, bias, group_size, bits, mode, group)
      self.group_size, self.bits, self.mode = group_size, bits, mode
      self.group = group or mx.distributed.init()
      local rows, columns = sizes(quantized, outputs, input_dims, output_dims, self.group)
      packed.fill(self, quantized, rows, columns, function()
        local scale = math.sqrt(1 / input_dims)
        return mx.random.uniform(-scale, scale, {rows, columns})
      end)
      if bias then self.bias = mx.zeros({rows}) end
      self:freeze()
    end,
    forward = forward(outputs, function(self, x, bias)
      local y = mx.quantized_matmul(x, self.weight, {scales = self.scales, biases = self.biases, transpose = true,
        group_size = self.group_size, bits = self.bits, mode = self.mode})
      if bias then y = y + bias end
      return y
    end),
    repr = function(self)
      return described(self, "input_dims= output_dims= bias= group_size= bits= mode=",
        whole(self, outputs, packed.inputs(self)))
    end,
  }

  -- unfreeze leaves the layer's own parameters frozen.
  function Quantized:unfreeze(keywords)
    Module.unfreeze(self, keywords)
    return self:freeze{recurse = false}
  end

  function Quantized.from_quantized_linear(linear, keywords)
    local segments, group = settings(keywords)
    local w = linear.weight
    local self = nn[quantized](packed.inputs(linear), w:dim(0), linear.bias ~= nil, linear.group_size,
      linear.bits, linear.mode, group)
    return self:update(sharded(linear:parameters(), outputs, segments, group))
  end
end

define{
  name = "average_gradients", sig = "gradients:any group:any?",
  help = "The mean of a tree of gradients over the processes of a group, that of mx.distributed.init() unless it is " ..
    "given.",
  call = function(gradients, group)
    group = group or mx.distributed.init()
    local n = group:size()
    if n == 1 then return gradients end
    return utils.tree_map(function(g) return mx.distributed.all_sum(g, {group = group}) / n end, gradients)
  end,
}
