-- What the tokens of a call may see of those before, and where a step puts what it adds: methods of lm.cache's Caches.
local mx = require("mx")

local function fail(text, ...) error(("lm: " .. text):format(...), 0) end

local function remembered(self, key, make)
  if self.memo[key] == nil then self.memo[key] = make() or false end
  return self.memo[key] or nil
end

return function(Caches)

-- mask is what the queries of a call may see, at rest: positions 0..first-1 and from... are kept before them.
function Caches:mask(kv, length, first, from)
  local n, padding, window, keep = self.offset, self.padding, kv.window, kv.keep
  local inside = not window or n + length <= window
  if not padding and (length == 1 and not kv.chunk or inside) then return length > 1 and "causal" or nil end
  return remembered(self, ("%s %d %s"):format(window or 0, keep, kv.chunk or 0), function()
    local at = mx.arange(from, n + length)
    if first > 0 then at = mx.concatenate({mx.arange(first), at}) end
    local q = mx.expand_dims(mx.arange(n, n + length), 1)
    local sees = mx.less_equal(at, q)
    if not inside then
      local near = mx.greater(at, q - (window - keep))
      if keep > 0 then near = mx.logical_or(near, mx.less(at, keep)) end
      sees = mx.logical_and(sees, near)
    end
    if kv.chunk then sees = mx.logical_and(sees, self:same_chunk(kv, at, q)) end
    if padding then sees = mx.logical_and(sees, mx.greater_equal(at, mx.expand_dims(padding, {1, 2, 3}))) end
    return sees
  end)
end

-- same_chunk says whether the positions at are in the chunk of q or later; those of each example count without padding.
function Caches:same_chunk(kv, at, q)
  local before = self.padding and mx.expand_dims(self.padding, {1, 2, 3}) or 0
  return mx.greater_equal(at - before, mx.floor_divide(q - before, kv.chunk) * kv.chunk)
end

-- slot is where the token of a step goes in a room: one place, or one for each row of lm.rows.
function Caches:slot(kv)
  return remembered(self, ("slot %s %d"):format(kv.window or 0, kv.keep), function()
    local n = self.slots or self.offset
    if kv.window then
      local turned = kv.keep + mx.remainder(n - kv.keep, kv.window - kv.keep)
      n = kv.keep > 0 and mx.where(mx.less(n, kv.keep), n, turned) or turned
    end
    return mx.reshape(n, {-1})
  end)
end

-- place puts what a step adds, x, into a room, and gives the room and what of it the step's tokens may see.
function Caches:place(kv, room, x)
  room = mx.slice_update(room, x, self:slot(kv), {2})
  return room, room
end

-- now is the position of a step's tokens: a number without dimensions, or with rows of their own (rows, 1, 1, 1).
function Caches:now()
  return self.slots and mx.expand_dims(self.offset, {1, 2, 3}) or self.offset
end

-- room_mask is what the token of a step may see in a room: each slot's position is the last that went there.
function Caches:room_mask(kv, length, room)
  if length ~= 1 then fail("a compiled step takes one token of each example, not %d", length) end
  return remembered(self, ("room %s %d %s"):format(kv.window or 0, kv.keep, kv.chunk or 0), function()
    local n = self:now()
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
    if sees.ndim == 1 then sees = mx.expand_dims(sees, {0, 1, 2}) end
    if kv.chunk then sees = mx.logical_and(sees, self:same_chunk(kv, at, n)) end
    if not self.padding then return sees end
    return mx.logical_and(sees, mx.greater_equal(at, mx.expand_dims(self.padding, {1, 2, 3})))
  end)
end

end
