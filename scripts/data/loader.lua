-- Loaders give a dataset in batches. They make the next batches while the script works on one: what a batch is computed
-- of, reading and decoding files too, is handed over to a stream of their own.
local mx, define, fail, use, core = ...

local rows = use("rows")

local Loader = {__name = "DataLoader"}

-- ahead calls f with the loaders' stream as the default.
local function ahead(f) return mx.stream(mx.data.stream(), f) end

local properties = {}

-- state is where the loader stands: the epochs that have ended, the batches of this one that were given, and the key
-- that this epoch's order comes from.
function properties.state(self)
  if self._last then return {epoch = self.epoch + 1, batch = 0, key = self:_next_key()} end
  return {epoch = self.epoch, batch = self.batch, key = self._key}
end

Loader.__index = function(self, name)
  if properties[name] then return properties[name](self) end
  return Loader[name]
end

Loader.__newindex = function(self, name, value)
  if name ~= "state" then return rawset(self, name, value) end
  if type(value) ~= "table" or type(value.epoch) ~= "number" or type(value.batch) ~= "number" then
    fail("DataLoader", "state is no state of a loader: a table with epoch and batch")
  end
  if (value.key ~= nil) ~= (self._key ~= nil) then
    fail("DataLoader", "state is of another loader: only one of both has a key")
  end
  self.epoch, self.batch, self._key, self._last, self._resumed = value.epoch, value.batch, value.key, false, true
end

-- size is the number of batches of an epoch: nil where only the end of an iterator tells.
function Loader:size()
  local n = self._source.n
  if not n then return nil end
  if self.last == "drop" then return math.floor(n / self.batch_size) end
  return math.ceil(n / self.batch_size)
end

-- Of an epoch's key are made that of its order, that of the next epoch, and that of its batches.
local function keys(key)
  local of = mx.random.split(key, 3)
  return of[0], of[1], of[2]
end

-- _next_key is the key of the next epoch.
function Loader:_next_key()
  if self._key then return (select(2, keys(self._key))) end
end

-- _next_epoch ends the epoch.
function Loader:_next_epoch()
  self.epoch, self.batch, self._key, self._last = self.epoch + 1, 0, self:_next_key(), false
end

-- spread gives the values of a batch: a list gives several.
local function spread(batch)
  if type(batch) == "table" and batch[1] ~= nil and type(batch[1]) ~= "string" then return unpack(batch) end
  return batch
end

-- _picks is a function that gives batch number at of this epoch and the number of samples of it.
function Loader:_picks()
  local source, size = self._source, self.batch_size
  local n, batches = source.n, self:size()
  local order
  if self.shuffle then order = mx.random.permutation(n, {key = (keys(self._key))}) end
  return function(at)
    if at >= batches then return nil, 0 end
    local first = at * size
    local own = math.min(size, n - first)
    local count = self.last == "pad" and size or own
    return source.batch(rows.new_pick(first, count, n, order)), own
  end
end

-- _samples is _picks of an iterator, which gives the batches one after the other.
function Loader:_samples()
  local size = self.batch_size
  local take = self._source.begin(self.epoch)
  return function()
    local batch, n = take(size)
    if self.last == "drop" and n < size then return nil, 0 end
    return batch, n
  end
end

-- _maker is a function that makes batch number at of this epoch, with transform, and the number of its samples.
function Loader:_maker()
  local make = self._source.n and self:_picks() or self:_samples()
  local transform = self.transform
  local function whole(at)
    local batch, n = make(at)
    if batch == nil or not transform then return batch, n end
    local values = {transform(spread(batch))}
    if values[1] == nil then
      fail("DataLoader", "transform gave nothing, want the values of a batch: does it return them?")
    end
    return #values == 1 and values[1] or values, n
  end
  if not self._draws then return whole end
  local _, _, base = keys(self._key)
  -- What functions of the script draw while a batch is made depends on the batch, not on how far ahead it is made.
  return function(at) return core.with_key(base + mx.array({0, at}, mx.uint32), whole, at) end
end

-- __call starts an epoch, or goes on in one that a state says: for x, y in loader() do ... end
function Loader.__call(self, ...)
  if select("#", ...) > 0 then -- as the iterator of a loop
    fail("DataLoader", "call the loader for each epoch: for x, y in loader() do ... end")
  end
  if not self._resumed and self.batch > 0 then self:_next_epoch() end -- the last loop was left early
  self._resumed, self._last = false, false
  local run, done = {}, false -- a second call of the loader ends the first one's epoch
  rawset(self, "_run", run)
  local batch_of, at = self:_maker(), self.batch
  if not self._source.n then
    for passed = 0, at - 1 do batch_of(passed) end -- what an iterator gave before
  end
  local queue, ended = {}, false
  local function make()
    local batch, n = batch_of(at)
    at = at + 1
    if batch == nil then
      ended = true
      return
    end
    queue[#queue + 1] = {batch, n}
    if self.prefetch > 0 then mx.async_eval(batch) end
  end
  local function fill()
    if self.prefetch == 0 and not ended and #queue == 0 then make() end
    while not ended and #queue < self.prefetch do ahead(make) end
  end
  fill()
  return function()
    if done then return nil end
    if self._run ~= run then
      fail("DataLoader", "another loop over this loader began within this one, which cannot go on: make a second one")
    end
    local entry = table.remove(queue, 1)
    if entry == nil then
      self:_next_epoch()
      rawset(self, "_run", nil)
      done = true
      return nil
    end
    fill()
    self.batch, self.valid, self._last = self.batch + 1, entry[2], #queue == 0
    return spread(entry[1])
  end
end

Loader.__tostring = function(self)
  return ("DataLoader(batch_size=%d, %s, epoch=%d, batch=%d)"):format(self.batch_size,
    self._source.n and self._source.n .. " samples" or "an iterator", self.epoch, self.batch)
end

-- fresh_key is a key drawn from the state's random numbers.
local function fresh_key() return mx.random.randint(0, 2 ^ 31 - 1, {2}, mx.uint32) end

local make = define{
  name = "DataLoader", class = Loader,
  sig = "dataset:any batch_size:int=1 shuffle:bool=false key:array? last:'keep'|'drop'|'pad'=keep prefetch:int=2 " ..
    "transform:function? collate_fn:function?",
  help = "Gives a dataset in batches: for x, y in loader() do ... end runs through one epoch. The dataset is a " ..
    "table of columns that have one row for each sample: arrays, lists of strings, objects such as " ..
    "mx.data.ImageFiles, tables of such; a batch is then the same table of their rows, and of a list {x, y} its " ..
    "values one by one. Or it is an object with the methods size() and get(i), i from 0; or a function that is " ..
    "called for each epoch and gives an iterator over samples, as function() return io.lines(file) end. Samples " ..
    "are put together by collate_fn, which is given a list of them and gives a batch, or its values: x, y; without " ..
    "it arrays are stacked, numbers become " ..
    "an array and strings a list. With shuffle each epoch has an order of its own, which depends on the key alone " ..
    "(without one the state's random numbers make it). last says what happens to a last batch that is not full: it " ..
    "is kept, dropped, or padded with the epoch's first samples; loader.valid is the number of the batch's own " ..
    "ones. transform(x, y) is called with a batch's values and gives others; what it draws, and what the dataset's " ..
    "functions draw, of mx.random depends on the key and the batch. prefetch batches are computed ahead on a " ..
    "stream of the loaders' own (files are read and decoded there); 0 computes nothing ahead. loader:size() is the " ..
    "number of batches; loader.state is where it stands, and to set it has the next loader() go on there.",
  call = function(dataset, batch_size, shuffle, key, last, prefetch, transform, collate_fn)
    if batch_size < 1 then fail("DataLoader", ("batch_size is %d, want at least 1"):format(batch_size)) end
    if prefetch < 0 then fail("DataLoader", ("prefetch is %d, want at least 0"):format(prefetch)) end
    local source = rows.source(dataset, collate_fn)
    if shuffle and not source.n then
      fail("DataLoader", "shuffle needs to know all samples, and the dataset is an iterator")
    end
    if last == "pad" and not source.n then
      fail("DataLoader", "last = \"pad\" needs the first samples again, and the dataset is an iterator")
    end
    local draws = transform ~= nil or rows.runs(dataset) -- functions of the script's, which may draw random numbers
    if key and not shuffle and not draws then
      fail("DataLoader", "key is given, and there is nothing random: shuffle is false, and there is no transform")
    end
    if (shuffle or draws) and not key then key = fresh_key() end
    return setmetatable({
      batch_size = batch_size, shuffle = shuffle, last = last, prefetch = prefetch, transform = transform, epoch = 0,
      batch = 0, _source = source, _key = key, _draws = draws, _resumed = false, _last = false,
    }, Loader)
  end,
}

setmetatable(Loader, {
  __call = function(_, ...) return make(...) end,
  __tostring = function() return "class DataLoader" end,
})

local Files = {}
Files.__index = Files

function Files:size() return #self.files end

function Files:batch(indices)
  local names = {}
  for i, k in ipairs(indices) do names[i] = self.files[k + 1] end
  return mx.data.load_image(names, self.channels, self.to)
end

define{
  name = "ImageFiles", sig = "files:strings channels:int? size:ints?",
  help = "The pictures in a list of PNG and JPEG files as a column of a dataset: DataLoader({ImageFiles(files), " ..
    "labels}, 32) gives uint8 arrays of shape (32, height, width, channels), as mx.data.load_image does, and reads " ..
    "ahead. The pictures of a batch have one size, which size, {height, width}, gives them.",
  call = function(files, channels, size)
    return setmetatable({files = files, channels = channels, to = size}, Files)
  end,
}
