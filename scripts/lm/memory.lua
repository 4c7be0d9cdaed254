-- What one layer remembers of the tokens before: keys and values of attention, a state of recurrent layers. lm.cache
-- has all layers' of a model, and says when they are at rest and when they are rooms.
local mx, nn = require("mx"), require("mx.nn")
local keywords = require("lm.keywords")

local function fail(text, ...) error(("lm: " .. text):format(...), 0) end

local function part(x, from, to) return x:index(":", ":", ("%d:%d"):format(from, to)) end

-- Attention ---------------------------------------------------------------------------------------------------------

-- KV keeps keys and values as a list of arrays (batch, heads, tokens, ...), parts, of which there are `count`. window
-- is how many tokens a query sees, nil for all, of which the first keep ones stay. With chunk, it sees those of its own
-- chunk of so many tokens only.
local KV = nn.class("KV")
KV.count = 2

function KV:init(kind)
  self.window, self.keep, self.rank, self.lent, self.parts = kind.window, kind.keep or 0, kind.rank, kind.lent, nil
  self.chunk = kind.chunk
end

-- pack is what is kept of keys and values.
function KV.pack(_, k, v) return {k, v} end

-- by_hand is attention in plain operations: q (batch, heads, tokens, size) with keys and values of fewer heads, by
-- times_k(q) and times_v(shares), in which q and shares have a dimension more, (batch, kv_heads, heads of each, ...).
local function by_hand(q, kv_heads, mask, o, times_k, times_v)
  local heads = q:dim(1)
  q = mx.unflatten(q * o.scale, 1, {kv_heads, -1})
  local scores = times_k(q)
  if o.softcap then scores = mx.tanh(scores / o.softcap) * o.softcap end
  if mask == "causal" then
    local L, S = scores:dim(-2), scores:dim(-1)
    mask = mx.greater_equal(mx.expand_dims(mx.arange(S - L, S), 1), mx.arange(S))
  elseif mask and mask.ndim == 4 then -- one for each example
    mask = mx.expand_dims(mask, 1)
  end
  if mask then scores = mx.where(mask, scores, mx.array(mx.finfo(scores.dtype).min, scores.dtype)) end
  if o.sinks then
    local sinks = mx.expand_dims(mx.unflatten(o.sinks:astype(scores.dtype), 0, {kv_heads, -1}), {0, 3, 4})
    local shape = mx.dims({scores, 0}, {scores, 1}, {scores, 2}, {scores, 3}, 1)
    scores = mx.concatenate({mx.broadcast_to(sinks, shape), scores}, -1)
  end
  local shares = mx.softmax(scores, -1, {precise = true})
  if o.sinks then shares = shares:index("...", "1:") end
  return mx.unflatten(mx.flatten(times_v(shares), 1, 2), 1, {heads})
end

function KV.product(_, q, parts, mask, o)
  local k, v = parts[1], parts[2]
  if o.softcap then
    return by_hand(q, k:dim(1), mask, o, function(x) return mx.matmul(x, mx.expand_dims(k, 2):swapaxes(-1, -2)) end,
      function(x) return mx.matmul(x, mx.expand_dims(v, 2)) end)
  end
  return mx.fast.scaled_dot_product_attention(q, k, v, {scale = o.scale, mask = mask, sinks = o.sinks})
end

-- places are the positions of what is kept at rest after n tokens: a first and a last run.
function KV:places(n)
  local last = self.window and self.window - 1 - self.keep or n
  local first = math.min(n, self.window and self.keep or 0)
  return first, math.max(first, n - last)
end

-- attend adds the keys and values of the tokens of a call, and is the attention of q over what they may see. Options:
-- scale, softcap, sinks.
function KV:attend(all, q, k, v, o)
  o = keywords.check("lm: cache:attend", o)
  local new = self:pack(k, v)
  local mask
  if all.traced then
    mask = all:room_mask(self, new[1]:dim(2), self.parts[1])
    local rooms = {}
    for i, x in ipairs(new) do rooms[i], new[i] = all:place(self, self.parts[i], x) end
    self.parts = rooms
    return self:answer(q, new, mask, o)
  end
  local n, length = all.offset, new[1]:dim(2)
  local first, from = self:places(n)
  if self.parts then
    for i, x in ipairs(new) do new[i] = mx.concatenate({self.parts[i], x}, 2) end
  end
  mask = all:mask(self, length, first, from)
  local kept = new
  local _, later = self:places(n + length)
  local size = first + n + length - from
  if later > from then
    kept = {}
    first = math.min(n + length, self.keep)
    for i, x in ipairs(new) do
      local tail = part(x, size - (n + length - later), size)
      kept[i] = first > 0 and mx.concatenate({part(x, 0, first), tail}, 2) or tail
    end
  end
  self.parts = kept
  return self:answer(q, new, mask, o)
end

-- answer is the attention of a call. Where layers after this one ask the same keys and values, lent, they stay until
-- the call is done.
function KV:answer(q, parts, mask, o)
  if self.lent then self.call = {parts, mask} end
  return self:product(q, parts, mask, o)
end

-- room makes the parts longer, for `size` tokens after n: what is kept of a window goes to the slots of room_mask.
function KV:room(n, size)
  if self.window then size = math.min(size, self.window) end
  for i, x in ipairs(self.parts) do
    local have = x:dim(2)
    if have < size then
      local shape = x.shape
      shape[3] = size - have
      x = mx.concatenate({x, mx.zeros({unpack(shape)}, x.dtype)}, 2)
    end
    self.parts[i] = x
  end
  local around = self.window and self.window - self.keep
  local _, from = self:places(n)
  if around and from > self.keep then
    self:roll((from - self.keep) % around)
  end
  return size
end

-- roll moves what is behind the kept tokens by a number of slots.
function KV:roll(by)
  for i, x in ipairs(self.parts) do
    local keep, size = self.keep, x:dim(2)
    local ring = mx.roll(part(x, keep, size), by, 2)
    self.parts[i] = keep > 0 and mx.concatenate({part(x, 0, keep), ring}, 2) or ring
  end
end

-- rest takes a room back to what is kept after n tokens.
function KV:rest(n)
  local first, from = self:places(n)
  local size = self.parts[1]:dim(2)
  if self.window and from > self.keep then
    self:roll(-((from - self.keep) % (self.window - self.keep)))
  end
  for i, x in ipairs(self.parts) do self.parts[i] = part(x, 0, math.min(size, first + n - from)) end
end

-- trim forgets the last tokens of n: true, or false where what came before them is gone.
function KV:trim(n, count)
  if self.window and n >= self.window then return false end
  if self.parts then
    for i, x in ipairs(self.parts) do self.parts[i] = part(x, 0, n - count) end
  end
  return true
end

-- QuantizedKV keeps them packed, in groups of neighbours along a head.
local QuantizedKV = nn.class("QuantizedKV", KV)
QuantizedKV.count = 6

function QuantizedKV:init(kind)
  KV.init(self, kind)
  self.how = {group_size = kind.group_size, bits = kind.bits}
end

-- check fails for keys and values that cannot be packed.
function QuantizedKV:check(k, v)
  for _, x in ipairs{k, v} do
    if x:dim(-1) % self.how.group_size ~= 0 then
      fail("heads of %d elements cannot be packed in groups of %d: see kv_group_size", x:dim(-1), self.how.group_size)
    end
  end
end

function QuantizedKV:pack(k, v)
  self:check(k, v)
  local a, b, c = mx.quantize(k, self.how)
  return {a, b, c, mx.quantize(v, self.how)}
end

-- times is the product of x with packed rows w, scales and biases (batch, kv_heads, tokens, ...), or those transposed.
function QuantizedKV:times(w, scales, biases, transpose)
  w, scales, biases = mx.expand_dims(w, 2), mx.expand_dims(scales, 2), mx.expand_dims(biases, 2)
  return function(x)
    return mx.quantized_matmul(x, w, {scales = scales, biases = biases, transpose = transpose,
      group_size = self.how.group_size, bits = self.how.bits})
  end
end

function QuantizedKV:product(q, parts, mask, o)
  return by_hand(q, parts[1]:dim(1), mask, o, self:times(parts[1], parts[2], parts[3], true),
    self:times(parts[4], parts[5], parts[6], false))
end

-- LatentKV keeps one array for all heads: keys, of which the first rank elements are the values.
local LatentKV = nn.class("LatentKV", KV)
LatentKV.count = 1

function LatentKV.pack(_, k) return {k} end

function LatentKV:product(q, parts, mask, o)
  return KV.product(self, q, {parts[1], parts[1]:index("...", "0:" .. self.rank)}, mask, o)
end

-- QuantizedLatentKV keeps that array packed. Its first rank elements are the first groups of each row.
local QuantizedLatentKV = nn.class("QuantizedLatentKV", QuantizedKV)
QuantizedLatentKV.count = 3

function QuantizedLatentKV:check(k)
  for _, size in ipairs{self.rank, k:dim(-1)} do
    if size % self.how.group_size ~= 0 then
      fail("keys of %d elements, %d of them latent, cannot be packed in groups of %d: see kv_group_size", k:dim(-1),
        self.rank, self.how.group_size)
    end
  end
end

function QuantizedLatentKV:pack(k)
  self:check(k)
  return {mx.quantize(k, self.how)}
end

function QuantizedLatentKV:product(q, parts, mask, o)
  local w, scales, biases = unpack(parts)
  local function first(x, n) return x:index("...", ("0:%d"):format(n)) end
  local groups = self.rank / self.how.group_size
  local values = first(w, self.rank * self.how.bits / 32)
  return by_hand(q, 1, mask, o, self:times(w, scales, biases, true),
    self:times(values, first(scales, groups), first(biases, groups), false))
end

-- Layers without keys and values ------------------------------------------------------------------------------------

-- None keeps nothing.
local None = nn.class("None")
None.count = 0

function None:init() self.parts = {} end
function None.room() return 0 end
function None.rest() end
function None.trim() return true end

-- Borrowed asks the keys and values of an earlier layer, the one of that number.
local Borrowed = nn.class("Borrowed", None)

function Borrowed:init(kind)
  None.init(self, kind)
  self.of = kind.of
end

function Borrowed:attend(all, q, _, _, o)
  local lender = all.layers[self.of]
  return lender:product(q, lender.call[1], lender.call[2], keywords.check("lm: cache:attend", o))
end

-- Recurrent layers --------------------------------------------------------------------------------------------------

-- State keeps arrays by number that do not grow: nil before the first token.
local State = nn.class("State")

function State:init() self.parts = nil end
function State:get(i) return self.parts and self.parts[i] end
function State:set(...) self.parts = {...} end
function State.room() return 0 end
function State.rest() end
function State.trim() return false end

return {kv = KV, packed = QuantizedKV, latent = LatentKV, packed_latent = QuantizedLatentKV, state = State,
  none = None, borrowed = Borrowed}
