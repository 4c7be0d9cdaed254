-- Two clusters of stars fall through each other: mlxlua examples/nbody.lua [--bodies 1024] [--steps 300]
-- Each star is drawn to all others. The kernel reads them by tiles: a threadgroup copies a tile into its memory, once
-- for all of its threads.
local mx, data, train = require("mx"), require("mx.data"), require("mx.train")

local options = {bodies = 1024, steps = 300}
local given = {...}
for i = 1, #given, 2 do
  local name = given[i]:match("^%-%-(%a+)$")
  if options[name] == nil or not given[i + 1] then error("unknown option, or one without a value: " .. given[i], 0) end
  options[name] = tonumber(given[i + 1])
end

local tile, softening = 128, 0.02
assert(options.bodies % tile == 0, "--bodies must be a multiple of " .. tile)

local gravity = mx.fast.metal_kernel{
  name = "gravity", input_names = {"position", "mass"}, output_names = {"acceleration"},
  source = [[
    threadgroup float4 bodies[TILE];
    uint i = thread_position_in_grid.x, lane = thread_position_in_threadgroup.x;
    float3 here = float3(position[3 * i], position[3 * i + 1], position[3 * i + 2]), sum = 0;
    for (uint first = 0; first < uint(mass_shape[0]); first += TILE) {
      uint k = first + lane;
      bodies[lane] = float4(position[3 * k], position[3 * k + 1], position[3 * k + 2], mass[k]);
      threadgroup_barrier(metal::mem_flags::mem_threadgroup);
      for (int j = 0; j < TILE; j++) {
        float3 d = bodies[j].xyz - here;
        float r = metal::rsqrt(metal::dot(d, d) + SOFTENING);
        sum += bodies[j].w * r * r * r * d;
      }
      threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    }
    acceleration[3 * i] = sum.x;
    acceleration[3 * i + 1] = sum.y;
    acceleration[3 * i + 2] = sum.z;
  ]],
  header = ("constant float SOFTENING = %g;"):format(softening ^ 2),
}

local function accelerations(x, mass)
  return gravity{
    inputs = {x, mass}, template = {{"TILE", tile}}, grid = {#mass, 1, 1}, threadgroup = {tile, 1, 1},
    output_shapes = {x}, output_dtypes = {x.dtype},
  }
end

-- The same in plain operations, which hold all n x n differences at once.
local function plainly(x, mass)
  local d = x["None"] - x[":, None"]
  local r = mx.rsqrt(mx.sum(mx.square(d), -1, true) + softening ^ 2)
  return mx.sum(mass[":, None"] * d * r ^ 3, 1)
end

-- Clusters that turn, side by side.
local n = options.bodies
mx.random.seed(1)
local side = mx.where(mx.less(mx.arange(n), n / 2), -1, 1)[":, None"]
local offset = 0.25 * mx.random.normal({n, 3})
local x = offset + side * mx.array({0.9, 0.25, 0})
local turn = mx.concatenate({-offset[":, 1:2"], offset[":, :1"], mx.zeros({n, 1})}, 1)
local v = 1.5 * turn - side * mx.array({0.35, 0, 0})
local mass = mx.full({n}, 1 / n)

local a = accelerations(x, mass)
local difference = mx.max(mx.abs(a - plainly(x, mass))):item()
assert(difference < 1e-3, "the kernel differs from plain operations by " .. difference)

local dt = 0.005
local step = mx.compile(function(x, v, a) -- leapfrog: kick, drift, kick
  v = v + 0.5 * dt * a
  x = x + dt * v
  a = accelerations(x, mass)
  return x, v + 0.5 * dt * a, a
end)

local function energy()
  local d = x["None"] - x[":, None"]
  local pull = mass[":, None"] * mass * mx.rsqrt(mx.sum(mx.square(d), -1) + softening ^ 2)
  local pairs_only = mx.sum(pull) - mx.sum(mass * mass) / softening
  return (0.5 * mx.sum(mass[":, None"] * v * v) - 0.5 * pairs_only):item()
end

-- picture is how many stars there are at each place.
local function picture()
  local column = mx.clip((x[":, 0"] + 1.8) * 22, 0, 78.9):astype(mx.int32)
  local row = mx.clip((x[":, 1"] + 1) * 22, 0, 43.9):astype(mx.int32)
  local count = mx.zeros({44, 79}):at(row, column):add(1)
  return data.draw_image(mx.sqrt(count / 4), 79)
end

local before = energy()
print(picture())
local line = train.Progress(options.steps, {label = "n-body"})
for i = 1, options.steps do
  x, v, a = step(x, v, a)
  mx.eval(x, v, a)
  line:step()
  if i % math.ceil(options.steps / 3) == 0 then print(picture()) end
end
line:close()
print(("energy %.5f, and %.5f at the start; kernel and plain operations differ by %.1g"):format(energy(), before,
  difference))
