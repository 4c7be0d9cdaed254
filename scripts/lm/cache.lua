-- What a model remembers of the tokens before: keys and values of attention layers, states of recurrent ones.
--
-- A Caches object has one entry for each layer, and how many tokens it has seen. At rest, between calls of a model, its
-- arrays hold just what was seen. For decoding under mx.compile they are rooms with space for more (see room), which
-- grow by steps; then offset is an array, so that one trace serves all positions, and no shape depends on it.
local mx, nn = require("mx"), require("mx.nn")

local step = 256 -- tokens by which rooms grow

local function fail(text, ...) error(("lm: " .. text):format(...), 0) end

local function part(x, from, to) return x:index(":", ":", ("%d:%d"):format(from, to)) end

-- Attention ---------------------------------------------------------------------------------------------------------

-- KV keeps keys and values as a list of arrays (batch, heads, tokens, ...). window is how many tokens a query sees, nil
-- for all, of which the first keep ones stay.
local KV = nn.class("KV")

function KV:init(kind)
  self.window, self.keep, self.parts = kind.window, kind.keep or 0, nil
end

-- pack is what is kept of keys and values, unpacked is that as the two again.
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
  return first, math.max(first, n - last), n
end

-- attend adds the keys and values of the tokens of a call, and is the attention of q over what they may see.
function KV:attend(all, q, k, v, o)
  local new = self:pack(k, v)
  local mask
  if all.traced then
    mask = all:room_mask(self, new[1]:dim(2), self.parts[1])
    local slot = all:slot(self)
    for i, x in ipairs(new) do new[i] = mx.slice_update(self.parts[i], x, slot, {2}) end
    self.parts = new
    return self:product(q, new, mask, o)
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
  if later > from or first < math.min(n + length, self.keep) then
    kept = {}
    first = math.min(n + length, self.keep)
    for i, x in ipairs(new) do
      local tail = part(x, size - (n + length - later), size)
      kept[i] = first > 0 and mx.concatenate({part(x, 0, first), tail}, 2) or tail
    end
  end
  self.parts = kept
  return self:product(q, new, mask, o)
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

function QuantizedKV:init(kind)
  KV.init(self, kind)
  self.how = {group_size = kind.group_size or 64, bits = kind.bits or 8}
end

function QuantizedKV:pack(k, v)
  for _, x in ipairs{k, v} do
    if x:dim(-1) % self.how.group_size ~= 0 then
      fail("heads of %d elements cannot be packed in groups of %d: see kv_group_size", x:dim(-1), self.how.group_size)
    end
  end
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

function LatentKV:init(kind)
  KV.init(self, kind)
  self.rank = kind.rank
end

function LatentKV.pack(_, k) return {k} end

function LatentKV:product(q, parts, mask, o)
  return KV.product(self, q, {parts[1], parts[1]:index("...", "0:" .. self.rank)}, mask, o)
end

-- QuantizedLatentKV keeps that array packed. Its first rank elements are the first groups of each row.
local QuantizedLatentKV = nn.class("QuantizedLatentKV", QuantizedKV)

function QuantizedLatentKV:init(kind)
  QuantizedKV.init(self, kind)
  self.rank = kind.rank
end

function QuantizedLatentKV:pack(k)
  for _, size in ipairs{self.rank, k:dim(-1)} do
    if size % self.how.group_size ~= 0 then
      fail("keys of %d elements, %d of them latent, cannot be packed in groups of %d: see kv_group_size", k:dim(-1),
        self.rank, self.how.group_size)
    end
  end
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

-- Recurrent layers --------------------------------------------------------------------------------------------------

-- State keeps arrays by number that do not grow: nil before the first token.
local State = nn.class("State")

function State:init() self.parts = nil end
function State:get(i) return self.parts and self.parts[i] end
function State:set(...) self.parts = {...} end
function State.room() return 0 end
function State.rest() end
function State.trim(_, _, count) return count == 0 end

-- All layers --------------------------------------------------------------------------------------------------------

local Caches = nn.class("Caches")
local kinds = {kv = KV, packed = QuantizedKV, latent = LatentKV, packed_latent = QuantizedLatentKV,
  state = State}

-- init: layout has a table for each layer: {kind = "kv", window, keep}, {kind = "packed", group_size, bits}, {kind =
-- "latent", rank}, {kind = "packed_latent", rank, group_size, bits} or {kind = "state"}. padding says how many tokens
-- at the left of each example of a batch are none: {2, 0, 5}.
function Caches:init(layout, padding)
  self.layout, self.offset, self.layers, self.size = layout, 0, {}, 0
  for i, kind in ipairs(layout) do self.layers[i] = kinds[kind.kind](kind) end
  if padding and math.max(unpack(padding)) > 0 then self.padding = mx.array(padding, mx.int32) end
end

-- start is called by a model before its layers, done after them.
function Caches:start(tokens)
  self.length, self.memo = tokens:dim(1), {}
end

function Caches:done() self.offset = self.offset + self.length end

-- position is the position of a call's first token, for rotary embeddings: a number, or an array of each example's.
function Caches:position()
  if not self.padding then return self.offset end
  return self.offset - self.padding
end

-- real says which tokens of a call are not padding, (batch, length); nil: all.
function Caches:real()
  if not self.padding or self.traced then return nil end
  local at = mx.arange(self.offset, self.offset + self.length)
  return mx.greater_equal(at, mx.expand_dims(self.padding, 1))
end

local function remembered(self, key, make)
  if self.memo[key] == nil then self.memo[key] = make() or false end
  return self.memo[key] or nil
end

-- mask is what the queries of a call may see, at rest: positions 0..first-1 and from... are kept before them.
function Caches:mask(kv, length, first, from)
  local n, padding, window, keep = self.offset, self.padding, kv.window, kv.keep
  local inside = not window or n + length <= window
  if not padding and (length == 1 or inside) then return length > 1 and "causal" or nil end
  return remembered(self, ("%s %d"):format(window or 0, keep), function()
    local at = mx.arange(from, n + length)
    if first > 0 then at = mx.concatenate({mx.arange(first), at}) end
    local q = mx.expand_dims(mx.arange(n, n + length), 1)
    local sees = mx.less_equal(at, q)
    if not inside then
      local near = mx.greater(at, q - (window - keep))
      if keep > 0 then near = mx.logical_or(near, mx.less(at, keep)) end
      sees = mx.logical_and(sees, near)
    end
    if padding then sees = mx.logical_and(sees, mx.greater_equal(at, mx.expand_dims(padding, {1, 2, 3}))) end
    return sees
  end)
end

-- slot is where the token of a step goes in a room.
function Caches:slot(kv)
  return remembered(self, ("slot %s %d"):format(kv.window or 0, kv.keep), function()
    local n = self.offset
    if kv.window then
      local turned = kv.keep + mx.remainder(n - kv.keep, kv.window - kv.keep)
      n = kv.keep > 0 and mx.where(mx.less(n, kv.keep), n, turned) or turned
    end
    return mx.reshape(n, {1})
  end)
end

-- room_mask is what the token of a step may see in a room: each slot's position is the last that went there.
function Caches:room_mask(kv, length, room)
  if length ~= 1 then fail("a compiled step takes one token of each example, not %d", length) end
  return remembered(self, ("room %s %d"):format(kv.window or 0, kv.keep), function()
    local n = self.offset
    local at = mx.cumsum(mx.ones(mx.dims({room, 2}), mx.int32), 0) - 1
    local sees
    if kv.window then
      local turned = n - mx.remainder(n - at, kv.window - kv.keep)
      local lowest = kv.keep
      if kv.keep > 0 then
        turned = mx.where(mx.less(at, kv.keep), at, turned)
        sees = mx.logical_or(mx.greater_equal(turned, lowest), mx.less(at, kv.keep))
        sees = mx.logical_and(sees, mx.less_equal(turned, n))
      else
        sees = mx.greater_equal(turned, 0)
      end
      at = turned
    else
      sees = mx.less_equal(at, n)
    end
    if self.padding then
      return mx.logical_and(sees, mx.greater_equal(at, mx.expand_dims(self.padding, {1, 2, 3})))
    end
    return mx.expand_dims(sees, {0, 1, 2})
  end)
end

-- decoding is the arrays of all layers as a tree, with room for the next token: what a compiled step takes and gives.
function Caches:decoding()
  if self.size <= self.offset then
    if self.size > 0 then self:resting() end
    local size = (math.floor(self.offset / step) + 1) * step
    for _, layer in ipairs(self.layers) do layer:room(self.offset, size) end
    self.size = size
  end
  local tree = {offset = mx.array(self.offset, mx.int32), padding = self.padding, layers = {}}
  for i, layer in ipairs(self.layers) do tree.layers[i] = layer.parts end
  return tree
end

-- advance takes the tree that a step of one token gave.
function Caches:advance(tree)
  for i, layer in ipairs(self.layers) do layer.parts = tree.layers[i] end
  self.offset = self.offset + 1
end

-- resting takes rooms back to what was seen, before a model is called on them in another way.
function Caches:resting()
  if self.size == 0 then return self end
  for _, layer in ipairs(self.layers) do layer:rest(self.offset) end
  self.size = 0
  return self
end

-- trim forgets the last tokens, as if they had not been: true, or false where a layer cannot.
function Caches:trim(count)
  self:resting()
  if count == 0 then return true end
  if self.padding or count > self.offset then return false end
  for _, layer in ipairs(self.layers) do
    if not layer:trim(self.offset, 0) or getmetatable(layer) == State then return false end
  end
  for _, layer in ipairs(self.layers) do layer:trim(self.offset, count) end
  self.offset = self.offset - count
  return true
end

-- arrays are all arrays, for mx.eval.
function Caches:arrays()
  local out = {}
  for i, layer in ipairs(self.layers) do out[i] = layer.parts or {} end
  return out
end

-- traced is a Caches in a trace, over a tree of decoding's.
local function traced(layout, tree)
  local self = Caches(layout)
  self.traced, self.offset, self.padding = true, tree.offset, tree.padding
  for i, layer in ipairs(self.layers) do layer.parts = tree.layers[i] end
  return self
end

-- tree is what a traced Caches gives back.
function Caches:tree()
  local out = {layers = {}}
  for i, layer in ipairs(self.layers) do out.layers[i] = layer.parts end
  return out
end

-- save writes a Caches of one example to a .safetensors file, with a table of strings beside; load reads it.
function Caches:save(file, metadata)
  self:resting()
  if self.padding then fail("a padded batch of prompts cannot be saved") end
  local arrays = {}
  for i, layer in ipairs(self.layers) do
    for j, x in ipairs(layer.parts or {}) do arrays[("%d.%d"):format(i - 1, j - 1)] = x end
  end
  local about = {offset = ("%d"):format(self.offset)}
  for k, v in pairs(metadata or {}) do about[k] = v end
  mx.save_safetensors(file, arrays, about)
end

local function load(layout, file)
  local arrays, about = mx.load(file, {format = "safetensors", return_metadata = true})
  local self, offset = Caches(layout), tonumber(about.offset or "")
  if not offset then fail("%s is no file of a prompt: it has no offset", file) end
  self.offset = offset
  for name, x in pairs(arrays) do
    local i, j = name:match("^(%d+)%.(%d+)$")
    local layer = i and self.layers[tonumber(i) + 1]
    if not layer then fail("%s has %s, which no layer of the model has", file, name) end
    layer.parts = layer.parts or {}
    layer.parts[tonumber(j) + 1] = x
  end
  return self, about
end

return {Caches = Caches, KV = KV, QuantizedKV = QuantizedKV, State = State, traced = traced, load = load}
