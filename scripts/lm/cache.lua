-- What a model remembers of the tokens before: keys and values of attention layers, states of recurrent ones.
--
-- A Caches object has one entry for each layer, and how many tokens it has seen. At rest, between calls of a model, its
-- arrays hold just what was seen. For decoding under mx.compile they are rooms with space for more (see room), which
-- grow by steps; then offset is an array, so that one trace serves all positions, and no shape depends on it.
local mx, nn = require("mx"), require("mx.nn")
local kinds = require("lm.memory")

local step = 256 -- tokens by which rooms grow

local function fail(text, ...) error(("lm: " .. text):format(...), 0) end

local Caches = nn.class("Caches")

-- init: layout has a table for each layer: {kind = "kv", window, keep}, {kind = "packed", group_size, bits}, {kind =
-- "latent", rank}, {kind = "packed_latent", rank, group_size, bits} or {kind = "state"}. padding says how many tokens
-- at the left of each example of a batch are none: {2, 0, 5}. packing, {bits, group_size, start}, packs keys and values
-- once `start` tokens were seen.
function Caches:init(layout, padding, packing)
  self.layout, self.offset, self.layers, self.size, self.packing = layout, 0, {}, 0, packing
  for i, kind in ipairs(layout) do self.layers[i] = kinds[kind.kind](kind) end
  if padding and math.max(unpack(padding)) > 0 then self.padding = mx.array(padding, mx.int32) end
  self:settle()
end

-- packed is a kind of layer with its keys and values packed, nil for one that has none.
local function packed(kind, how)
  local name = ({kv = "packed", latent = "packed_latent"})[kind.kind]
  return name and {kind = name, window = kind.window, keep = kind.keep, rank = kind.rank, bits = how.bits,
    group_size = how.group_size}
end

-- settle packs keys and values when it is time to. What cannot be packed is an error from the first tokens on.
function Caches:settle()
  local how = self.packing
  local due = how and self.offset >= how.start
  if not how or not due and (self.offset == 0 or how.checked) then return end
  how.checked = true
  if due then self:resting() end
  local layout = {}
  for i, kind in ipairs(self.layout) do
    local other, parts = packed(kind, how), self.layers[i].parts
    layout[i] = other or kind
    if other then
      local layer = kinds[other.kind](other)
      if parts then layer:check(unpack(parts)) end
      if parts and due then layer.parts = layer:pack(unpack(parts)) end
      if due then self.layers[i] = layer end
    end
  end
  if due then self.layout, self.packing = layout, nil end
end

-- start is called by a model before its layers, done after them.
function Caches:start(tokens)
  self:settle()
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
  self:settle()
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
  if not (count >= 0) then fail("trim: %s tokens cannot be forgotten, want a number from 0", tostring(count)) end
  self:resting()
  if count == 0 then return true end
  if self.padding or count > self.offset then return false end
  for _, layer in ipairs(self.layers) do
    if not layer:trim(self.offset, 0) then return false end
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

-- described is what a layer of a layout keeps, as a text.
local function described(kind)
  local out = {kind.kind}
  for _, name in ipairs{"window", "keep", "rank", "bits", "group_size"} do
    if kind[name] then out[#out + 1] = ("%s=%d"):format(name, kind[name]) end
  end
  return table.concat(out, " ")
end

-- key is the layout as a text, the same for those that share traces and files: a layer, a semicolon, the next.
function Caches:key()
  local out = {}
  for i, kind in ipairs(self.layout) do out[i] = described(kind) end
  return table.concat(out, ";")
end

-- path is the name of a file of a prompt: it ends in .safetensors.
local function path(file) return file:match("%.safetensors$") and file or file .. ".safetensors" end

-- save writes a Caches of one example to a .safetensors file, with a table of strings beside; load reads it.
function Caches:save(file, metadata)
  self:resting()
  if self.padding then fail("a padded batch of prompts cannot be saved") end
  local arrays = {}
  for i, layer in ipairs(self.layers) do
    for j, x in ipairs(layer.parts or {}) do arrays[("%d.%d"):format(i - 1, j - 1)] = x end
  end
  local about = {offset = ("%d"):format(self.offset), layout = self:key()}
  for k, v in pairs(metadata or {}) do about[k] = v end
  mx.save_safetensors(path(file), arrays, about)
end

-- compare fails where a file is of another layout, and names the first layer that differs.
local function compare(file, own, other)
  if own == other then return end
  if not other then fail("%s is no file of a prompt: it has no layout", file) end
  local mine, theirs = (own .. ";"):gmatch("(.-);"), (other .. ";"):gmatch("(.-);")
  local i, a, b = -1, nil, nil
  repeat
    i, a, b = i + 1, mine(), theirs()
  until a ~= b
  fail("%s is of other caches: layer %d is %s there, %s here", file, i, b or "none", a or "none")
end

local function load(layout, file, packing)
  file = path(file)
  local arrays, about = mx.load(file, {format = "safetensors", return_metadata = true})
  local self, offset = Caches(layout, nil, packing), tonumber(about.offset or "")
  if not offset then fail("%s is no file of a prompt: it has no offset", file) end
  self.offset = offset
  self:settle()
  compare(file, self:key(), about.layout)
  for i, layer in ipairs(self.layers) do
    local parts, j = {}, 0
    while arrays[("%d.%d"):format(i - 1, j)] do
      local name = ("%d.%d"):format(i - 1, j)
      j, parts[j + 1], arrays[name] = j + 1, arrays[name], nil
    end
    local want = layer.count or j
    if offset > 0 and (j == 0 or j ~= want) then
      fail("%s is damaged: layer %d has %d arrays, want %d", file, i - 1, j, math.max(want, 1))
    end
    if offset > 0 then layer.parts = parts end
  end
  local name = next(arrays)
  if name then fail("%s has %s, which no layer of the model has", file, name) end
  return self, about
end

return {Caches = Caches, traced = traced, load = load, path = path}
