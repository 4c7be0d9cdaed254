-- rows.lua FOLDER NAME DIRECTORY: texts of several lengths that come and go in rows answer as each does in caches
-- of its own, and with mx.set_batch_invariant to the last bit as each does in rows of its own.
local mx, lm = require("mx"), require("lm")
local Rows = require("lm.rows")
local folder, name, dir = ...
package.path = folder .. "/?.lua;" .. package.path
local weights = require("weights")

local golden = weights.golden(folder, name)
weights.write(dir, weights.arrays(golden), golden.config)
local lengths, steps = {5, 13, 1, 9, 14, 3, 2}, 9

local function text(i)
  local out = {}
  for k = 1, lengths[i] + steps do out[k] = (i * 37 + k * 11) % 100 end
  return out
end

-- together are the scores of the texts of a list, which begin one step after the other, at most four at a time.
local function together(model, list, o)
  local rows, out, next_text, running = Rows(model, 4, o), {}, 1, {}
  while next_text <= #list or rows.count > 0 do
    if next_text <= #list and rows.count < 4 then
      local i, caches = list[next_text], rows:fresh()
      local t = text(i)
      if lengths[i] > 1 then
        model(mx.array({{unpack(t, 1, lengths[i] - 1)}}, mx.int32), caches)
        mx.eval(caches:arrays())
      end
      running[rows:join(caches, #t)] = {i = i, t = t, at = lengths[i]}
      out[i], next_text = {}, next_text + 1
    end
    local tokens = {}
    for r, one in ipairs(running) do tokens[r] = one.t[one.at] end
    local scores = rows:step(tokens)
    for r, one in ipairs(running) do
      table.insert(out[one.i], scores[r - 1]:astype(mx.float32))
      mx.eval(out[one.i])
      one.at = one.at + 1
    end
    for r = #running, 1, -1 do
      if running[r].at == #running[r].t then
        if running[r].i % 2 == 1 then -- what it has read can be gone on with
          local taken = rows:taken(r)
          assert(taken.offset == #running[r].t - 1)
          out[running[r].i].taken = taken
        end
        local moved = rows:leave(r)
        running[r] = moved and running[moved]
        running[moved or #running + 1] = nil
      end
    end
  end
  return out
end

local function worst(a, b) return mx.max(mx.abs(a - b)):item() end

local function check(o, most)
  local model = lm.load(dir)
  local all = {}
  for i in ipairs(lengths) do all[i] = i end
  local got, step = together(model, all, o), lm.step(model)
  for i in ipairs(lengths) do
    local t, caches = text(i), lm.caches(model, {kv_bits = o.kv_bits, kv_group_size = o.kv_group_size})
    if lengths[i] > 1 then model(mx.array({{unpack(t, 1, lengths[i] - 1)}}, mx.int32), caches) end
    for k = 1, steps do
      local scores
      local token = mx.array({t[lengths[i] + k - 1]}, mx.int32)
      if lengths[i] == 1 and k == 1 then
        scores = model(token:reshape({1, 1}), caches):index(":", -1)
      else
        scores = step(token, caches)
      end
      local d = worst(scores[0], got[i][k])
      if not (d <= most) then error(("%s: text %d, step %d: off by %g"):format(name, i, k, d), 0) end
    end
    if got[i].taken then
      local d = worst(step(mx.array({7}, mx.int32), caches)[0], step(mx.array({7}, mx.int32), got[i].taken)[0])
      if not (d <= most) then error(("%s: text %d, taken out: off by %g"):format(name, i, d), 0) end
    end
  end
  local before = mx.set_batch_invariant(true)
  model = lm.load(dir)
  o.fixed = o.kv_bits and 256 or nil
  got = together(model, all, o)
  for _, i in ipairs{2, 3, 5} do
    local alone = together(model, {i}, o)[i]
    for k = 1, steps do
      if not mx.array_equal(alone[k], got[i][k]):item() then
        error(("%s: text %d, step %d: other bytes than alone"):format(name, i, k), 0)
      end
    end
  end
  mx.set_batch_invariant(before)
end

check({}, 2e-5)
local config = golden.config.text_config or golden.config
if config.head_dim == 32 then check({kv_bits = 8, kv_group_size = 32}, 0.5) end
print(name)
