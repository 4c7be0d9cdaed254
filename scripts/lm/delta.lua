-- The delta rule with a gate, the recurrence of linear attention. A head's memory S has a row for each element of its
-- values. At each token it fades by g, what it answers to the key k moves towards the value v by the share beta, and
-- then it is asked q:
--   S = g S;  S = S + beta (v - S k) k^T;  y = S q
-- The sum of Mamba 2 is the same without what S answers already: S = g S + beta v k^T.
-- Formula: Yang, Kautz, Hatamizadeh: Gated Delta Networks, 2024.
local mx = require("mx")

local delta = {}

-- source is the kernel's text: a SIMD-group has a row of S, its lanes have elements lane, lane + 32, ... of it.
local function source(vector, masked, sum)
  return ([[
    uint lane = thread_position_in_threadgroup.x;
    uint row = thread_position_in_grid.y;
    uint head = thread_position_in_grid.z; // of all examples
    uint example = head / Hv, hv = head % Hv, hk = hv / (Hv / Hk);
    uint tokens = v_shape[1];
    constexpr int n = (Dk + 31) / 32;
    float s[n];
    ulong base = (ulong(head) * Dv + row) * Dk;
    for (int i = 0; i < n; i++) {
      uint e = lane + 32 * i;
      s[i] = e < Dk ? float(state[base + e]) : 0.0f;
    }
    for (uint t = 0; t < tokens; t++) {
      ulong at = ulong(example) * tokens + t;
      ulong key = (at * Hk + hk) * Dk, value = (at * Hv + hv) * Dv + row, gate = at * Hv + hv;
      if (@MASK@) {
        float known = 0;
        for (int i = 0; i < n; i++) {
          uint e = lane + 32 * i;
          if (e < Dk) {
            s[i] *= float(@GATE@);
            @KNOWN@
          }
        }
        float change = @CHANGE@ * float(beta[gate]);
        float answer = 0;
        for (int i = 0; i < n; i++) {
          uint e = lane + 32 * i;
          if (e < Dk) {
            s[i] += change * float(k[key + e]);
            answer += s[i] * float(q[key + e]);
          }
        }
        answer = simd_sum(answer);
        if (lane == 0) {
          y[value] = static_cast<T>(answer);
        }
      } else if (lane == 0) {
        y[value] = static_cast<T>(0);
      }
    }
    for (int i = 0; i < n; i++) {
      uint e = lane + 32 * i;
      if (e < Dk) {
        next[base + e] = s[i];
      }
    }
  ]]):gsub("@GATE@", vector and "g[gate * Dk + e]" or "g[gate]"):gsub("@MASK@", masked and "mask[at]" or "true")
    :gsub("@KNOWN@", sum and "" or "known += s[i] * float(k[key + e]);")
    :gsub("@CHANGE@", sum and "float(v[value])" or "(float(v[value]) - simd_sum(known))"), nil
end

-- kernels are by name: all are made at once, so that a trace that has met some of them is good when others are used.
local kernels = {}
for _, vector in ipairs{"", "_vector"} do
  for _, masked in ipairs{"", "_mask"} do
    for _, kind in ipairs{"delta", "sum"} do
      local name, inputs = "gated_" .. kind .. vector .. masked, {"q", "k", "v", "g", "beta", "state"}
      if masked ~= "" then inputs[7] = "mask" end
      kernels[name] = mx.fast.metal_kernel{name = name, input_names = inputs, output_names = {"y", "next"},
        source = (source(vector ~= "", masked ~= "", kind == "sum"))}
    end
  end
end

-- plain is rule in plain operations, which have gradients.
function delta.plain(q, k, v, g, beta, state, mask, kind)
  local heads, out, dtype = v:dim(2), {}, v.dtype
  local function spread(x) return mx["repeat"](x:astype(mx.float32), heads / x:dim(2), 2) end
  q, k, v, beta = spread(q), spread(k), v:astype(mx.float32), beta:astype(mx.float32)
  g = g.ndim == 3 and mx.expand_dims(g, -1) or g
  for t = 0, v:dim(1) - 1 do
    local function at(x) return x:index(":", t) end
    local key = mx.expand_dims(at(k), -2)
    local next_state = state * mx.expand_dims(at(g), -2)
    local left = at(v)
    if kind ~= "sum" then left = left - (next_state * key):sum(-1) end
    local change = left * mx.expand_dims(at(beta), -1)
    next_state = next_state + mx.expand_dims(change, -1) * key
    local y = (next_state * mx.expand_dims(at(q), -2)):sum(-1)
    if mask then
      local real = mx.expand_dims(at(mask), {1, 2})
      y = mx.where(real, y, 0)
      next_state = mx.where(mx.expand_dims(real, -1), next_state, state)
    end
    state, out[t + 1] = next_state, y
  end
  return mx.stack(out, 1):astype(dtype), state
end

-- launched is rule by the kernel of a kind, "delta" or "sum".
local function launched(kind, q, k, v, g, beta, state, mask)
  local hk, dk, hv, dv = q:dim(2), q:dim(3), v:dim(2), v:dim(3)
  local inputs = {q, k, v, g, beta, state}
  if mask then inputs[7] = mask end
  return kernels["gated_" .. kind .. (g.ndim == 4 and "_vector" or "") .. (mask and "_mask" or "")]{
    inputs = inputs, template = {{"T", v.dtype}, {"Hk", hk}, {"Hv", hv}, {"Dk", dk}, {"Dv", dv}},
    grid = function(shapes) return {32, dv, shapes[3][1] * hv} end, threadgroup = {32, 4, 1},
    output_shapes = {v, state}, output_dtypes = {v.dtype, mx.float32},
  }
end

-- rules are launched with plain's gradients, by kind, without a mask and with one.
local rules = {delta = {}, sum = {}}
local function add_rule(kind, masked, n)
  local f = mx.custom_function(function(...) return launched(kind, ...) end)
  f:vjp(function(primals, cotangents)
    local inputs, last = {}, primals[7]
    for i = 1, 6 do inputs[i] = primals[i] end
    local _, grads = mx.vjp(function(q, k, v, g, beta, state)
      return delta.plain(q, k, v, g, beta, state, last, kind)
    end, inputs, cotangents)
    if n == 7 then grads[7] = mx.zeros(last, last.dtype) end
    return grads
  end)
  rules[kind][masked] = f
end
for kind in pairs(rules) do
  add_rule(kind, false, 6)
  add_rule(kind, true, 7)
end

-- rule is the delta rule over tokens: q and k are (batch, tokens, key heads, Dk), v (batch, tokens, value heads, Dv), g
-- (batch, tokens, value heads) or one for each element of a key (.., Dk), beta (batch, tokens, value heads), state
-- (batch, value heads, Dv, Dk) in float32, or nil for none yet. Tokens where mask (batch, tokens) is false answer 0 and
-- leave the state. It gives y, as v, and the new state. kind "sum" is the rule of Mamba 2.
function delta.rule(q, k, v, g, beta, state, mask, kind)
  if v:dim(2) % q:dim(2) ~= 0 then
    error(("lm.delta: %d value heads are no multiple of %d key heads"):format(v:dim(2), q:dim(2)), 2)
  end
  if not state then
    state = mx.zeros(mx.dims({v, 0}, {v, 2}, {v, 3}, {k, 3}), mx.float32)
  end
  local rule = rules[kind or "delta"]
  if mask then return rule[true](q, k, v, g, beta, state, mask) end
  return rule[false](q, k, v, g, beta, state)
end

return delta
