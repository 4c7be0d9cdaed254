-- Operations on the default device, each against the same on the processor. An error, or other values, is a line.
local key = mx.random.key
local function normal(shape, n) return mx.random.normal(shape, {key = key(n), stream = mx.cpu}) end
local a, b = normal({96, 64}, 1), normal({64, 80}, 2)
local x = normal({4, 7, 33}, 3)
local positive = mx.abs(x) + 0.1
local i = mx.array({3, 0, 2, 2, 1}):astype(mx.int32)
local image, filter = normal({2, 12, 12, 3}, 4), normal({5, 3, 3, 3}, 5)
local q, k, v = normal({1, 4, 17, 32}, 6), normal({1, 2, 17, 32}, 7), normal({1, 2, 17, 32}, 8)
local one = normal({1, 64}, 9)
local w, scales, biases = mx.quantize(normal({128, 64}, 10), {group_size = 32, bits = 4, stream = mx.cpu})
mx.eval(a, b, x, positive, i, image, filter, q, k, v, one, w, scales, biases)

local user = mx.fast.metal_kernel{name = "doctor", input_names = {"a"}, output_names = {"out"}, source = [==[
  uint i = thread_position_in_grid.x;
  float v = simd_sum(a[i]) * 0.001f;
  for (int j = 0; j < int(i % 7); ++j) { v = metal::sin(v) + a[(i + j) % 256]; }
  out[i] = v;
]==]}
local half = mx.fast.metal_kernel{name = "doctor_half", input_names = {"a"}, output_names = {"out"}, source = [==[
  uint i = thread_position_in_grid.x;
  out[i] = T(float(a[i]) * 2.0f + 1.0f);
]==]}

-- name, tolerance, function of a stream
local ops = {
  {"arithmetic", 1e-6, function(s) return mx.add(mx.multiply(x, 3, s), mx.divide(x, positive, s), s) end},
  {"integers", 0, function(s) return mx.remainder(mx.arange(-50, 50, {stream = s}), 7, s) end},
  {"copies", 0, function(s) return mx.contiguous(mx.transpose(x, {2, 0, 1}, s), {stream = s}) end},
  {"int64", 0, function(s) return mx.sum(mx.arange(1000, {dtype = mx.int64, stream = s}), {stream = s}) end},
  {"softmax", 1e-5, function(s) return mx.softmax(x, -1, {stream = s}) end},
  {"softmax of columns", 1e-5, function(s) return mx.softmax(x, 0, {stream = s}) end},
  {"logsumexp", 1e-5, function(s) return mx.logsumexp(x, -1, {stream = s}) end},
  {"sum", 1e-4, function(s) return mx.sum(x, {1, 2}, {stream = s}) end},
  {"max", 0, function(s) return mx.max(x, 0, {stream = s}) end},
  {"argmax", 0, function(s) return mx.argmax(x, -1, {stream = s}) end},
  {"cumsum", 1e-4, function(s) return mx.cumsum(x, 2, {stream = s}) end},
  {"sort", 0, function(s) return mx.sort(x, -1, s) end},
  {"argsort", 0, function(s) return mx.argsort(x, -1, s) end},
  {"take", 0, function(s) return mx.take(x, i, 1, s) end},
  {"matmul", 1e-4, function(s) return mx.matmul(a, b, s) end},
  {"matmul of one row", 1e-4, function(s) return mx.matmul(one, b, s) end},
  {"conv2d", 1e-4, function(s) return mx.conv2d(image, filter, {padding = 1, stream = s}) end},
  {"fft", 1e-3, function(s) return mx.abs(mx.fft.fft(x, {stream = s}), s) end},
  {"layer_norm", 1e-4, function(s) return mx.fast.layer_norm(x, nil, nil, 1e-5, {stream = s}) end},
  {"rms_norm", 1e-4, function(s) return mx.fast.rms_norm(a, mx.ones({64}), 1e-5, {stream = s}) end},
  {"attention", 1e-4, function(s) return mx.fast.scaled_dot_product_attention(q, k, v, {scale = 0.2, stream = s}) end},
  {"quantized_matmul", 1e-3, function(s)
    return mx.quantized_matmul(a, w, scales, biases, {group_size = 32, bits = 4, stream = s})
  end},
  {"quantized_matmul of one row", 1e-3, function(s)
    return mx.quantized_matmul(one, w, scales, biases, {group_size = 32, bits = 4, stream = s})
  end},
  {"random", 1e-5, function(s) return mx.random.normal({1000}, {key = key(11), stream = s}) end},
  {"complex", 1e-4, function(s) return mx.abs(mx.exp(mx.multiply(x, mx.array(mx.complex(0, 1)), s), s), s) end},
  {"round", 0, function(s) return mx.round(x, {stream = s}) end},
  {"a user's kernel", 1e-3, function(s)
    return user{inputs = {mx.reshape(x, {-1}, s)}, stream = s, grid = {256, 1, 1}, threadgroup = {64, 1, 1},
      output_shapes = {{256}}, output_dtypes = {mx.float32}}
  end},
}
for _, name in ipairs({"exp", "log", "sin", "cos", "tan", "sinh", "cosh", "tanh", "arcsin", "arctan", "erf", "erfinv",
  "expm1", "log1p", "sqrt", "rsqrt", "sigmoid", "floor"}) do
  ops[#ops + 1] = {name, 1e-4, function(s) return mx[name](mx.tanh(positive, s), s) end}
end
for _, dtype in ipairs({mx.float16, mx.bfloat16}) do
  local y, m, n = x:astype(dtype), a:astype(dtype), b:astype(dtype)
  mx.eval(y, m, n)
  local name = tostring(dtype)
  ops[#ops + 1] = {"arithmetic of " .. name, 2e-2, function(s) return mx.add(mx.multiply(y, 3, s), y, s) end}
  ops[#ops + 1] = {"softmax of " .. name, 2e-2, function(s) return mx.softmax(y, -1, {stream = s}) end}
  ops[#ops + 1] = {"matmul of " .. name, 1e-1, function(s) return mx.matmul(m, n, s) end}
  ops[#ops + 1] = {"a user's kernel of " .. name, 2e-2, function(s)
    return half{inputs = {y}, template = {{"T", dtype}}, stream = s, grid = {924, 1, 1}, threadgroup = {64, 1, 1},
      output_shapes = {y}, output_dtypes = {dtype}}
  end}
end

local failed = 0
for _, op in ipairs(ops) do
  local name, tolerance, f = op[1], op[2], op[3]
  local ok, message = pcall(function()
    local want, got = f(mx.cpu), f(mx.gpu)
    mx.eval(want, got)
    want, got = want:astype(mx.float32), got:astype(mx.float32)
    local far = mx.max(mx.abs(want - got, mx.cpu), {stream = mx.cpu}):item()
    if not (far <= tolerance) then error("the values differ by " .. far, 0) end
    return far
  end)
  if not ok then failed = failed + 1 end
  print(string.format("  %-32s %s", name, ok and "ok, " .. message or "FAILED: " .. tostring(message)))
end

local function step(p, x) return mx.sum(mx.square(mx.matmul(x, p))) end
local p = normal({64, 8}, 12)
local compiled = mx.compile(mx.grad(step))
local g
for _ = 1, 5 do g = compiled(p, a) end
local want = mx.matmul(mx.transpose(a), mx.matmul(a, p)) * 2
if not mx.allclose(g, want, {rtol = 1e-3, atol = 1e-3}):item() then
  failed = failed + 1
  print("  a compiled gradient: FAILED")
end
if failed > 0 then error(failed .. " operations failed", 0) end
