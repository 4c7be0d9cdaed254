-- Pools: a maximum or a mean over windows.
local mx, _, fail, use = ...

local layer, described = use("class").layer, use("text").described

-- listed is a setting as a list of so many integers.
local function listed(name, setting, v, dimensions)
  local out = {}
  if type(v) == "number" then
    for i = 1, dimensions do out[i] = v end
  else
    for i, n in ipairs(v) do out[i] = n end
  end
  if #out ~= dimensions then
    fail(name, ("%s has %d elements, want an integer or %d of them"):format(setting, #out, dimensions))
  end
  for _, n in ipairs(out) do
    if setting == "padding" and n < 0 then fail(name, ("padding is %d, want no negative number"):format(n)) end
    if setting ~= "padding" and n <= 0 then fail(name, ("%s is %d, want a positive number"):format(setting, n)) end
  end
  return out
end

-- split is x (N, sizes..., C) as (N, counts..., windows..., C) where the windows do not overlap and leave nothing.
local function split(x, sizes)
  local shape, order = {x:dim(0)}, {0}
  for i, size in ipairs(sizes) do
    shape[2 * i], shape[2 * i + 1] = x:dim(i) / size, size
    order[1 + i], order[1 + #sizes + i] = 2 * i - 1, 2 * i
  end
  shape[#shape + 1], order[#order + 1] = x:dim(-1), 2 * #sizes + 1
  return x:reshape(shape):transpose(order)
end

-- windows is x (N, sizes..., C) as a view (N, counts..., windows..., C).
local function windows(x, sizes, strides)
  local dimensions, whole = #sizes, true
  for i = 1, dimensions do whole = whole and sizes[i] == strides[i] and x:dim(i) % sizes[i] == 0 end
  if whole then return split(x, sizes) end
  local channels = x:dim(-1)
  local step = {[dimensions] = channels} -- elements from one place to the next
  for i = dimensions - 1, 1, -1 do step[i] = step[i + 1] * x:dim(i + 1) end
  local shape, by = {x:dim(0)}, {step[1] * x:dim(1)}
  for i = 1, dimensions do
    shape[1 + i], by[1 + i] = math.floor((x:dim(i) - sizes[i]) / strides[i]) + 1, step[i] * strides[i]
    shape[1 + dimensions + i], by[1 + dimensions + i] = sizes[i], step[i]
  end
  shape[#shape + 1], by[#by + 1] = channels, 1
  return mx.as_strided(x, shape, by)
end

local function pool(name, dimensions, reduce, outside, help)
  layer{
    name = name, sig = "kernel_size:ints stride:ints? padding:ints=0", help = help,
    init = function(self, kernel_size, stride, padding)
      self._kernel_size = listed(name, "kernel_size", kernel_size, dimensions)
      self._stride = listed(name, "stride", stride or kernel_size, dimensions)
      self._padding = listed(name, "padding", padding, dimensions)
    end,
    forward = function(self, x)
      if x.ndim ~= dimensions + 2 then
        fail(name, ("the array has %d dimensions, want %d"):format(x.ndim, dimensions + 2))
      end
      local widths, padded, axes = {{0, 0}}, false, {}
      for i, n in ipairs(self._padding) do
        widths[1 + i], padded, axes[i] = {n, n}, padded or n > 0, i - 2 - dimensions
      end
      widths[#widths + 1] = {0, 0}
      if padded then x = mx.pad(x, widths, {constant_values = outside}) end
      return reduce(windows(x, self._kernel_size, self._stride), axes)
    end,
    repr = function(self)
      return described(self, "kernel_size= stride= padding=",
        {kernel_size = self._kernel_size, stride = self._stride, padding = self._padding})
    end,
  }
end

for dimensions, shape in ipairs{"(N, L, C)", "(N, H, W, C)", "(N, D, H, W, C)"} do
  local rest = (" over windows of kernel_size places of an array %s, at steps of stride (kernel_size unless it is " ..
    "given); padding places on each side hold "):format(shape)
  pool(("MaxPool%dd"):format(dimensions), dimensions, mx.max, -mx.inf, "The maximum" .. rest .. "-inf.")
  pool(("AvgPool%dd"):format(dimensions), dimensions, mx.mean, 0, "The mean" .. rest .. "0.")
end
