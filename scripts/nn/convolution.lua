-- Convolutions.
local mx, _, fail, use = ...

local layer, described = use("class").layer, use("text").described

-- each is a setting for each of the dimensions: a number stands for as many.
local function each(v, dimensions)
  if type(v) ~= "number" then return v end
  local out = {}
  for i = 1, dimensions do out[i] = v end
  return out
end

local function product(sizes)
  local n = 1
  for _, s in ipairs(sizes) do n = n * s end
  return n
end

-- begin makes the parameters and settings of a convolution; groups is nil where there are none.
local function begin(self, name, dimensions, d)
  local groups = d.groups or 1
  if d.in_channels % groups ~= 0 then
    fail(name, ("in_channels is %d, which is no multiple of groups, %d"):format(d.in_channels, groups))
  end
  local inner, sizes = d.in_channels / groups, each(d.kernel_size, dimensions)
  if type(d.kernel_size) == "table" and #sizes ~= dimensions then
    fail(name, ("kernel_size has %d elements, want %d"):format(#sizes, dimensions))
  end
  local scale = math.sqrt(1 / (inner * product(sizes)))
  local shape = {d.out_channels, unpack(sizes)}
  shape[#shape + 1] = inner
  self.weight = mx.random.uniform(-scale, scale, shape)
  if d.bias then self.bias = mx.zeros({d.out_channels}) end
  for _, setting in ipairs{"stride", "padding", "output_padding"} do
    self[setting] = dimensions > 1 and each(d[setting], dimensions) or d[setting]
  end
  self.dilation, self.groups = d.dilation, d.groups
end

local function with_bias(self, y)
  if self.bias then y = y + self.bias end
  return y
end

-- repr makes the function of a convolution's text.
local function repr(dimensions, settings)
  return function(self)
    local w, sizes = self.weight, {}
    for i = 1, dimensions do sizes[i] = w:dim(i) end
    return described(self, "in_channels out_channels kernel_size= " .. settings .. " bias=", {
      in_channels = w:dim(-1) * (self.groups or 1), out_channels = w:dim(0),
      kernel_size = dimensions > 1 and sizes or sizes[1], bias = self.bias ~= nil,
    })
  end
end

local axes = {"(N, L, in_channels)", "(N, H, W, in_channels)", "(N, D, H, W, in_channels)"}

local function about(dimensions, kind, rest)
  return ("A %s over arrays %s, with the parameters weight (out_channels, kernel..., in_channels%s) and, unless " ..
    "bias is false, bias (out_channels): see mx.conv%s%dd. %s"):format(kind, axes[dimensions],
    dimensions < 3 and kind == "convolution" and " / groups" or "",
    kind == "convolution" and "" or "_transpose", dimensions,
    dimensions > 1 and "kernel_size, stride, padding" .. rest .. " are one number for all dimensions or a table." or "")
end

for dimensions, convolve in ipairs{mx.conv1d, mx.conv2d} do
  local name = ("Conv%dd"):format(dimensions)
  local kind = dimensions == 1 and "int" or "ints"
  layer{
    name = name,
    sig = ("in_channels:int out_channels:int kernel_size:%s stride:%s=1 padding:%s=0 dilation:%s=1 groups:int=1 " ..
      "bias:bool=true"):format(kind, kind, kind, kind),
    empty = "out_channels",
    help = about(dimensions, "convolution", ", dilation"),
    init = function(self, in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias)
      begin(self, name, dimensions, {in_channels = in_channels, out_channels = out_channels,
        kernel_size = kernel_size, stride = stride, padding = padding, dilation = dilation, groups = groups,
        bias = bias})
    end,
    forward = function(self, x)
      return with_bias(self, convolve(x, self.weight, self.stride, self.padding, self.dilation, self.groups))
    end,
    repr = repr(dimensions, "stride= padding= dilation= groups="),
  }
end

layer{
  name = "Conv3d",
  sig = "in_channels:int out_channels:int kernel_size:ints stride:ints=1 padding:ints=0 dilation:ints=1 " ..
    "bias:bool=true",
  empty = "out_channels", help = about(3, "convolution", ", dilation"),
  init = function(self, in_channels, out_channels, kernel_size, stride, padding, dilation, bias)
    begin(self, "Conv3d", 3, {in_channels = in_channels, out_channels = out_channels, kernel_size = kernel_size,
      stride = stride, padding = padding, dilation = dilation, bias = bias})
  end,
  forward = function(self, x)
    return with_bias(self, mx.conv3d(x, self.weight, self.stride, self.padding, self.dilation))
  end,
  repr = repr(3, "stride= padding= dilation="),
}

for dimensions, convolve in ipairs{mx.conv_transpose1d, mx.conv_transpose2d, mx.conv_transpose3d} do
  local name = ("ConvTranspose%dd"):format(dimensions)
  local kind = dimensions == 1 and "int" or "ints"
  layer{
    name = name,
    sig = ("in_channels:int out_channels:int kernel_size:%s stride:%s=1 padding:%s=0 dilation:%s=1 " ..
      "output_padding:%s=0 bias:bool=true"):format(kind, kind, kind, kind, kind),
    empty = "out_channels", help = about(dimensions, "transposed convolution", ", dilation, output_padding"),
    init = function(self, in_channels, out_channels, kernel_size, stride, padding, dilation, output_padding, bias)
      begin(self, name, dimensions, {in_channels = in_channels, out_channels = out_channels,
        kernel_size = kernel_size, stride = stride, padding = padding, dilation = dilation,
        output_padding = output_padding, bias = bias})
    end,
    forward = function(self, x)
      return with_bias(self, convolve(x, self.weight, self.stride, self.padding, self.dilation, self.output_padding))
    end,
    repr = repr(dimensions, "stride= padding= dilation= output_padding="),
  }
end
