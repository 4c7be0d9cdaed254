-- grid_sample as a kernel, with a kernel for its gradient, which then finds how a picture was turned:
-- mlxlua examples/grid_sample.lua [--steps 120]
local mx, optim = require("mx"), require("mx.optimizers")
local data, train = require("mx.data"), require("mx.train")

local _, steps = ...
steps = tonumber(steps) or 120

-- Both kernels run through the four pixels around a place of the grid, whose coordinates go from -1 to 1.
local corners = [[
    uint e = thread_position_in_grid.x;
    int height = x_shape[1], width = x_shape[2], channels = x_shape[3];
    uint place = e / channels, channel = e % channels;
    uint image = place / (grid_shape[1] * grid_shape[2]);
    float px = 0.5f * ((grid[2 * place] + 1) * width - 1), py = 0.5f * ((grid[2 * place + 1] + 1) * height - 1);
    int left = int(metal::floor(px)), top = int(metal::floor(py));
    float fx = px - left, fy = py - top;
    for (int k = 0; k < 4; k++) {
      int column = left + (k & 1), row = top + (k >> 1);
      if (column < 0 || column >= width || row < 0 || row >= height) continue; // zeros around the picture
      float wx = (k & 1) ? fx : 1 - fx, wy = (k >> 1) ? fy : 1 - fy;
      uint at = ((image * height + row) * width + column) * channels + channel;
]]

local sample = mx.fast.metal_kernel{
  name = "grid_sample", input_names = {"x", "grid"}, output_names = {"out"},
  source = "float sum = 0;\n" .. corners .. "sum += wx * wy * x[at];\n}\nout[e] = sum;",
}

local sample_gradient = mx.fast.metal_kernel{
  name = "grid_sample_gradient", input_names = {"x", "grid", "dy"}, output_names = {"dx", "dgrid"},
  atomic_outputs = true,
  source = "float2 slope = 0;\n" .. corners .. [[
      metal::atomic_fetch_add_explicit(&dx[at], wx * wy * dy[e], metal::memory_order_relaxed);
      slope += x[at] * float2((k & 1) ? wy : -wy, (k >> 1) ? wx : -wx);
    }
    slope *= 0.5f * dy[e] * float2(width, height);
    metal::atomic_fetch_add_explicit(&dgrid[2 * place], slope.x, metal::memory_order_relaxed);
    metal::atomic_fetch_add_explicit(&dgrid[2 * place + 1], slope.y, metal::memory_order_relaxed);
  ]],
}

-- grid_sample reads x (n, height, width, channels) at the places of grid (n, h, w, 2), between pixels too.
local grid_sample = mx.custom_function(function(x, grid)
  return sample{
    inputs = {x, grid}, threadgroup = {256, 1, 1}, output_dtypes = {x.dtype},
    output_shapes = {mx.dims({grid, 0}, {grid, 1}, {grid, 2}, {x, 3})},
    grid = function(shapes)
      local of_x, of_grid = shapes[1], shapes[2]
      return {of_grid[1] * of_grid[2] * of_grid[3] * of_x[4], 1, 1}
    end,
  }
end)
grid_sample:vjp(function(primals, dy)
  local x, grid = primals[1], primals[2]
  local dx, dgrid = sample_gradient{
    inputs = {x, grid, dy}, grid = dy, threadgroup = {256, 1, 1},
    output_shapes = {x, grid}, output_dtypes = {x.dtype, grid.dtype}, init_value = 0,
  }
  return {dx, dgrid}
end)

-- turned reads a picture on a grid that is turned, scaled and shifted by p: {angle, scale, x, y}.
local line = (mx.arange(64) + 0.5) / 32 - 1
local function turned(x, p)
  local c, s = mx.cos(p[0]) * p[1], mx.sin(p[0]) * p[1]
  local column, row = line["None"], line[":, None"]
  local grid = mx.stack({c * column - s * row + p[2], s * column + c * row + p[3]}, -1)
  return grid_sample(x, grid["None"])
end

-- The gradient is that of small steps.
local x = mx.random.uniform({shape = {1, 6, 5, 2}, key = mx.random.key(0)})
local grid = mx.random.uniform(-1.2, 1.2, {1, 4, 3, 2}, {key = mx.random.key(1)})
local weight = mx.random.normal({1, 4, 3, 2}, {key = mx.random.key(2)})
local function value(x, grid) return mx.sum(weight * grid_sample(x, grid)) end
local gradients = mx.grad(value, {0, 1})(x, grid)
local most = 0
for which, input in ipairs({x, grid}) do
  local flat = input:reshape(-1)
  for i = 0, flat.size - 1 do
    local function moved(by)
      local inputs = {x, grid}
      inputs[which] = flat:at(i):add(by):reshape(input)
      return value(unpack(inputs)):item()
    end
    local slope = (moved(1e-3) - moved(-1e-3)) / 2e-3
    most = math.max(most, math.abs(slope - gradients[which]:reshape(-1)[i]:item()))
  end
end
assert(most < 5e-3, "the gradient differs from small steps by " .. most)
print(("the gradient differs from small steps by %.1g"):format(most))

-- A house, and the same one turned, made smaller and moved; gradient descent finds by how much.
local column, row = line["None"], line[":, None"]
local walls = mx.less(mx.maximum(mx.abs(column), mx.abs(row - 0.3)), 0.35)
local roof = mx.logical_and(mx.less(mx.abs(column) * 0.7 - row, 0.45), mx.less(row, -0.05))
local door = mx.logical_and(mx.less(mx.abs(column - 0.1), 0.08), mx.greater(row, 0.3))
local house = mx.where(door, 0, mx.where(walls, 0.6, roof:astype(mx.float32)))
local truth = mx.array({0.5, 1.3, 0.15, -0.1})
local picture = house:reshape({1, 64, 64, 1})
local goal = turned(picture, truth)

local parameters = {p = mx.array({0, 1, 0, 0})}
local optimizer = optim.Adam(0.03)
local step = mx.value_and_grad(function(t) return mx.mean(mx.square(turned(picture, t.p) - goal)) end)
local progress = train.Progress(steps, {label = "turning"})
for _ = 1, steps do
  local loss, slope = step(parameters)
  optimizer:update(parameters, slope)
  mx.eval(parameters, optimizer.state)
  progress:step(("loss %.5f"):format(loss:item()))
end
progress:close()
print("picture, goal, and what was found:")
print(data.draw_image(mx.concatenate({picture, goal, turned(picture, parameters.p)}, 2)[0], 96))
print("angle, scale, shift:", parameters.p, "want", truth)
