-- The kernels of the delta rule and of Mamba 2's sum, in all their forms, are the rule in plain operations, and their
-- gradients are those of differences.
local delta = require("lm.delta")
mx.random.seed(3)

local function inputs(B, T, Hk, Hv, Dk, Dv, vector)
  local function draw(...) return mx.random.uniform(-1, 1, {...}) end
  local g = vector and mx.sigmoid(draw(B, T, Hv, Dk)) or mx.sigmoid(draw(B, T, Hv))
  return {draw(B, T, Hk, Dk), draw(B, T, Hk, Dk), draw(B, T, Hv, Dv), g, mx.sigmoid(draw(B, T, Hv)), draw(B, Hv, Dv, Dk)}
end

local function worst(a, b) return mx.max(mx.abs(a - b)):item() end

for _, form in ipairs{"delta", "vector", "sum"} do
  local vector, kind = form == "vector", form == "sum" and "sum" or nil
  for _, masked in ipairs{false, true} do
    for _, sizes in ipairs{{2, 5, 2, 4, 32, 8}, {1, 3, 1, 3, 48, 5}, {3, 1, 2, 2, 128, 16}, {1, 4, 2, 2, 20, 6}} do
      local x = inputs(sizes[1], sizes[2], sizes[3], sizes[4], sizes[5], sizes[6], vector)
      local mask
      if masked then mask = mx.greater(mx.random.uniform(0, 1, {sizes[1], sizes[2]}), 0.3) end
      local y, s = delta.rule(x[1], x[2], x[3], x[4], x[5], x[6], mask, kind)
      local want_y, want_s = delta.plain(x[1], x[2], x[3], x[4], x[5], x[6], mask, kind)
      assert(worst(y, want_y) < 1e-5 and worst(s, want_s) < 1e-5)

      local function loss(q, k, v, g, beta, state)
        local out, last = delta.rule(q, k, v, g, beta, state, mask, kind)
        return (out * mx.sin(mx.arange(out.size):reshape(out.shape))):sum() + (last * last):sum()
      end
      local grads = mx.grad(loss, {0, 1, 2, 3, 4, 5})(unpack(x))
      for i = 1, 6 do
        local way, h = mx.random.uniform(-1, 1, x[i].shape), 1e-2
        local up, down = {unpack(x)}, {unpack(x)}
        up[i], down[i] = x[i] + way * h, x[i] - way * h
        local difference = ((loss(unpack(up)) - loss(unpack(down))) / (2 * h)):item()
        local slope = (grads[i] * way):sum():item()
        assert(math.abs(slope - difference) < 2e-2 * math.max(1, math.abs(slope)), ("input %d: %g, %g"):format(i, slope,
          difference))
      end
    end
  end
end

-- In bfloat16 the state stays float32, and the answer is the values' dtype.
local x = inputs(2, 3, 2, 2, 32, 4)
for i = 1, 3 do x[i] = x[i]:astype(mx.bfloat16) end
local y, s = delta.rule(x[1], x[2], x[3], x[4], x[5])
assert(y.dtype == mx.bfloat16 and s.dtype == mx.float32)
assert(worst(y:astype(mx.float32), delta.plain(x[1]:astype(mx.float32), x[2]:astype(mx.float32),
  x[3]:astype(mx.float32), x[4], x[5], s * 0)) < 2e-2)
fails("3 value heads are no multiple of 2 key heads", delta.rule, unpack(inputs(1, 2, 2, 3, 32, 4)))
