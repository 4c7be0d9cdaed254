-- What a model remembers of the tokens before: keys and values of attention layers, states of recurrent ones.
--
-- A Caches object has one entry for each layer, and how many tokens it has seen. At rest, between calls of a model, its
-- arrays hold just what was seen. For decoding under mx.compile they are rooms with space for more (see room), which
-- grow by steps; then offset is an array, so that one trace serves all positions, and no shape depends on it.
local mx, nn = require("mx"), require("mx.nn")
local kinds, stored, masks = require("lm.memory"), require("lm.stored"), require("lm.masks")

local step, chunk = 256, 2048 -- tokens by which rooms grow, and of which a text is read again at once

local function fail(text, ...) error(("lm: " .. text):format(...), 0) end

local Caches = nn.class("Caches")

-- init: layout has a table for each layer: {kind = "kv", window, keep, chunk}, {kind = "packed", group_size, bits},
-- {kind = "latent", rank}, {kind = "packed_latent", rank, group_size, bits}, {kind = "state"}, {kind = "none"} or
-- {kind = "borrowed", of}, which asks the keys and values of layer `of`, a kv that is lent. padding says how many
-- tokens at the left of each example of a batch are none: {2, 0, 5}. packing, {bits, group_size, start}, packs keys and
-- values once `start` tokens were seen. layout.switch and layout.longest say what depends on the length of a text: see
-- ready.
function Caches:init(layout, padding, packing)
  self.layout, self.offset, self.layers, self.size, self.packing = layout, 0, {}, 0, packing
  self.first = {layout, padding, packing and {bits = packing.bits, group_size = packing.group_size,
    start = packing.start}}
  self.least, self.long, self.seen = padding and math.min(unpack(padding)) or 0, false, {}
  for i, kind in ipairs(layout) do self.layers[i] = kinds[kind.kind](kind) end
  if padding and math.max(unpack(padding)) > 0 then self.padding = mx.array(padding, mx.int32) end
  self:settle()
end

-- packed is a kind of layer with its keys and values packed, nil for one that has none.
local function packed(kind, how)
  local name = ({kv = "packed", latent = "packed_latent"})[kind.kind]
  return name and {kind = name, window = kind.window, keep = kind.keep, rank = kind.rank, lent = kind.lent,
    chunk = kind.chunk, bits = how.bits, group_size = how.group_size}
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

-- past are all tokens that were seen, (batch, length). Only models whose layout has a switch need them.
function Caches:past()
  if #self.seen > 1 then self.seen = {mx.concatenate(self.seen, 1)} end
  return self.seen[1]
end

-- ready sees to it, before a model is called with so many tokens more, that what is kept is what the text of that
-- length makes of its tokens: those of a text beyond layout.switch are turned by other wavelengths, so that at the
-- switch the text is read again. Beyond layout.longest that would be so at each token: such a text can be read at once,
-- and is not gone on with. expected is the length to which a text is read in parts.
function Caches:ready(model, more)
  local total = math.max(self.offset + more - self.least, self.expected or 0)
  local longest, switch, most = self.first[1].longest, self.first[1].switch, self.first[1].most
  if most and total > most then fail("a text of %d tokens, where the model has positions for %d", total, most) end
  if longest and self.offset > 0 and total > longest then
    fail("beyond max_position_embeddings = %d tokens each further one turns all others anew (rope_type dynamic): a %s",
      longest, ("text of %d is read at once, and not gone on with"):format(total))
  end
  if not switch or (total > switch) == self.long then return end
  local long, expected = total > switch, self.expected
  local again = self.offset > 0 and self:past()
  if again then
    if not model then fail("past %d tokens the text is read again: want caches:start(tokens, model)", switch) end
    Caches.init(self, unpack(self.first, 1, 3))
  end
  self.long, self.expected = long, total
  for from = 0, again and again:dim(1) - 1 or -1, chunk do
    model(again:index(":", ("%d:%d"):format(from, math.min(from + chunk, again:dim(1)))), self)
    mx.eval(self:arrays())
    mx.clear_cache()
  end
  self.expected = expected
end

-- start is called by a model before its layers, done after them.
function Caches:start(tokens, model)
  local length = tokens:dim(1)
  if not self.traced then self:ready(model, length) end
  self:settle()
  if not self.traced then
    self:remember(tokens)
    self.total = self.offset + length - self.least
  end
  self.length, self.memo = length, {}
end

-- remember keeps tokens (batch, length) for past.
function Caches:remember(tokens)
  if self.first[1].switch then self.seen[#self.seen + 1] = tokens end
end

function Caches:done()
  self.offset = self.offset + self.length
  for _, layer in ipairs(self.layers) do layer.call = nil end
end

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

masks(Caches)

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

-- advance takes the tree that a step of one token of each example gave, and those tokens.
function Caches:advance(tree, tokens)
  self:remember(mx.expand_dims(tokens, 1))
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
  local longest = self.first[1].longest
  if self.padding or count > self.offset or longest and self.offset > longest then return false end
  for _, layer in ipairs(self.layers) do
    if not layer:trim(self.offset, 0) then return false end
  end
  for _, layer in ipairs(self.layers) do layer:trim(self.offset, count) end
  self.offset = self.offset - count
  local past = self:past()
  if past then self.seen = {past:index(":", "0:" .. self.offset)} end
  return true
end

-- copied is another Caches of the same tokens, at rest: to go on with one changes nothing of the other.
function Caches:copied()
  self:resting()
  local out = Caches(unpack(self.first, 1, 3))
  out.layout, out.packing, out.offset, out.long = self.layout, self.packing, self.offset, self.long
  out.seen = {unpack(self.seen)}
  for i, layer in ipairs(self.layers) do
    out.layers[i] = kinds[self.layout[i].kind](self.layout[i])
    out.layers[i].parts = layer.parts and {unpack(layer.parts)}
  end
  return out
end

-- arrays are all arrays, for mx.eval.
function Caches:arrays()
  local out = {}
  for i, layer in ipairs(self.layers) do out[i] = layer.parts or {} end
  return out
end

-- traced is a Caches in a trace, over a tree of decoding's; long says whether the text is beyond the layout's switch.
local function traced(layout, tree, long)
  local self = Caches(layout)
  self.traced, self.offset, self.padding, self.long = true, tree.offset, tree.padding, long
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
  for _, name in ipairs{"window", "keep", "rank", "bits", "group_size", "of", "chunk"} do
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

-- save writes a Caches of one example to a .safetensors file, with a table of strings beside; load reads it.
function Caches:save(file, metadata) stored.save(self, file, metadata) end

local function load(layout, file, packing) return stored.load(Caches(layout, nil, packing), file) end

return {Caches = Caches, traced = traced, load = load, path = stored.path}
