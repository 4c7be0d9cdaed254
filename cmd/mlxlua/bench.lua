-- What `mlxlua bench` runs: each row on 1, 2, 4, ... and all threads, least of several calls. Arguments are the rows to
-- run, all without any.

local only = {}
for _, name in ipairs(arg) do only[name] = 0 end

local info = mx.metal.device_info()
local most = info.threads
local counts, n = {}, 1
while n < most do
  counts[#counts + 1], n = n, 2 * n
end
counts[#counts + 1] = most

-- least is the seconds of the quickest call: what else runs on the machine only ever makes one longer.
local function least(f)
  f()
  local best, begun, calls = math.huge, mx.clock(), 0
  while calls < 3 or mx.clock() - begun < 0.12 and calls < 200 do
    local start = mx.clock()
    f()
    best, calls = math.min(best, mx.clock() - start), calls + 1
  end
  return best
end

local header = {string.format("%-26s", "threads")}
for _, threads in ipairs(counts) do header[#header + 1] = string.format("%9d", threads) end
local function heading(unit) print(table.concat(header) .. "  " .. unit) end

-- rows prints a row for each of a list of {name, work, f}: f() does the work once. With work it is a rate, work a ns.
local function rows(unit, list)
  local shown = false
  for _, row in ipairs(list) do
    local name, work, make = row[1], row[2], row[3]
    if next(only) == nil or only[name] then
      only[name] = only[name] and 1
      if not shown then heading(unit) end
      shown = true
      local f, cells = make(), {string.format("%-26s", name)}
      for _, threads in ipairs(counts) do
        mx.set_threads(threads)
        local took = least(f)
        local value = work and work / took / 1e9 or took * 1e3
        cells[#cells + 1] = string.format(value < 100 and "%9.3g" or "%9.0f", value)
      end
      mx.set_threads(most)
      print(table.concat(cells))
      mx.clear_cache()
    end
  end
  if shown then print("") end
end

local function normal(...)
  local x = mx.random.normal({...})
  mx.eval(x)
  return x
end

local function each(f)
  return function() mx.eval(f()) end
end

-- A lane adds up ten chains of products in registers.
local function multiplyAdds()
  local kernel = mx.fast.metal_kernel({name = "fma_loop", input_names = {"a"}, output_names = {"out"}, source = [[
    uint i = thread_position_in_grid.x;
    float x = a[0], y = a[1];
    float s[10];
    for (uint c = 0; c < 10; c++) { s[c] = float(c); }
    for (uint n = 0; n < 1024; n++) {
      for (uint u = 0; u < 4; u++) {
        for (uint c = 0; c < 10; c++) { s[c] = metal::fma(x, s[c], y); }
      }
    }
    float sum = 0.0f;
    for (uint c = 0; c < 10; c++) { sum += s[c]; }
    out[i] = sum;]]})
  local a, lanes = mx.array({0.5, 0.25}), 32768
  mx.eval(a)
  return each(function()
    return kernel({inputs = {a}, grid = {lanes, 1, 1}, threadgroup = {32, 1, 1}, output_shapes = {{lanes}},
      output_dtypes = {mx.float32}})
  end)
end

local mega = 2 ^ 20
print(string.format("%s\n", info.device_name))

rows("GB/s", {
  {"copy 64 MiB", 2 * 64 * mega, function()
    local x = normal(16 * mega)
    return each(function() return mx.negative(x) end)
  end},
  {"read 64 MiB", 64 * mega, function()
    local x = normal(16 * mega)
    return each(function() return mx.sum(x) end)
  end},
})

local function product(m, k, n, dtype)
  return function()
    local a, b = normal(m, k):astype(dtype), normal(k, n):astype(dtype)
    mx.eval(a, b)
    return each(function() return mx.matmul(a, b) end)
  end
end

local function packed(m, n, bits)
  return function()
    local x = normal(m, n)
    local w, scales, biases = mx.quantize(normal(n, n), {group_size = 64, bits = bits})
    mx.eval(w, scales, biases)
    return each(function() return mx.quantized_matmul(x, w, scales, biases, true, 64, bits) end)
  end
end

local function attention(heads, queries, keys, depth)
  return function()
    local q, k, v = normal(1, heads, queries, depth), normal(1, heads, keys, depth), normal(1, heads, keys, depth)
    return each(function() return mx.fast.scaled_dot_product_attention(q, k, v, {scale = depth ^ -0.5}) end)
  end
end

local function square(n) return 2 * n ^ 3 end

rows("GFLOP/s", {
  {"fma in registers", 2 * 32768 * 1024 * 40, multiplyAdds},
  {"matmul 256", square(256), product(256, 256, 256, mx.float32)},
  {"matmul 1024", square(1024), product(1024, 1024, 1024, mx.float32)},
  {"matmul 2048", square(2048), product(2048, 2048, 2048, mx.float32)},
  {"matmul 1024 bfloat16", square(1024), product(1024, 1024, 1024, mx.bfloat16)},
  {"4 bits, 64 x 4096 x 4096", 2 * 64 * 4096 ^ 2, packed(64, 4096, 4)},
  {"attention 16 x 512 x 64", 4 * 16 * 512 ^ 2 * 64, attention(16, 512, 512, 64)},
  {"conv2d 4x56x56x64 3x3", 2 * 4 * 56 ^ 2 * 64 ^ 2 * 9, function()
    local x, w = normal(4, 56, 56, 64), normal(64, 3, 3, 64)
    return each(function() return mx.conv2d(x, w, {padding = 1}) end)
  end},
})

-- A token of a model of 207 million parameters in 4 bits: 12 layers of width 1024, whose weights are random.
local function token(rowsAtOnce)
  return function()
    local width, inner, heads, kv, depth, vocabulary, context = 1024, 2816, 16, 8, 64, 32000, 512
    local function linear(outputs, inputs)
      local w, s, b = mx.quantize(normal(outputs, inputs) * 0.02, {group_size = 64, bits = 4})
      mx.eval(w, s, b)
      return function(x) return mx.quantized_matmul(x, w, s, b, true, 64, 4) end
    end
    local layers = {}
    for i = 1, 12 do
      layers[i] = {q = linear(heads * depth, width), k = linear(kv * depth, width), v = linear(kv * depth, width),
        o = linear(width, heads * depth), gate = linear(inner, width), up = linear(inner, width),
        down = linear(width, inner), norm1 = mx.ones({width}), norm2 = mx.ones({width}),
        keys = normal(1, kv, context, depth), values = normal(1, kv, context, depth)}
    end
    local head, norm = linear(vocabulary, width), mx.ones({width})
    local x0 = normal(1, rowsAtOnce, width)
    local function split(x, n) return mx.transpose(mx.reshape(x, {1, rowsAtOnce, n, depth}), {0, 2, 1, 3}) end
    return each(function()
      local x = x0
      for _, l in ipairs(layers) do
        local h = mx.fast.rms_norm(x, l.norm1, 1e-5)
        local q = mx.fast.rope(split(l.q(h), heads), depth, {traditional = false, base = 10000, scale = 1, offset = 9})
        local k = mx.fast.rope(split(l.k(h), kv), depth, {traditional = false, base = 10000, scale = 1, offset = 9})
        local v = split(l.v(h), kv)
        local keys = mx.slice_update(l.keys, k, mx.array({9}, mx.int32), {2})
        local values = mx.slice_update(l.values, v, mx.array({9}, mx.int32), {2})
        local y = mx.fast.scaled_dot_product_attention(q, keys, values, {scale = depth ^ -0.5})
        x = x + l.o(mx.reshape(mx.transpose(y, {0, 2, 1, 3}), {1, rowsAtOnce, heads * depth}))
        h = mx.fast.rms_norm(x, l.norm2, 1e-5)
        local gate = l.gate(h)
        x = x + l.down(gate * mx.sigmoid(gate) * l.up(h))
      end
      return head(mx.fast.rms_norm(mx.take(x, mx.array({rowsAtOnce - 1}, mx.int32), 1), norm, 1e-5))
    end)
  end
end

rows("ms", {
  {"gelu(a*b+c) compiled, 4 Mi", nil, function()
    local a, b, c = normal(4 * mega), normal(4 * mega), normal(4 * mega)
    local gelu = mx.compile(function(x, y, z)
      local u = x * y + z
      return 0.5 * u * (1 + mx.erf(u * 0.7071067811865476))
    end)
    return each(function() return gelu(a, b, c) end)
  end},
  {"exp 4 Mi", nil, function()
    local x = normal(4 * mega)
    return each(function() return mx.exp(x) end)
  end},
  {"sum 4 Mi", nil, function()
    local x = normal(4 * mega)
    return each(function() return mx.sum(x) end)
  end},
  {"sum axis 0, 2048 x 4096", nil, function()
    local x = normal(2048, 4096)
    return each(function() return mx.sum(x, {axis = 0}) end)
  end},
  {"softmax 2048 x 4096", nil, function()
    local x = normal(2048, 4096)
    return each(function() return mx.softmax(x, {axis = -1}) end)
  end},
  {"cumsum 4 Mi", nil, function()
    local x = normal(4 * mega)
    return each(function() return mx.cumsum(x) end)
  end},
  {"embedding 8192 x 512", nil, function()
    local table, index = normal(32000, 512), mx.random.randint(0, 32000, {8192})
    mx.eval(index)
    return each(function() return mx.take(table, index, 0) end)
  end},
  {"gemv 4096", nil, function()
    local x, w = normal(1, 4096), normal(4096, 4096)
    return each(function() return mx.matmul(x, mx.transpose(w)) end)
  end},
  {"4 bits, 1 x 4096 x 4096", nil, packed(1, 4096, 4)},
  {"attention 16 x 1 of 4096", nil, attention(16, 1, 4096, 128)},
  {"fft 64 x 4096", nil, function()
    local x = normal(64, 4096)
    return each(function() return mx.fft.fft(x) end)
  end},
  {"decode, 207 M of 4 bits", nil, token(1)},
  {"prefill 256, the same", nil, token(256)},
})

for name, found in pairs(only) do
  if found == 0 then error(string.format("there is no row %q", name), 0) end
end
