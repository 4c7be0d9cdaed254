-- The Mandelbrot set by a Metal kernel, in the terminal and to a file: mlxlua examples/mandelbrot.lua [FILE.png]
local mx, data = require("mx"), require("mx.data")

-- One thread for each pixel. How long the point takes to escape, smoothed, is its value; 0 inside the set.
local escape = mx.fast.metal_kernel{
  name = "escape", input_names = {"view"}, output_names = {"time"},
  source = [[
    uint2 at = thread_position_in_grid.xy;
    float2 size = float2(threads_per_grid.xy);
    float2 c = float2(view[0], view[1]) + (float2(at) + 0.5f - 0.5f * size) / size.y * view[2];
    float2 z = 0;
    float value = 0;
    for (int i = 0; i < STEPS; i++) {
      z = float2(z.x * z.x - z.y * z.y, 2 * z.x * z.y) + c;
      float r = metal::dot(z, z);
      if (r > 256) {
        value = i + 2 - metal::log2(0.5f * metal::log2(r));
        break;
      }
    }
    time[at.y * threads_per_grid.x + at.x] = value;
  ]],
}

-- mandelbrot is an image of shape (height, width, 3) of the square of that size around (x, y).
local function mandelbrot(x, y, size, width, height, steps)
  local time = escape{
    inputs = {mx.array({x, y, size})}, template = {{"STEPS", steps}},
    grid = {width, height, 1}, threadgroup = {32, 8, 1},
    output_shapes = {{height, width}}, output_dtypes = {mx.float32},
  }
  local phase = mx.sqrt(time)[":, :, None"] * 0.9 + mx.array({3.4, 4.0, 4.6})
  return mx.where(mx.greater(time, 0)[":, :, None"], 0.5 + 0.5 * mx.cos(phase), 0)
end

local image = mandelbrot(-0.6, 0, 2.4, 320, 240, 200)
print(data.draw_image(image, 80))
local file = ...
if file then
  data.save_image(file, mandelbrot(-0.7436, 0.1318, 0.006, 1280, 960, 1000))
  print("wrote " .. file)
end
