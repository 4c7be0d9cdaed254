-- One decode step of a hybrid model in small, after Qwen3-Next: layers of a gated delta rule, every fourth of grouped
-- attention, each followed by a mixture of 4-bit experts. The step is compiled once, replayed at several batch sizes
-- with its state carried from step to step, and compared with the same step in plain float32 operations.
--
--   mlxlua examples/hybrid_moe.lua [--layers 40] [--steps 4] [--batches 1,3,16] [--eager]
--
-- The exit status is 1 if a relative difference is above 1e-4.
local mx = require("mx")
local nn = require("mx.nn")

local options = {layers = 40, steps = 4, batches = "1,3,16", eager = false}
local argv = {...}
local at = 1
while argv[at] do
  local name = argv[at]:match("^%-%-(%a+)$")
  if options[name] == nil then error("unknown option " .. argv[at], 0) end
  if name == "eager" then
    options.eager = true
    at = at + 1
  else
    if not argv[at + 1] then error("option " .. argv[at] .. " needs a value", 0) end
    options[name] = name == "batches" and argv[at + 1] or tonumber(argv[at + 1])
    at = at + 2
  end
end

local vocabulary, width = 512, 128
local heads, kv_heads, head_size, rope_size = 4, 2, 32, 16        -- attention
local key_heads, value_heads, key_size, value_size = 2, 4, 64, 32 -- gated delta
local experts, chosen, hidden = 8, 3, 64
local eps, tolerance = 1e-6, 1e-4
local packing = {group_size = 64, bits = 4}

-- Weights -------------------------------------------------------------------------------------------------------

mx.random.seed(7)
local function weights(...) -- a matrix (..., inputs, outputs) that keeps the size of what it multiplies
  local shape = {...}
  local reach = math.sqrt(3 / shape[#shape - 1])
  return mx.random.uniform(-reach, reach, shape)
end
local damping = (2 * options.layers) ^ -0.5 -- what a layer adds is scaled down, so that all of them add up to order 1
local function near(value, ...) return value + mx.random.uniform(-0.1, 0.1, {...}) end
local function packed_by(factor, ...) -- matrices of rows to multiply with, in four bits an element
  local w, scales, biases = mx.quantize(mx.swapaxes(weights(...) * factor, -1, -2), packing)
  return {w = w, scales = scales, biases = biases}
end
local function packed(...) return packed_by(1, ...) end

local function make_layer(i)
  local layer = {
    norm1 = near(1, width), norm2 = near(1, width), router = weights(width, experts),
    gate = packed(experts, width, hidden), up = packed(experts, width, hidden),
    down = packed_by(damping, experts, hidden, width),
  }
  if i % 4 == 0 then
    layer.q = weights(width, 2 * heads * head_size) -- queries and their gates
    layer.kv = weights(width, 2 * kv_heads * head_size)
    layer.q_norm, layer.k_norm = near(1, head_size), near(1, head_size)
    layer.out = weights(heads * head_size, width) * damping
  else
    layer.qkvz = weights(width, 2 * key_heads * key_size + 2 * value_heads * value_size)
    layer.ba = weights(width, 2 * value_heads)
    layer.decay, layer.bias = mx.random.uniform(-1, 1, {value_heads}), near(0, value_heads)
    layer.norm = near(1, value_size)
    layer.out = weights(value_heads * value_size, width) * damping
  end
  return layer
end

local model = {embedding = near(0, vocabulary, width) * 10, layers = {}, norm = near(1, width)}
model.head = packed(width, vocabulary)
for i = 1, options.layers do model.layers[i] = make_layer(i) end
mx.eval(model)

local function empty_state(batch)
  local state = {}
  for i, layer in ipairs(model.layers) do
    if layer.kv then
      local none = mx.zeros({batch, kv_heads, 0, head_size})
      state[i] = {k = none, v = none}
    else
      state[i] = {memory = mx.zeros({batch, value_heads, value_size, key_size})}
    end
  end
  return state
end

-- The step --------------------------------------------------------------------------------------------------------

-- The delta rule with a gate, one step: the memory S of a head, value_size rows of key_size elements, fades by g, and
-- what it answers to the key k is moved towards v by the share beta; then it is asked q. A SIMD-group has a row of S,
-- its lanes neighbouring elements.
local delta_rule = mx.fast.metal_kernel{
  name = "gated_delta_step", input_names = {"q", "k", "v", "g", "beta", "memory"}, output_names = {"y", "next"},
  source = [[
    uint lane = thread_position_in_threadgroup.x;
    uint row = thread_position_in_grid.y;
    uint head = thread_position_in_grid.z; // of all examples
    uint shared = (head / Hv * Hk + head % Hv / (Hv / Hk)) * Dk; // where the head's key and query are
    ulong base = (ulong(head) * Dv + row) * Dk;
    float s[Dk / 32];
    float known = 0;
    for (int i = 0; i < Dk / 32; i++) {
      s[i] = g[head] * memory[base + lane + 32 * i];
      known += s[i] * k[shared + lane + 32 * i];
    }
    float change = beta[head] * (v[head * Dv + row] - simd_sum(known));
    float answer = 0;
    for (int i = 0; i < Dk / 32; i++) {
      s[i] += change * k[shared + lane + 32 * i];
      answer += s[i] * q[shared + lane + 32 * i];
      next[base + lane + 32 * i] = s[i];
    }
    answer = simd_sum(answer);
    if (lane == 0) {
      y[head * Dv + row] = answer;
    }
  ]],
}
local function delta_grid(shapes) return {32, value_size, shapes[3][1] * value_heads} end

local function split_delta(layer, x)
  local q, k, v, z = unpack(mx.split(mx.matmul(x, layer.qkvz), {
    key_heads * key_size, 2 * key_heads * key_size, 2 * key_heads * key_size + value_heads * value_size}, -1))
  local b, a = unpack(mx.split(mx.matmul(x, layer.ba), 2, -1))
  return q:reshape({-1, key_heads, key_size}), k:reshape({-1, key_heads, key_size}),
    v:reshape({-1, value_heads, value_size}), z:reshape({-1, value_heads, value_size}), b, a
end

local function delta(layer, x, state)
  local q, k, v, z, b, a = split_delta(layer, x)
  local scale = key_size ^ -0.5
  local y, memory = delta_rule{
    inputs = {
      mx.fast.rms_norm(q, nil, eps) * scale ^ 2, mx.fast.rms_norm(k, nil, eps) * scale, v,
      mx.exp(-mx.exp(layer.decay) * nn.softplus(a + layer.bias)), mx.sigmoid(b), state.memory,
    },
    template = {{"Hk", key_heads}, {"Hv", value_heads}, {"Dk", key_size}, {"Dv", value_size}},
    grid = delta_grid, threadgroup = {32, 4, 1},
    output_shapes = {v, state.memory}, output_dtypes = {mx.float32, mx.float32},
  }
  y = mx.fast.rms_norm(y, layer.norm, eps) * nn.silu(z)
  return mx.matmul(y:reshape({-1, value_heads * value_size}), layer.out), {memory = memory}
end

local function attention(layer, x, state, place)
  local q, gate = unpack(mx.split(mx.matmul(x, layer.q):reshape({-1, heads, 2 * head_size}), 2, -1))
  local k, v = unpack(mx.split(mx.matmul(x, layer.kv):reshape({-1, 2 * kv_heads, 1, head_size}), 2, 1))
  q = mx.fast.rms_norm(q, layer.q_norm, eps):expand_dims(2)
  k = mx.fast.rms_norm(k, layer.k_norm, eps)
  local turn = {base = 10000, offset = place}
  k = mx.concatenate({state.k, mx.fast.rope(k, rope_size, turn)}, 2)
  v = mx.concatenate({state.v, v}, 2)
  local y = mx.fast.scaled_dot_product_attention(mx.fast.rope(q, rope_size, turn), k, v, {scale = head_size ^ -0.5})
  y = y:reshape({-1, heads * head_size}) * mx.sigmoid(gate:reshape({-1, heads * head_size}))
  return mx.matmul(y, layer.out), {k = k, v = v}
end

local function gathered(x, m, which)
  return mx.gather_qmm(x, m.w, m.scales, m.biases, {rhs_indices = which, group_size = 64, bits = 4})
end

local function mixture(layer, x)
  local shares = mx.softmax(mx.matmul(x, layer.router), -1)
  local which = mx.argpartition(-shares, chosen - 1, -1):index(":", "0:" .. chosen)
  shares = mx.take_along_axis(shares, which, -1)
  shares = shares / shares:sum(-1, true)
  local each = x:expand_dims({1, 2})
  local y = nn.silu(gathered(each, layer.gate, which)) * gathered(each, layer.up, which)
  y = gathered(y, layer.down, which):squeeze(-2)
  return (y * shares:expand_dims(-1)):sum(-2)
end

-- decode takes the tokens of a batch, their places and the state; it gives scores, the next tokens and places, and the
-- state after them.
local function decode(tokens, place, state)
  local after = {}
  local h = model.embedding[tokens]
  for i, layer in ipairs(model.layers) do
    local mix = layer.kv and attention or delta
    local y
    y, after[i] = mix(layer, mx.fast.rms_norm(h, layer.norm1, eps), state[i], place)
    h = h + y
    h = h + mixture(layer, mx.fast.rms_norm(h, layer.norm2, eps))
  end
  h = mx.fast.rms_norm(h, model.norm, eps)
  local head = model.head
  local scores = mx.quantized_matmul(h, head.w, head.scales, head.biases, packing)
  return scores, mx.argmax(scores, -1):astype(mx.int32), place + 1, after
end

-- The same in plain float32 operations -----------------------------------------------------------------------------

local plain = {}

local function unpacked(m) return mx.swapaxes(mx.dequantize(m.w, m.scales, m.biases, packing), -1, -2) end

function plain.norm(x, w)
  local y = x / mx.sqrt((x * x):mean(-1, true) + eps)
  return w and y * w or y
end

function plain.silu(x) return x / (1 + mx.exp(-x)) end

function plain.delta(layer, x, state)
  local q, k, v, z, b, a = split_delta(layer, x)
  local function spread(t) -- to one for each value head, as a column
    t = t:expand_dims(2)
    t = t + mx.zeros({1, 1, value_heads / key_heads, 1})
    return t:reshape({-1, value_heads, key_size, 1})
  end
  local scale = key_size ^ -0.5
  q, k = spread(plain.norm(q) * scale ^ 2), spread(plain.norm(k) * scale)
  local g = mx.exp(-mx.exp(layer.decay) * mx.log(1 + mx.exp(a + layer.bias))):reshape({-1, value_heads, 1, 1})
  local beta = (1 / (1 + mx.exp(-b))):reshape({-1, value_heads, 1, 1})
  local memory = g * state.memory
  local change = beta * (v:expand_dims(-1) - mx.matmul(memory, k))
  memory = memory + mx.matmul(change, mx.swapaxes(k, -1, -2))
  local y = plain.norm(mx.matmul(memory, q):squeeze(-1), layer.norm) * plain.silu(z)
  return mx.matmul(y:reshape({-1, value_heads * value_size}), layer.out), {memory = memory}
end

function plain.turn(x, place)
  local half = rope_size / 2
  local angle = place:reshape({-1, 1, 1, 1}) * mx.exp(mx.arange(half) * (-math.log(10000) / half))
  local a, b, rest = unpack(mx.split(x, {half, rope_size}, -1))
  local c, s = mx.cos(angle), mx.sin(angle)
  return mx.concatenate({a * c - b * s, a * s + b * c, rest}, -1)
end

function plain.attention(layer, x, state, place)
  local q, gate = unpack(mx.split(mx.matmul(x, layer.q):reshape({-1, heads, 2 * head_size}), 2, -1))
  local k, v = unpack(mx.split(mx.matmul(x, layer.kv):reshape({-1, 2 * kv_heads, 1, head_size}), 2, 1))
  q = plain.turn(plain.norm(q, layer.q_norm):expand_dims(2), place)
  k = mx.concatenate({state.k, plain.turn(plain.norm(k, layer.k_norm), place)}, 2)
  v = mx.concatenate({state.v, v}, 2)
  q = q:reshape({-1, kv_heads, heads / kv_heads, head_size})
  local share = mx.softmax(mx.matmul(q, mx.swapaxes(k, -1, -2)) * head_size ^ -0.5, -1)
  local y = mx.matmul(share, v):reshape({-1, heads * head_size})
  y = y / (1 + mx.exp(-gate:reshape({-1, heads * head_size})))
  return mx.matmul(y, layer.out), {k = k, v = v}
end

function plain.mixture(layer, x)
  local scores = mx.exp(mx.matmul(x, layer.router))
  local shares = scores / scores:sum(-1, true)
  local which = mx.argsort(-shares, -1):index(":", "0:" .. chosen)
  shares = mx.take_along_axis(shares, which, -1)
  shares = shares / shares:sum(-1, true)
  local each = x:expand_dims({1, 2})
  local y = plain.silu(mx.matmul(each, unpacked(layer.gate)[which])) * mx.matmul(each, unpacked(layer.up)[which])
  y = mx.matmul(y, unpacked(layer.down)[which]):squeeze(-2)
  return (y * shares:expand_dims(-1)):sum(-2)
end

function plain.decode(tokens, place, state)
  local after = {}
  local h = model.embedding[tokens]
  for i, layer in ipairs(model.layers) do
    local mix = layer.kv and plain.attention or plain.delta
    local y
    y, after[i] = mix(layer, plain.norm(h, layer.norm1), state[i], place)
    h = h + y
    h = h + plain.mixture(layer, plain.norm(h, layer.norm2))
  end
  return mx.matmul(plain.norm(h, model.norm), unpacked(model.head)), after
end

-- Both, side by side -----------------------------------------------------------------------------------------------

local traces = 0
local step = decode
if not options.eager then
  step = mx.compile(function(tokens, place, state)
    traces = traces + 1
    return decode(tokens, place, state)
  end, {shapeless = true})
end

local function larger(a, b) return (a ~= a or a > b) and a or b end -- NaN is larger than all

local worst = 0
print(string.format("%d layers, %s", options.layers, options.eager and "eager" or "compiled"))
for text in options.batches:gmatch("%d+") do
  local batch = tonumber(text)
  local tokens = mx.arange(batch) * 31 % vocabulary
  local place = mx.arange(batch) -- examples may be at different places
  local state, plain_state = empty_state(batch), empty_state(batch)
  local fastest, difference = math.huge, 0
  for _ = 1, options.steps do
    local started = mx.clock()
    local scores, next_tokens, next_place, after = step(tokens, place, state)
    mx.eval(scores, next_tokens, next_place, after)
    fastest = math.min(fastest, mx.clock() - started)
    local want, plain_after = plain.decode(tokens, place, plain_state)
    mx.eval(want, plain_after)
    difference = larger((mx.abs(scores - want):max() / mx.abs(want):max()):item(), difference)
    tokens, place, state, plain_state = next_tokens, next_place, after, plain_after
  end
  print(string.format("batch %2d: %d steps, %.2f ms at best, largest relative difference %.1e", batch, options.steps,
    fastest * 1000, difference))
  worst = larger(difference, worst)
end
if not options.eager then print(string.format("traces of the step: %d", traces)) end
if not (worst <= tolerance) then
  print(string.format("FAILED: the largest relative difference is %g, above %g", worst, tolerance))
  os.exit(1)
end
