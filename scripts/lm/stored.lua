-- What a model remembers of a prompt, as a .safetensors file: see lm.cache.
local mx = require("mx")

local stored = {}

local function fail(text, ...) error(("lm: " .. text):format(...), 0) end

-- path is the name of a file of a prompt: it ends in .safetensors.
function stored.path(file) return file:match("%.safetensors$") and file or file .. ".safetensors" end

-- save writes a Caches of one example to a file, with a table of strings beside.
function stored.save(self, file, metadata)
  self:resting()
  if self.padding then fail("a padded batch of prompts cannot be saved") end
  local arrays = {}
  for i, layer in ipairs(self.layers) do
    for j, x in ipairs(layer.parts or {}) do arrays[("%d.%d"):format(i - 1, j - 1)] = x end
  end
  arrays.tokens = self:past()
  local about = {offset = ("%d"):format(self.offset), layout = self:key(), long = self.long and "true" or nil}
  for k, v in pairs(metadata or {}) do about[k] = v end
  mx.save_safetensors(stored.path(file), arrays, about)
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

-- load fills a new Caches with what a file has, and gives the strings beside.
function stored.load(self, file)
  file = stored.path(file)
  local arrays, about = mx.load(file, {format = "safetensors", return_metadata = true})
  local offset, switch = tonumber(about.offset or ""), self.first[1].switch
  if not offset then fail("%s is no file of a prompt: it has no offset", file) end
  self.offset = offset
  self:settle()
  compare(file, self:key(), about.layout)
  if switch and offset > 0 then
    if not arrays.tokens or arrays.tokens.ndim ~= 2 or arrays.tokens:dim(1) ~= offset then
      fail("%s is damaged: it has no list of its %d tokens", file, offset)
    end
    self.seen, self.long, arrays.tokens = {arrays.tokens}, about.long == "true", nil
  end
  for i, layer in ipairs(self.layers) do
    local parts, j = {}, 0
    while arrays[("%d.%d"):format(i - 1, j)] do
      local name = ("%d.%d"):format(i - 1, j)
      j, parts[j + 1], arrays[name] = j + 1, arrays[name], nil
    end
    local want = layer.count or j
    if offset > 0 and (j == 0 and layer.count ~= 0 or j ~= want) then
      fail("%s is damaged: layer %d has %d arrays, want %d", file, i - 1, j, math.max(want, 1))
    end
    if offset > 0 then layer.parts = parts end
  end
  local name = next(arrays)
  if name then fail("%s has %s, which no layer of the model has", file, name) end
  return self, about
end

return stored
