-- Upsampling.
local mx, _, fail, use = ...

local class, text = use("class"), use("text")
local layer, described, float = class.layer, text.described, text.float

-- places are where the new elements along an axis of n lie among the old ones.
local function places(n, scale, align_corners)
  local m = math.floor(scale * n)
  local at = mx.arange(m, {dtype = mx.float32})
  if align_corners then return at * ((n - 1) / math.max(m - 1, 1)) end
  local step = 1 / scale
  return at * step - ((m - 1) * step - n + 1) / 2
end

-- within turns places into indices of an axis of n.
local function within(at, n) return mx.clip(at, 0, n - 1):astype(mx.uint32) end

-- Each of the following is a list of {indices, weights}: a new element is the sum of the old ones there, weighted.

local function linear(n, scale, align_corners)
  local at = mx.clip(places(n, scale, align_corners), 0, n - 1)
  local left = mx.floor(at)
  local weight = at - left
  return {{left:astype(mx.uint32), 1 - weight}, {mx.ceil(at):astype(mx.uint32), weight}}
end

-- near and far are the two pieces of the cubic kernel: up to distance 1, and up to 2.
local function near(a, x) return ((a + 2) * x - (a + 3)) * x * x + 1 end

local function far(a, x) return (((x - 5) * x + 8) * x - 4) * a end

local function cubic(n, scale, align_corners)
  local at = places(n, scale, align_corners)
  local left, right = mx.floor(at), mx.floor(at + 1)
  local a = -0.75
  local function tap(i, piece) return {within(i, n), piece(a, mx.abs(at - i))} end
  return {tap(left, near), tap(right, near), tap(left - 1, far), tap(right + 1, far)}
end

-- smooth makes a list by a kernel of that radius, which is wider where the array shrinks.
local function smooth(kernel, radius)
  return function(n, scale, align_corners)
    local at, out, sum = places(n, scale, align_corners), {}, 0
    local wider = scale < 1 and 1 / scale or 1
    local taps = math.ceil(radius * wider) + 1
    for k = 1 - taps, taps - 1 do
      local i = mx.floor(at) + k
      local inside = mx.logical_and(mx.greater_equal(i, 0), mx.less(i, n))
      local weight = mx.where(inside, kernel(mx.abs(at - i) / wider), 0)
      out[#out + 1] = {within(i, n), weight}
      sum = sum + weight
    end
    sum = mx.where(mx.greater(sum, 0), sum, 1)
    for _, tap in ipairs(out) do tap[2] = tap[2] / sum end
    return out
  end
end

local smooth_linear = smooth(function(x) return mx.maximum(1 - x, 0) end, 1)

local smooth_cubic = smooth(function(x)
  return mx.where(mx.less_equal(x, 1), near(-0.5, x), mx.where(mx.less_equal(x, 2), far(-0.5, x), 0))
end, 2)

-- column is weights along the first of so many axes.
local function column(weight, axes)
  local shape = {-1}
  for i = 2, axes do shape[i] = 1 end
  return weight:reshape(shape)
end

-- interpolate applies a list along each spatial axis in turn.
local function interpolate(x, scales, taps, align_corners)
  for axis, scale in ipairs(scales) do
    local sum
    for _, tap in ipairs(taps(x:dim(axis), scale, align_corners)) do
      local y = mx.take(x, tap[1], axis) * column(tap[2], x.ndim - axis)
      sum = sum and sum + y or y
    end
    x = sum
  end
  return x
end

-- nearest repeats elements, or picks them where a scale is no integer.
local function nearest(x, scales)
  local whole = true
  for _, scale in ipairs(scales) do whole = whole and scale == math.floor(scale) end
  for axis, scale in ipairs(scales) do
    if whole then
      x = mx["repeat"](x, scale, axis)
    else
      local n = x:dim(axis)
      local m = math.floor(scale * n)
      local at = mx.arange(m, {dtype = mx.float32})
      if m > n then
        at = mx.round((at + 0.5) * (n / m) - 0.5)
      else
        at = at * (n / m)
      end
      x = mx.take(x, at:astype(mx.uint32), axis)
    end
  end
  return x
end

local modes = {nearest = true, linear = true, cubic = true}

layer{
  name = "Upsample", sig = "scale_factor:list mode:string=nearest align_corners:bool=false antialias:bool=false",
  help = "An array (N, sizes..., C) with each size times scale_factor, a number or one for each: by the " ..
    "\"nearest\" " ..
    "elements, or by \"linear\" or \"cubic\" interpolation. With align_corners the first and last elements stay " ..
    "where " ..
    "they are; with antialias (linear, cubic) elements are averaged over a wider range where the array shrinks.",
  init = function(self, scale_factor, mode, align_corners, antialias)
    if not modes[mode] then fail("Upsample", ("mode is %q, want nearest, linear or cubic"):format(mode)) end
    if antialias and mode == "nearest" then fail("Upsample", "antialias does not go with the mode nearest") end
    if antialias and align_corners then fail("Upsample", "antialias does not go with align_corners") end
    self.scale_factor, self.mode, self.align_corners, self.antialias = scale_factor, mode, align_corners, antialias
  end,
  forward = function(self, x)
    local dimensions, scales = x.ndim - 2, self.scale_factor
    if dimensions <= 0 then fail("Upsample", ("the array has %d dimensions, want at least 3"):format(x.ndim)) end
    if type(scales) == "number" then
      scales = {}
      for i = 1, dimensions do scales[i] = self.scale_factor end
    end
    if #scales ~= dimensions then
      fail("Upsample", ("scale_factor has %d elements, the array has %d spatial dimensions"):format(#scales,
        dimensions))
    end
    if self.mode == "nearest" then return nearest(x, scales) end
    local taps
    if self.mode == "linear" then
      taps = self.antialias and smooth_linear or linear
    else
      taps = self.antialias and smooth_cubic or cubic
    end
    return interpolate(x, scales, taps, self.align_corners)
  end,
  repr = function(self)
    local scale = self.scale_factor
    if type(scale) == "table" then
      local parts = {}
      for i, v in ipairs(scale) do parts[i] = float(v) end
      scale = "(" .. table.concat(parts, ", ") .. (#parts == 1 and ",)" or ")")
    else
      scale = float(scale)
    end
    local out = "scale_factor=" .. scale .. ", mode='" .. self.mode .. "', " .. described(self, "align_corners=")
    if self.antialias then out = out .. ", antialias=True" end
    return out
  end,
}
