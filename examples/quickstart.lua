-- mlxlua on one screen: mlxlua examples/quickstart.lua
local mx = require("mx")

print("-- arrays are lazy: nothing is computed until a value is read")
local a = mx.arange(6):reshape({2, 3})
local b = mx.array({10, 20, 30})
local c = a * b + 0.5                       -- (2, 3) and (3,) broadcast
print("a * b + 0.5 =", c)
print("sum over axis 0 =", c:sum({axis = 0}))

print("-- gradients: mx.grad takes any Lua function of arrays")
local function loss(w, x, y) return mx.mean(mx.square(mx.matmul(x, w) - y)) end
local x = mx.random.uniform({shape = {32, 3}, key = mx.random.key(0)})
local truth = mx.array({1, -2, 3})
local y = mx.matmul(x, truth)
local w = mx.zeros({3})
local step = mx.value_and_grad(loss)
for _ = 1, 200 do
  local _, g = step(w, x, y)
  w = w - 0.5 * g
  mx.eval(w)
end
print("fitted weights =", w)

print("-- a custom kernel: Metal source, on any machine")
local gelu = mx.fast.metal_kernel{
  name = "gelu_tanh", input_names = {"inp"}, output_names = {"out"},
  source = [[
    uint i = thread_position_in_grid.x;
    float v = inp[i];
    out[i] = T(0.5f * v * (1.0f + metal::tanh(0.7978845608f * (v + 0.044715f * v * v * v))));
  ]],
}
local function my_gelu(v)
  return gelu{
    inputs = {v}, template = {{"T", v.dtype}}, grid = v, threadgroup = {256, 1, 1},
    output_shapes = {v}, output_dtypes = {v.dtype},
  }
end
print("gelu =", my_gelu(mx.array({-1, 0, 1, 2})))

print("-- 4-bit weights: one matrix per expert, each row picks its expert")
local experts = mx.random.uniform(-1, 1, {4, 8, 64}, {key = mx.random.key(1)})
local q, scales, biases = mx.quantize(experts, {group_size = 64, bits = 4})
local tokens = mx.random.uniform({shape = {5, 1, 64}, key = mx.random.key(2)})
local choice = mx.array({0, 3, 1, 1, 2}, mx.int32)
local out = mx.gather_qmm(tokens, q, scales, biases, {rhs_indices = choice})
local dense = mx.matmul(tokens, mx.swapaxes(mx.dequantize(q, scales, biases)[choice], 1, 2))
print("gather_qmm shape", out.shape, "largest difference from dense =", mx.abs(out - dense):max())

print("-- compile(shapeless): traced once, replayed at any shape")
local calls = 0
local layer = mx.compile(function(v) calls = calls + 1; return mx.softmax(my_gelu(v) * 2, -1) end, {shapeless = true})
for _, n in ipairs({4, 9}) do
  local v = mx.arange(2 * n):reshape({2, n}) / n
  local plain = mx.softmax(my_gelu(v) * 2, -1)
  print(n .. " columns: largest difference from the plain call =", mx.abs(layer(v) - plain):max())
end
print("runs of the function:", calls)
