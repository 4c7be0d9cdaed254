-- weights.lua makes the model directory of a golden file: what generate.py draws, by the same hash.
local mx, host = require("mx"), require("lm.host")

local weights = {}

local function read(path)
  local f = assert(io.open(path, "rb"))
  local text = f:read("*a")
  f:close()
  return text
end

local function shifted(x, n)
  return mx.bitwise_xor(x, mx.right_shift(x, mx.array(n, mx.uint32)))
end

-- fill is the weight of a name: see fill in generate.py.
local function fill(name, shape)
  local seed, size = 0, 1
  for i = 1, #name do seed = (seed * 31 + name:byte(i)) % 2147483647 end
  for _, n in ipairs(shape) do size = size * n end
  local function u32(v) return mx.array(("%.0f"):format(v), mx.uint32) end
  local x = mx.arange(size, {dtype = mx.uint32}) * u32(2654435761) + u32(seed)
  x = shifted(x, 15) * u32(2246822519)
  x = shifted(x, 13) * u32(3266489917)
  x = shifted(x, 16)
  local u = mx.right_shift(x, mx.array(8, mx.uint32)):astype(mx.float32) * 2 ^ -23 - 1
  u = #shape > 1 and u * 0.14 or u * 0.3 + 0.5
  return u:reshape(shape)
end

-- golden is the golden file of a name: config, shapes, prompts and logits.
function weights.golden(folder, name)
  local out = host.decode(read(folder .. "/" .. name .. ".json"))
  for k, x in pairs(mx.load(folder .. "/" .. name .. ".safetensors")) do out[k] = x end
  return out
end

function weights.arrays(golden)
  local out = {}
  for name, shape in pairs(golden.shapes) do out[name] = fill(name, shape) end
  return out
end

-- write makes a model directory of arrays and a config.
function weights.write(dir, arrays, config)
  assert(host.mkdir(dir))
  mx.save_safetensors(dir .. "/model.safetensors", arrays, {format = "pt"})
  assert(host.write(dir .. "/config.json", host.encode(config, "  ")))
  return dir
end

return weights
