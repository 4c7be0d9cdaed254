-- Twelve layers call one kernel name with twelve weights, in one graph, inside and outside compile, with the weights
-- also as slices of one buffer. Exit status 1 if any result is off by more than 1e-5 relative to plain ops.
local mx = require("mx")

local layers, rows, dim = 12, 4, 32

local linear = mx.fast.metal_kernel{
  name = "linear", input_names = {"x", "w"}, output_names = {"out"},
  source = [[
    uint col = thread_position_in_grid.x;
    uint row = thread_position_in_grid.y;
    float acc = 0.0f;
    for (int k = 0; k < x_shape[1]; ++k) {
      acc = metal::fma(x[row * x_shape[1] + k], w[k * w_shape[1] + col], acc);
    }
    out[row * w_shape[1] + col] = acc;
  ]],
}

local function call(x, w)
  return linear{
    inputs = {x, w}, grid = mx.dims({w, 1}, {x, 0}, 1), threadgroup = {32, 4, 1},
    output_shapes = {mx.dims({x, 0}, {w, 1})}, output_dtypes = {mx.float32},
  }
end

local function forward(f)
  return function(x, weights)
    for i = 1, layers do x = mx.tanh(f(x, weights[i])) end
    return x
  end
end

local keys = mx.random.split(mx.random.key(7), layers + 1)
local separate = {}
for i = 1, layers do separate[i] = mx.random.uniform(-0.4, 0.4, {dim, dim}, {key = keys[i]}) end
local stacked = mx.random.uniform(-0.4, 0.4, {layers, dim, dim}, {key = keys[0]})
local slices = {}
for i = 1, layers do slices[i] = stacked[i - 1] end

local kinds = {plain = forward(call), compiled = mx.compile(forward(call), {shapeless = true})}
local worst = 0
local function check(label, weights, n)
  local x = mx.random.uniform(-1, 1, {n, dim}, {key = mx.random.key(n)})
  local want = forward(mx.matmul)(x, weights)
  for kind, f in pairs(kinds) do
    local got = f(x, weights)
    local diff = (mx.abs(got - want):max() / mx.abs(want):max()):item()
    print(("%s, %s, %d rows: relative difference %.2g"):format(label, kind, n, diff))
    if not (diff <= worst) then worst = diff end
  end
end
check("twelve buffers", separate, rows)
check("slices of one buffer", slices, rows)
check("slices of one buffer", slices, rows + 3)

if not (worst <= 1e-5) then
  print("FAILED: " .. worst .. " is over 1e-5")
  os.exit(1)
end
