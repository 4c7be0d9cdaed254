-- mlxlua's side of peers.py: mlxlua --device cuda rows.lua [row ...]. A line a row: microseconds of one call.
local mx = require("mx")
local only = {}
for i = 1, #arg do only[arg[i]] = true end

-- timed is microseconds a call: the median of rounds of n calls one behind the other.
local function timed(n, f, measure)
  f() f() mx.synchronize()
  local t = {}
  for i = 1, 9 do
    local begun = mx.clock()
    if measure then t[i] = measure() else
      f()
      mx.synchronize()
      t[i] = mx.clock() - begun
    end
  end
  table.sort(t)
  return t[5] * 1e6 / n
end

local function row(name, make)
  if #arg > 0 and not only[name] then return end
  mx.clear_cache()
  local ok, us, device = pcall(function()
    local n, f, measure, kernels = make()
    local us = timed(n, f, measure)
    return us, kernels and kernels()
  end)
  if not ok then
    print(string.format("%-28s - %s", name, tostring(us):gsub("\n.*", ""):sub(1, 160)))
  elseif device then
    print(string.format("%-28s %.2f, kernels alone %.2f", name, us, device))
  else
    print(string.format("%-28s %.2f", name, us))
  end
end

local function filled(dtype, ...)
  local x = mx.random.normal({ ... }):astype(dtype)
  mx.eval(x)
  return x
end

-- large is a row of calls that take long: the time of their kernels by the card's clock, the median of nine.
local function large(name, make)
  row(name, function()
    local f = make()
    return 1, function() mx.eval(f()) end, function()
      local time = 0
      for _, r in ipairs((mx.profile(f)).rows) do time = time + r.time end
      return time
    end
  end)
end

-- small is a row of calls that take some microseconds: forty in a recorded step, going over sets of operands that
-- together are larger than the card's cache.
local function small(name, sets, x, call)
  row(name, function()
    local xs, ws = {}, {}
    for i = 1, 40 do xs[i] = x() end
    for i = 1, #sets > 0 and 0 or sets.n do ws[i] = sets.make() end
    local step = mx.compile(function(xs, ws)
      local out = {}
      for i = 1, #xs do out[i] = call(xs[i], ws[(i - 1) % #ws + 1]) end
      return out
    end)
    local function plain()
      local out = {}
      for i = 1, #xs do out[i] = call(xs[i], ws[(i - 1) % #ws + 1]) end
      return out
    end
    return 40 * 5, function()
      for _ = 1, 5 do mx.async_eval(step(xs, ws)) end
    end, nil, function()
      local time = 0
      for _, r in ipairs((mx.profile(plain)).rows) do time = time + r.time end
      return time * 1e6 / 40
    end
  end)
end

local G = 1024 * 1024 * 256
large("copy_1g", function() local a = filled(mx.float32, G); return function() return mx.array(a) + 0 end end)
large("add_1g", function() local a, b = filled(mx.float32, G), filled(mx.float32, G); return function()
  return a + b end end)
large("gelu_1g", function()
  local a, b, c = filled(mx.float32, G), filled(mx.float32, G), filled(mx.float32, G)
  local gelu = mx.compile(function(a, b, c) local v = a * b + c;
    return 0.5 * v * (1 + mx.erf(v * 0.7071067811865476)) end)
  return function() return gelu(a, b, c) end
end)
large("softmax_64kx4096", function() local a = filled(mx.float32, 65536, 4096); return function()
  return mx.softmax(a, { axis = -1 }) end end)
large("softmax_bf16_64kx4096", function() local a = filled(mx.bfloat16, 65536, 4096); return function()
  return mx.softmax(a, { axis = -1 }) end end)
large("softmax_2kx128k", function() local a = filled(mx.float32, 2048, 131072); return function()
  return mx.softmax(a, { axis = -1 }) end end)
large("layer_norm_64kx4096", function()
  local a, w = filled(mx.float32, 65536, 4096), filled(mx.float32, 4096)
  return function() return mx.fast.layer_norm(a, w, w, 1e-5) end
end)
large("rms_norm_64kx4096", function()
  local a, w = filled(mx.float32, 65536, 4096), filled(mx.float32, 4096)
  return function() return mx.fast.rms_norm(a, w, 1e-5) end
end)
large("rms_norm_bf16_64kx4096", function()
  local a, w = filled(mx.bfloat16, 65536, 4096), filled(mx.bfloat16, 4096)
  return function() return mx.fast.rms_norm(a, w, 1e-5) end
end)
large("sum_rows_64kx4096", function() local a = filled(mx.float32, 65536, 4096); return function() return mx.sum(a,
  { axis = 1 }) end end)
large("sum_columns_64kx4096", function() local a = filled(mx.float32, 65536, 4096); return function()
  return mx.sum(a, { axis = 0 }) end end)
large("sum_all_1g", function() local a = filled(mx.float32, G); return function() return mx.sum(a) end end)
for _, n in ipairs({ 4096, 8192 }) do
  large("product_bf16_" .. n, function()
    local a, b = filled(mx.bfloat16, n, n), filled(mx.bfloat16, n, n)
    return function() return mx.matmul(a, b) end
  end)
end
for _, dt in ipairs({ "bfloat16", "float16", "float32" }) do
  local t = mx[dt]
  local sets = { n = 4, make = function() return filled(t, 14336, 4096) end }
  small("vector_" .. dt .. "_14336x4096", sets, function() return filled(t, 1, 4096) end,
    function(x, w) return mx.matmul(x, mx.transpose(w)) end)
  if dt == "bfloat16" then
    sets = { n = 4, make = function() return filled(t, 4096, 14336) end }
    small("vector_" .. dt .. "_4096x14336", sets, function() return filled(t, 1, 14336) end,
      function(x, w) return mx.matmul(x, mx.transpose(w)) end)
  end
end
for _, c in ipairs({ { 4, 14336, 4096 }, { 4, 4096, 14336 }, { 8, 14336, 4096 }, { 4, 2048, 2048 } }) do
  local bits, out, depth = unpack(c)
  local sets = { n = out > 2048 and 6 or 40, make = function()
    local q, s, b = mx.quantize(filled(mx.bfloat16, out, depth), { group_size = 64, bits = bits })
    mx.eval(q, s, b)
    return { q, s, b }
  end }
  small(string.format("quantized_%d_%dx%d", bits, out, depth), sets, function() return filled(mx.bfloat16, 1,
    depth) end,
    function(x, w) return mx.quantized_matmul(x, w[1], w[2], w[3], { transpose = true, group_size = 64,
      bits = bits }) end)
end
small("experts_4_128x768x2048", { n = 3, make = function()
    local q, s, b = mx.quantize(filled(mx.bfloat16, 128, 768, 2048), { group_size = 64, bits = 4 })
    mx.eval(q, s, b)
    return { q, s, b }
  end }, function()
    local e = mx.random.randint(0, 128, { 1, 8 }):astype(mx.uint32)
    local x = filled(mx.bfloat16, 1, 1, 1, 2048)
    mx.eval(e)
    return { x, e }
  end,
  function(x, w) return mx.gather_qmm(x[1], w[1], w[2], w[3], { rhs_indices = x[2], transpose = true,
    group_size = 64, bits = 4 }) end)
small("experts_bf16_128x768x2048", { n = 1, make = function() return filled(mx.bfloat16, 128, 768, 2048) end },
  function()
    local e = mx.random.randint(0, 128, { 1, 8 }):astype(mx.uint32)
    local x = filled(mx.bfloat16, 1, 1, 1, 2048)
    mx.eval(e)
    return { x, e }
  end,
  function(x, w) return mx.gather_mm(x[1], mx.swapaxes(w, -1, -2), { rhs_indices = x[2] }) end)
small("attention_1x4096", { n = 4, make = function() return { filled(mx.bfloat16, 1, 8, 4096, 128),
  filled(mx.bfloat16, 1, 8, 4096, 128) } end },
  function() return filled(mx.bfloat16, 1, 32, 1, 128) end,
  function(q, kv) return mx.fast.scaled_dot_product_attention(q, kv[1], kv[2], { scale = 128 ^ -0.5 }) end)
small("rms_norm_1x4096", { n = 1, make = function() return filled(mx.bfloat16, 4096) end }, function()
  return filled(mx.bfloat16, 1, 4096) end,
  function(x, w) return mx.fast.rms_norm(x, w, 1e-5) end)
small("softmax_1x4096", { n = 1, make = function() return 1 end }, function() return filled(mx.float32, 1, 4096) end,
  function(x) return mx.softmax(x, { axis = -1 }) end)
large("attention_2048x2048", function()
  local q, k, v = filled(mx.bfloat16, 1, 32, 2048, 128), filled(mx.bfloat16, 1, 8, 2048, 128), filled(mx.bfloat16,
    1, 8, 2048, 128)
  return function() return mx.fast.scaled_dot_product_attention(q, k, v, { scale = 128 ^ -0.5, mask = "causal" }) end
end)
large("quantized_4_2048x4096x4096", function()
  local q, s, b = mx.quantize(filled(mx.bfloat16, 4096, 4096), { group_size = 64, bits = 4 })
  local x = filled(mx.bfloat16, 2048, 4096)
  mx.eval(q, s, b)
  return function() return mx.quantized_matmul(x, q, s, b, { transpose = true, group_size = 64, bits = 4 }) end
end)
