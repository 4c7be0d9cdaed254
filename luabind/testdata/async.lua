-- What is handed over and fails is heard of once: where it is read, by synchronize, or by the host.
local k = mx.fast.metal_kernel{name = "bad", input_names = {"x"}, output_names = {"o"},
  source = "o[x[0] > 0 ? 1000 : 0] = x[0];"}
local function run(v)
  return k{inputs = {mx.array({v})}, grid = {1, 1, 1}, threadgroup = {1, 1, 1}, output_shapes = {{1}},
    output_dtypes = {mx.float32}}
end
local bad = "async.lua:%d+: %[metal_kernel%] %[custom_kernel_bad%] write of o%[1000%] is out of range"
do -- nobody reads it
  mx.async_eval(run(1))
  fails(bad, mx.synchronize)
  mx.synchronize()
end
do -- its value is read, or that of what depends on it
  local y = run(1)
  local z = y + 1
  mx.async_eval(z)
  fails(bad, z.item, z)
  fails(bad, y.item, y)
  mx.synchronize()
end
do -- the first of several; the others go on
  local a, b, c = run(-1), run(1), run(1)
  mx.async_eval(a)
  mx.async_eval(b)
  mx.async_eval({c})
  fails(bad, mx.synchronize, mx.default_stream(mx.cpu))
  mx.synchronize()
  same(a, {-1})
end
do -- eval raises its own
  local y = run(1)
  fails(bad, mx.eval, y)
  mx.synchronize()
  fails("metal_kernel", mx.async_eval, y)
  mx.synchronize()
end
do -- what went well says nothing, however much there is
  local x = mx.array({1})
  for _ = 1, 300 do x = x * 1 mx.async_eval(x) end
  mx.synchronize()
  same(x, {1})
end
