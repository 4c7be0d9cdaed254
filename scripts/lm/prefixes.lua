-- What was read of texts before, for prompts that begin alike: the least recently used goes where bytes run short.
local mx = require("mx")

local Prefixes = {}
Prefixes.__index = Prefixes

-- new keeps so many bytes at most. Texts are used again at any length where the model's caches can forget their ends,
-- else only as a whole; chunk says that they are used at multiples of it only, and no further than they were read in
-- chunks, so that what is read does not depend on what was kept.
function Prefixes.new(most, chunk) return setmetatable({most = most, chunk = chunk, bytes = 0, list = {}}, Prefixes) end

local function shared(a, b)
  local n, most = 0, math.min(#a, #b)
  while n < most and a[n + 1] == b[n + 1] do n = n + 1 end
  return n
end

local function bytes(caches)
  local sum = 0
  for _, layer in ipairs(caches.layers) do
    for _, x in ipairs(layer.parts or {}) do sum = sum + x.nbytes end
  end
  return sum
end

-- usable is how much of an entry can stand for the beginning of a prompt: all but the last token of it at most.
local function usable(self, entry, prompt)
  local same = math.min(shared(entry.tokens, prompt), #prompt - 1)
  if self.chunk then
    same = math.min(same, entry.read)
    same = same - same % self.chunk
  end
  if same == #entry.tokens then return same end
  return entry.whole and 0 or same
end

-- find is a Caches of its own of the longest known beginning of a prompt, or nil.
function Prefixes:find(prompt)
  local best, most = nil, 0
  for _, entry in ipairs(self.list) do
    local same = usable(self, entry, prompt)
    if same > most then best, most = entry, same end
  end
  if not best then return nil end
  best.used = mx.clock()
  local caches = best.caches:copied()
  if not caches:trim(#best.tokens - most) then return nil end
  return caches
end

-- keep takes a Caches that has read tokens, of which the first `read` in chunks, and that nobody changes any more.
function Prefixes:keep(tokens, caches, read)
  local size = bytes(caches)
  if #tokens == 0 or size > self.most then return end
  local whole = not caches:copied():trim(1)
  for i = #self.list, 1, -1 do
    local entry = self.list[i]
    local same = shared(entry.tokens, tokens)
    -- one that begins as the new one does is of no more use, unless ends cannot be forgotten
    local covered = same == #entry.tokens and (not whole or same == #tokens) and entry.read <= read
    if covered then self:drop(i) end
  end
  while self.bytes + size > self.most do
    local oldest = 1
    for i, entry in ipairs(self.list) do
      if entry.used < self.list[oldest].used then oldest = i end
    end
    self:drop(oldest)
  end
  self.bytes = self.bytes + size
  table.insert(self.list, {tokens = tokens, caches = caches, bytes = size, used = mx.clock(), read = read,
    whole = whole})
end

function Prefixes:drop(i) self.bytes = self.bytes - table.remove(self.list, i).bytes end

return Prefixes
