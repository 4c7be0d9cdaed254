-- Conway's Game of Life on a torus by a Metal kernel: mlxlua examples/life.lua [GENERATIONS [FILE.png]]
-- A terminal shows every generation; a file gets the last one.
local mx, data, train = require("mx"), require("mx.data"), require("mx.train")

local generations, file = ...
generations = tonumber(generations) or 200

local next_generation = mx.compile(function(cells)
  return mx.fast.metal_kernel{
    name = "life", input_names = {"cells"}, output_names = {"out"},
    source = [[
      uint2 at = thread_position_in_grid.xy, size = threads_per_grid.xy;
      int neighbours = 0;
      for (uint y = at.y + size.y - 1; y <= at.y + size.y + 1; y++)
        for (uint x = at.x + size.x - 1; x <= at.x + size.x + 1; x++)
          neighbours += cells[y % size.y * size.x + x % size.x];
      uint here = at.y * size.x + at.x;
      neighbours -= cells[here];
      out[here] = neighbours == 3 || (neighbours == 2 && cells[here]);
    ]],
  }{
    inputs = {cells}, grid = {cells.shape[2], cells.shape[1], 1}, threadgroup = {16, 16, 1},
    output_shapes = {cells}, output_dtypes = {mx.bool},
  }
end)

-- An acorn lives for 5206 generations; a glider moves on for ever.
local cells = mx.zeros({48, 80}, mx.bool)
local function put(x, y, rows)
  for j, row in ipairs(rows) do
    for i = 1, #row do
      if row:sub(i, i) == "#" then cells = cells:at(y + j - 1, x + i - 1):set(true) end
    end
  end
end
put(40, 20, {".#.....", "...#...", "##..###"})
put(2, 2, {".#.", "..#", "###"})

for i = 1, generations do
  cells = next_generation(cells)
  if train.is_terminal() or i == generations then
    if i > 1 and train.is_terminal() then io.write("\27[25A") end -- back to the first line
    io.write(data.draw_image(cells, 80))
    print(("generation %d, %d alive"):format(i, mx.sum(cells):item()))
  end
end
if file then data.save_image(file, mx["repeat"](mx["repeat"](cells, 8, 0), 8, 1)) end
