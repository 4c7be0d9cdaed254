-- caches.lua FOLDER NAME DIRECTORY: with a model of peer/, keys and values that are kept in few bits answer nearly as
-- others do, the more bits the nearer; and with them or with a bound of what is remembered a compiled step answers as a
-- call at rest, in a padded batch as alone.
local mx, lm = require("mx"), require("lm")
local folder, name, dir = ...
package.path = folder .. "/?.lua;" .. package.path
local weights = require("weights")

local golden = weights.golden(folder .. "/peer", name)
weights.write(dir, weights.arrays(golden), golden.config)
local model = lm.load(dir)
local step = lm.step(model)
local tokens = (mx.arange(24) * 37 + 5) % 128
local first = 14

local function worst(a, b) return mx.max(mx.abs(a - b)):item() end

-- rest and compiled are the scores of the tokens after the first ones, in calls of one token and in steps; beside, in a
-- batch with a shorter prompt.
local function rest(o)
  local caches, out = lm.caches(model, o), {}
  model(mx.expand_dims(tokens["0:" .. first], 0), caches)
  for i = first, 23 do out[#out + 1] = model(tokens:index(i):reshape({1, 1}), caches)[0] end
  return mx.concatenate(out, 0), caches
end
local function compiled(o)
  local caches, out = lm.caches(model, o), {}
  model(mx.expand_dims(tokens["0:" .. first], 0), caches)
  for i = first, 23 do out[#out + 1] = step(tokens:index(i):reshape({1}), caches) end
  return mx.concatenate(out, 0), caches
end
local function beside(o)
  local rows, padding = lm.padded{tokens["0:" .. first]:tolist(), {9, 8, 7}}
  local all = {padding = padding}
  for k, v in pairs(o) do all[k] = v end
  local caches, out = lm.caches(model, all), {}
  model(rows, caches)
  for i = first, 23 do out[#out + 1] = step(mx.stack({tokens:index(i), tokens:index(i)}, 0), caches)["0:1"] end
  return mx.concatenate(out, 0), caches
end

-- rounded is how many of the packed numbers of the first text differ between caches: by one each, or it is an error. One
-- in the middle of two numbers may be rounded the other way in a step or in a batch than in a call at rest.
local function rounded(a, b, bits)
  local count = 0
  for i, layer in ipairs(a.layers) do
    local moved = model:layout()[i].window -- its places are others
    for k, x in pairs(moved and {} or layer.parts or {}) do
      local y = b.layers[i].parts[k]
      local n = math.min(x:dim(2), y:dim(2))
      for shift = 0, x.dtype == mx.uint32 and 31 or -1, bits do
        local function numbers(v)
          return mx.bitwise_and(mx.right_shift(v["0:1, :, 0:" .. n], shift), 2 ^ bits - 1):astype(mx.int32)
        end
        local d = mx.abs(numbers(x) - numbers(y))
        assert(mx.max(d):item() <= 1, name)
        count = count + mx.sum(d):item()
      end
    end
  end
  return count
end

local plain
local function check(what, o, alone)
  local a, held = rest(o)
  local function near(kind, b, caches)
    local d, most = worst(a, b), 2e-5
    if d > most and o.kv_bits then -- with max_kv the caches' places are others
      assert(o.max_kv or rounded(held, caches, o.kv_bits) <= 4, name)
      most = worst(a, plain) / 20
    end
    if not (d <= most) then error(("%s, %s: %s is %g from a call at rest"):format(name, what, kind, d), 0) end
  end
  near("a step", compiled(o))
  if alone then near("a batch", alone) else near("a batch", beside(o)) end
  return a
end

local attention = false
for _, kind in ipairs(model:layout()) do attention = attention or kind.kind ~= "state" end
assert(attention)
plain = check("plain", {})
local eight = check("8 bits", {kv_bits = 8, kv_group_size = 32})
local four = check("4 bits", {kv_bits = 4, kv_group_size = 32})
local range = mx.max(mx.abs(plain)):item()
local far8, far4 = worst(eight, plain) / range, worst(four, plain) / range
if not (far8 > 0 and far8 < 2e-2 and far4 > far8 and far4 < 0.5) then
  error(("%s: packed keys and values are %g and %g of the range away"):format(name, far8, far4), 0)
end
local later = check("8 bits, later", {kv_bits = 8, kv_group_size = 32, quantized_kv_start = 18})
assert(worst(later["0:4"], plain["0:4"]) <= 2e-5 and worst(later, plain) > 0 and worst(later, plain) <= far8 * 2 * range)
local kept = check("max_kv", {max_kv = 16}, rest({max_kv = 16})) -- what padding pushes out differs
assert(worst(check("max_kv, wide", {max_kv = 64}, plain), plain) <= 2e-5)
assert(worst(kept, plain) > 1e-5, name)
local both = {max_kv = 16, kv_bits = 8, kv_group_size = 32}
check("max_kv, 8 bits", both, rest(both))
print(name)
