-- Several texts that are gone on with together, each in a row of its own: what lm.cache is to one text. A row comes
-- with what was read of it, takes a token at each step, and leaves when its text is done; the others notice nothing.
--
-- Keys and values lie in rooms (places, heads, size, ...): row i is example i of each, and its tokens begin at slot 0,
-- so that texts of all lengths have their places alike, and what a row may see does not depend on others. Rooms
-- have more places than there are rows: a row that comes is written where it goes, and one that leaves gives its place
-- to the last one; no other row is moved. States of recurrent layers are made anew then: they do not grow.
local mx, nn = require("mx"), require("mx.nn")
local cache = require("lm.cache")

local step = 256 -- tokens by which rooms grow

local function fail(text, ...) error(("lm: " .. text):format(...), 0) end

local Rows = nn.class("Rows")

-- View is a traced Caches whose examples are at positions of their own: slots are those of all rows of the rooms, of
-- which the first `count` take part.
local View = nn.class("View", cache.Caches)

function View:init(layout, tree, count, long)
  cache.Caches.init(self, layout)
  self.traced, self.long, self.slots, self.count = true, long, tree.slots, count
  self.offset = tree.slots:index("0:" .. count)
  for i, layer in ipairs(self.layers) do layer.parts = tree.layers[i] end
end

-- place puts what a step adds into the rooms: rows that take no part get zeros, at the slot where their texts begin.
function View:place(kv, room, x)
  local rest = self.slots:dim(0) - self.count
  if rest > 0 then
    x = mx.concatenate({x, mx.zeros(mx.dims(rest, {x, 1}, {x, 2}, {x, 3}), x.dtype)}, 0)
  end
  room = self.put(room, x, mx.expand_dims(self:slot(kv), 1))
  return room, rest > 0 and room:index("0:" .. self.count) or room
end

View.put = mx.vmap(function(room, x, slot) return mx.slice_update(room, x, slot, {1}) end)

-- init: model is one of lm.load's, most how many rows there may be. Options: kv_bits and kv_group_size, as lm.caches
-- has them; long says that the texts are beyond the layout's switch: see lm.cache; fixed is a size of rooms that does
-- not change.
function Rows:init(model, most, options)
  self.model, self.most, self.options, self.long = model, most, options, options.long or false
  self.count, self.places, self.size, self.offsets, self._steps = 0, 0, 0, {}, {}
  local probe = self:fresh()
  model(mx.zeros({1, 1}, mx.int32), probe)
  mx.eval(probe:arrays())
  self.layout, self.shapes, self.layers = probe.layout, {}, {}
  self.state_bytes, self.token_bytes, self.windows = 0, 0, {}
  for i, layer in ipairs(probe.layers) do
    self.shapes[i] = {}
    for j, x in ipairs(layer.parts or {}) do
      self.shapes[i][j] = {x.shape, x.dtype}
      if self.layout[i].kind == "state" then
        self.state_bytes = self.state_bytes + x.nbytes
      elseif layer.window then
        self.windows[layer.window] = (self.windows[layer.window] or 0) + x.nbytes
      else
        self.token_bytes = self.token_bytes + x.nbytes
      end
    end
  end
end

-- fresh is a Caches for a text that is to be a row, in which nothing was read.
function Rows:fresh()
  local o = self.options
  return require("lm").caches(self.model, {kv_bits = o.kv_bits, kv_group_size = o.kv_group_size})
end

-- rounded is the size of rooms for texts of so many tokens.
function Rows:rounded(tokens) return self.options.fixed or math.ceil(tokens / step) * step end

-- bytes are what rooms for so many rows, each of that many tokens, take.
function Rows:bytes(rows, tokens)
  local size = self:rounded(tokens)
  local sum = size * self.token_bytes
  for window, bytes in pairs(self.windows) do sum = sum + math.min(window, size) * bytes end
  return self:many(rows) * sum + rows * self.state_bytes
end

-- many is how many places rooms for so many rows have.
function Rows:many(rows)
  local places = 1
  while places < rows do places = 2 * places end
  return math.min(places, self.most)
end

local function recurrent(self, i) return self.layout[i].kind == "state" end

-- zeros are a layer's part without tokens, for so many rows.
local function zeros(self, i, j, rows)
  local shape, dtype = unpack(self.shapes[i][j])
  shape = {unpack(shape)}
  shape[1] = rows
  if not recurrent(self, i) then
    local window = self.layout[i].window
    shape[3] = window and math.min(window, self.size) or self.size
  end
  return mx.zeros({unpack(shape)}, dtype)
end

-- fit makes rooms for so many rows, each of that many tokens: larger ones where those that there are do not do, smaller
-- ones where least says so. What rows have seen is copied, a layer at a time.
function Rows:fit(rows, tokens, least)
  local places, size = self:many(math.max(rows, self.count)), self:rounded(tokens)
  for i = 1, self.count do size = math.max(size, self:rounded(self.offsets[i] + 1)) end
  if not least then places, size = math.max(places, self.places), math.max(size, self.size) end
  if places == self.places and size == self.size then return end
  self.places, self.size = places, size
  for i in ipairs(self.layout) do
    local parts = self.layers[i] or {}
    for j in ipairs(self.shapes[i]) do
      if not recurrent(self, i) then
        local room = zeros(self, i, j, places)
        local kept = parts[j]
        if kept and self.count > 0 then
          kept = mx.contiguous(kept:index(("0:%d"):format(self.count), ":", "0:" .. math.min(kept:dim(2), room:dim(2))))
          room = mx.slice_update(room, kept, mx.zeros({4}, mx.int32), {0, 1, 2, 3})
        end
        parts[j] = room
        mx.eval(room)
      end
    end
    self.layers[i] = parts
  end
  mx.clear_cache()
end

-- join makes a row of a text of which caches have read what is before its next token; room is how long it may become.
-- It gives the row's number.
function Rows:join(caches, room)
  if self.count >= self.most then fail("there are %d rows, and no more places", self.most) end
  local n = caches.offset
  self:fit(self.count + 1, math.max(room, n + 1))
  caches:resting()
  local at = mx.array({self.count}, mx.int32)
  local one = cache.Caches(self.layout) -- whose rooms are made of what caches keep; they stay as they are
  for i, layer in ipairs(one.layers) do
    local parts = caches.layers[i].parts or {}
    layer.parts = {}
    for j in ipairs(self.shapes[i]) do layer.parts[j] = parts[j] or zeros(self, i, j, 1) end
    if not recurrent(self, i) then
      if n > 0 and #layer.parts > 0 then layer:room(n, self.size) end
      for j, x in ipairs(layer.parts) do
        self.layers[i][j] = mx.slice_update(self.layers[i][j], x, at, {0})
      end
    else
      for j, x in ipairs(layer.parts) do
        x = x:astype(self.shapes[i][j][2])
        self.layers[i][j] = self.count > 0 and mx.concatenate({self.layers[i][j], x}, 0) or x
      end
    end
    mx.eval(self.layers[i])
  end
  self.count = self.count + 1
  self.offsets[self.count] = n
  return self.count
end

-- taken is a Caches of what a row has read, at rest, in arrays of its own.
function Rows:taken(row)
  local out, n = self:fresh(), self.offsets[row]
  out.layout, out.packing = self.layout, nil
  out.offset, out.long = n, self.long
  for i, kept in ipairs(self.layers) do
    local layer = cache.Caches({self.layout[i]}).layers[1]
    layer.parts = {}
    for j, x in ipairs(kept) do layer.parts[j] = x:index(("%d:%d"):format(row - 1, row)) end
    if not recurrent(self, i) and #layer.parts > 0 then layer:rest(n) end
    for j, x in ipairs(layer.parts) do layer.parts[j] = mx.contiguous(x) end
    mx.eval(layer.parts)
    out.layers[i] = layer
  end
  return out
end

-- leave gives a row up: the last one has its number from then on, which is what it gives; nil: it was the last.
function Rows:leave(row)
  local last = self.count
  for i, parts in ipairs(self.layers) do
    for j, x in ipairs(parts) do
      if recurrent(self, i) then
        local rest = {}
        for k = 0, last - 2 do rest[k + 1] = k == row - 1 and last - 1 or k end
        parts[j] = #rest > 0 and mx.take(x, mx.array(rest, mx.int32), 0) or nil
      elseif row < last then
        local moved = mx.contiguous(x:index(("%d:%d"):format(last - 1, last)))
        mx.eval(moved)
        x = nil
        parts[j] = mx.slice_update(parts[j], moved, mx.array({row - 1}, mx.int32), {0})
      end
      if parts[j] then mx.eval(parts[j]) end
    end
  end
  self.offsets[row] = self.offsets[last]
  self.offsets[last] = nil
  self.count = last - 1
  return row < last and last or nil
end

-- step takes the next token of each row, and gives scores (rows, vocabulary) after them and the best tokens (rows).
function Rows:step(tokens)
  local n = self.count
  local slots, longest = {}, 0
  for i = 1, n do longest = math.max(longest, self.offsets[i]) end
  self:fit(n, longest + 1)
  for i = 1, self.places do slots[i] = self.offsets[i] or 0 end
  local key = ("%d %d"):format(n, self.places)
  local run = self._steps[key]
  if not run then
    local model, layout, long = self.model, self.layout, self.long
    run = mx.compile(function(y, tree)
      local view = View(layout, tree, n, long)
      local scores = mx.squeeze(model(mx.expand_dims(y, 1), view), 1)
      return scores, mx.argmax(scores, -1), view:tree()
    end, {shapeless = true})
    self._steps[key] = run
  end
  local scores, best, tree = run(mx.array(tokens, mx.int32), {slots = mx.array(slots, mx.int32), layers = self.layers})
  self.layers = tree.layers
  mx.async_eval(scores, best, self.layers)
  for i = 1, n do self.offsets[i] = self.offsets[i] + 1 end
  return scores, best
end

return Rows
