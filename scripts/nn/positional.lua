-- Positions in a sequence.
local mx, _, fail, use = ...
local nn = use("mx.nn")

local class, text = use("class"), use("text")
local layer, described = class.layer, text.described

layer{
  name = "RoPE", sig = "dims:int traditional:bool=false base:number=10000 scale:number=1.0",
  help = "Rotates pairs of the first dims features of an array (..., L, D) by angles that grow with the place, " ..
    "which " ..
    "begins at offset: rope(x, offset). See mx.fast.rope.",
  init = function(self, dims, traditional, base, scale)
    self.dims, self.traditional, self.base, self.scale = dims, traditional, base, scale
  end,
  takes = "x offset",
  forward = function(self, x, offset)
    return mx.fast.rope(x, self.dims, {traditional = self.traditional, base = self.base, scale = self.scale,
      offset = offset or 0})
  end,
  repr = function(self) return described(self, "dims traditional=") end,
}

layer{
  name = "SinusoidalPositionalEncoding",
  sig = "dims:int min_freq:number=0.0001 max_freq:number=1 scale:number? cos_first:bool=false full_turns:bool=false",
  help = "Of each element x, dims features: the sines and the cosines (cos_first: the other way round) of x times " ..
    "frequencies between max_freq and min_freq, times scale, sqrt(2 / dims) unless it is given. With full_turns " ..
    "frequencies are in turns, not radians.",
  init = function(self, dims, min_freq, max_freq, scale, cos_first, full_turns)
    if dims <= 0 or dims % 2 ~= 0 then
      fail("SinusoidalPositionalEncoding", ("dims is %d, want a positive even number"):format(dims))
    end
    local one_zero = mx.array({1})
    if dims > 2 then one_zero = 1 - mx.arange(0, dims / 2) / (dims / 2 - 1) end
    local low, high = math.log(min_freq), math.log(max_freq)
    self._sigmas = mx.exp(one_zero * (high - low) + low)
    if full_turns then self._sigmas = self._sigmas * (2 * math.pi) end
    self.scale, self.cos_first = scale or math.sqrt(2 / dims), cos_first
  end,
  forward = function(self, x)
    local y = mx.expand_dims(x, -1) * self._sigmas
    local first, second = mx.sin(y), mx.cos(y)
    if self.cos_first then first, second = second, first end
    y = mx.concatenate({first, second}, -1)
    if self.scale ~= 1 then y = y * self.scale end
    return y
  end,
}

-- slopes are the heads' slopes: powers of one number where the heads are a power of 2, else those of the next lower
-- power, and every second one of the next higher.
local function slopes(n)
  local power = 2 ^ math.floor(math.log(n) / math.log(2) + 1e-9)
  local out, start = {}, 2 ^ -(2 ^ -(math.log(power) / math.log(2) - 3))
  for i = 0, power - 1 do out[i + 1] = start * start ^ i end
  if power < n then
    local more = slopes(2 * power)
    for i = 1, n - power do out[power + i] = more[2 * i - 1] end
  end
  return out
end

local ALiBi = layer{
  name = "ALiBi", sig = "",
  help = "Attention scores (N, heads, L, S) plus a bias that falls with the distance, in each head by a slope " ..
    "of its own; " ..
    "alibi(scores, offset, mask) also adds a mask.",
  takes = "attention_scores offset mask",
  forward = function(_, scores, offset, mask)
    offset = offset or 0
    local bias = nn.ALiBi.create_alibi_matrix(scores:dim(-2) + offset, scores:dim(-1), scores:dim(1), offset,
      scores.dtype)
    if mask then bias = bias + mask end
    return scores + bias
  end,
}

-- create_alibi_slope are the heads' slopes, (num_heads, 1, 1).
function ALiBi.create_alibi_slope(num_heads, dtype)
  dtype = class.option("ALiBi.create_alibi_slope", dtype, "dtype")
  return mx.array(slopes(num_heads), dtype or mx.float32):reshape({num_heads, 1, 1})
end

-- create_alibi_matrix is the bias, (1, num_heads, L, S), of the places from offset on.
local matrix = "k_sequence_length num_heads offset dtype"
ALiBi.create_alibi_matrix = class.taking("ALiBi.create_alibi_matrix", matrix, function(
    q_sequence_length, k_sequence_length, num_heads, offset, dtype)
  local from, to = mx.arange(offset or 0, q_sequence_length), mx.arange(0, k_sequence_length)
  local distance = -mx.abs(mx.expand_dims(from, 1) - mx.expand_dims(to, 0))
  return (mx.expand_dims(distance, {0, 1}) * ALiBi.create_alibi_slope(num_heads, dtype)):astype(dtype or mx.float32)
end)
