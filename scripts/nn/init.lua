-- Initialisers: functions that make an array of another one's shape.
local mx, define, fail = ...

local function initializer(d)
  define{name = "init." .. d.name, sig = d.sig .. " dtype:dtype=float32", help = d.help .. " The function takes " ..
  "an " ..
    "array for its shape" .. (d.also or "") .. " and gives a new one.", call = d.call}
end

initializer{
  name = "constant", sig = "value:number", help = "A function that fills an array with value.",
  call = function(value, dtype) return function(a) return mx.full(a, value, {dtype = dtype}) end end,
}

initializer{
  name = "normal", sig = "mean:number=0.0 std:number=1.0",
  help = "A function that draws from the normal distribution of that mean and standard deviation.",
  call = function(mean, std, dtype)
    return function(a) return mx.random.normal(a, {scale = std, loc = mean, dtype = dtype}) end
  end,
}

initializer{
  name = "uniform", sig = "low:number=0.0 high:number=1.0", help = "A function that draws uniformly from [low, " ..
  "high).",
  call = function(low, high, dtype) return function(a) return mx.random.uniform(low, high, a, {dtype = dtype}) end end,
}

initializer{
  name = "identity", sig = "", help = "A function that makes the identity matrix.",
  call = function(dtype)
    return function(a)
      if a.ndim ~= 2 or a:dim(0) ~= a:dim(1) then
        local shape = table.concat(a.shape, ", ")
        fail("init.identity", ("the array has the shape (%s), want a square matrix"):format(shape))
      end
      return mx.eye(a:dim(0), {dtype = dtype})
    end
  end,
}

-- fans are how many inputs an output has and how many outputs an input has, of weights (out, ..., in).
local function fans(name, a)
  if a.ndim < 2 then
    fail("init." .. name, ("the array has %d dimensions, want at least 2"):format(a.ndim))
  end
  local field = 1
  for i = 1, a.ndim - 2 do field = field * a:dim(i) end
  return a:dim(-1) * field, a:dim(0) * field
end

-- option are the keywords of a call, or what stands in their places.
local function option(t, name)
  if type(t) == "table" then return t[name] end
  return t
end

local function spread(kind, a, width, dtype)
  if kind == "normal" then return mx.random.normal(a, {scale = width, dtype = dtype}) end
  return mx.random.uniform(-width, width, a, {dtype = dtype})
end

for kind, factor in pairs{normal = 2, uniform = 6} do
  local name = "glorot_" .. kind
  initializer{
    name = name, sig = "", also = " and a factor, gain = 1,",
    help = ("A function that draws from the %s distribution of the standard deviation gain * sqrt(2 / (fan_in + " ..
      "fan_out))."):format(kind),
    call = function(dtype)
      return function(a, gain)
        local fan_in, fan_out = fans(name, a)
        return spread(kind, a, (option(gain, "gain") or 1) * math.sqrt(factor / (fan_in + fan_out)), dtype)
      end
    end,
  }
end

for kind, factor in pairs{normal = 1, uniform = 3} do
  local name = "he_" .. kind
  initializer{
    name = name, sig = "", also = ", a mode (\"fan_in\" or \"fan_out\") and a factor, gain = 1,",
    help = ("A function that draws from the %s distribution of the standard deviation gain / sqrt(fan), where " ..
      "fan is " ..
      "fan_in unless mode says fan_out."):format(kind),
    call = function(dtype)
      return function(a, mode, gain)
        if type(mode) == "table" then mode, gain = mode.mode, mode.gain end
        mode, gain = mode or "fan_in", option(gain, "gain") or 1
        local fan_in, fan_out = fans(name, a)
        if mode ~= "fan_in" and mode ~= "fan_out" then
          fail("init." .. name, ("mode is %q, want fan_in or fan_out"):format(tostring(mode)))
        end
        local width = gain * math.sqrt(factor / (mode == "fan_in" and fan_in or fan_out))
        return spread(kind, a, width, dtype)
      end
    end,
  }
end

initializer{
  name = "sparse", sig = "sparsity:number mean:number=0.0 std:number=1.0",
  help = "A function that draws a matrix from the normal distribution and sets that share of each row, rounded " ..
    "up, to 0.",
  call = function(sparsity, mean, std, dtype)
    return function(a)
      if a.ndim ~= 2 then fail("init.sparse", ("the array has %d dimensions, want 2"):format(a.ndim)) end
      local zeros = math.ceil(sparsity * a:dim(1))
      local order = mx.argsort(mx.random.uniform(0, 1, a), 1)
      local out = mx.random.normal(a, {scale = std, loc = mean, dtype = dtype})
      local columns = order[":, :" .. zeros]
      return mx.put_along_axis(out, columns, mx.zeros(columns, {dtype = dtype}), 1)
    end
  end,
}

initializer{
  name = "orthogonal", sig = "gain:number=1.0",
  help = "A function that makes a matrix with orthogonal rows or columns, times gain, uniformly random among these.",
  call = function(gain, dtype)
    return function(a)
      if a.ndim ~= 2 then fail("init.orthogonal", ("the array has %d dimensions, want 2"):format(a.ndim)) end
      local rows, columns = a:dim(0), a:dim(1)
      local n = math.max(rows, columns)
      local q, r = mx.linalg.qr(mx.random.normal({n, n}), {stream = mx.cpu})
      q = (q * mx.sign(mx.diag(r)))[":" .. rows .. ", :" .. columns]
      return (q * gain):astype(dtype)
    end
  end,
}
