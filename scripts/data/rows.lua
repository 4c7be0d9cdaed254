-- What a loader takes its batches from. A source has n, the number of its samples (nil: not known before the end), and
-- batch(pick), the values of a batch. A pick says which samples: pick:list() are their numbers from 0 on, pick:array()
-- the same as an array; where they follow each other, pick.range is such as "4:8".
local mx, _, fail, _, core = ...

local is_array = core.is_array

local Pick = {}
Pick.__index = Pick

-- new_pick is the pick of count samples from place first on, of n in an order (nil: as they stand); behind the last one
-- comes the first one again.
local function new_pick(first, count, n, order)
  local range
  if order == nil and first + count <= n then range = ("%d:%d"):format(first, first + count) end
  return setmetatable({first = first, count = count, n = n, order = order, range = range}, Pick)
end

function Pick:array()
  local places = mx.arange(self.first, self.first + self.count)
  if self.first + self.count > self.n then places = mx.remainder(places, self.n) end
  if self.order then return mx.take(self.order, places) end
  return places
end

function Pick:list()
  local out = self:array():tolist()
  return out
end

-- Leaves: a column of samples is an array, a list of strings, or an object with size() and batch(indices).

local function array_column(x)
  return {n = x.shape[1], batch = function(pick)
    if pick.range then return x[pick.range] end
    return mx.take(x, pick:array(), 0)
  end}
end

local function text_column(texts)
  return {n = #texts, batch = function(pick)
    local out = {}
    for i, k in ipairs(pick:list()) do out[i] = texts[k + 1] end
    return out
  end}
end

-- samples_of is the number of samples of an object.
local function samples_of(object)
  local n = object:size()
  if type(n) ~= "number" or n < 0 or n % 1 ~= 0 then
    fail("DataLoader", ("size() gave %s, want the number of samples"):format(tostring(n)))
  end
  return n
end

local function object_column(object)
  return {n = samples_of(object), batch = function(pick) return object:batch(pick:list()) end}
end

-- column is the source of one value of a batch, or nil for a table of columns.
local function column(v, path)
  if is_array(v) then
    if v.ndim == 0 then fail("DataLoader", path .. " is an array without dimensions, want one row for each sample") end
    return array_column(v)
  elseif type(v) ~= "table" then
    fail("DataLoader", ("%s is a %s, want an array, a list of strings, or a table of such"):format(path, mx.type(v)))
  elseif type(v.batch) == "function" and type(v.size) == "function" then
    return object_column(v)
  elseif type(v[1]) == "string" then
    return text_column(v)
  end
end

-- columns is the source of a tree of columns, which all have as many rows.
local function columns(tree, path)
  local leaf = column(tree, path)
  if leaf then return leaf end
  local parts, n, first = {}, nil, nil
  for k, v in pairs(tree) do
    local name = path .. "." .. tostring(k)
    local part = columns(v, name)
    if n and part.n ~= n then
      fail("DataLoader", ("%s has %d samples, %s has %d"):format(name, part.n, first, n))
    end
    parts[k], n, first = part, part.n, name
  end
  if n == nil then fail("DataLoader", path .. " is an empty table") end
  return {n = n, batch = function(pick)
    local out = {}
    for k, part in pairs(parts) do out[k] = part.batch(pick) end
    return out
  end}
end

-- stack is the batch that a list of samples makes: arrays are stacked, numbers and booleans become an array, strings a
-- list, tables one of batches.
local function stack(samples)
  local first = samples[1]
  if is_array(first) then return mx.stack(samples, 0) end
  if type(first) == "number" or type(first) == "boolean" then return mx.array(samples) end
  if type(first) ~= "table" then return samples end
  for i, one in ipairs(samples) do
    if type(one) ~= "table" then
      fail("DataLoader", ("sample %d of a batch is a %s, sample 0 a table"):format(i - 1, mx.type(one)))
    end
    for k in pairs(one) do
      if first[k] == nil then
        fail("DataLoader", ("sample 0 of a batch has no %s, sample %d has one"):format(tostring(k), i - 1))
      end
    end
  end
  local out = {}
  for k in pairs(first) do
    local values = {}
    for i, sample in ipairs(samples) do
      values[i] = sample[k]
      if values[i] == nil then fail("DataLoader", ("sample %d of a batch has no %s"):format(i - 1, tostring(k))) end
    end
    out[k] = stack(values)
  end
  return out
end

-- sample is what a function gave for one sample: several values are a list.
local function sample(...)
  if select("#", ...) > 1 then return {...} end
  return (...)
end

-- together makes a batch of samples.
local function together(collate, samples)
  if not collate then return stack(samples) end
  local batch = sample(collate(samples))
  if batch == nil then fail("DataLoader", "collate_fn gave nothing, want a batch: does it return one?") end
  return batch
end

-- items is the source of an object with size() and get(i).
local function items(object, collate)
  return {n = samples_of(object), batch = function(pick)
    local samples = {}
    for i, k in ipairs(pick:list()) do
      samples[i] = sample(object:get(k))
      if samples[i] == nil then
        fail("DataLoader", ("get(%d) gave nothing, want a sample: they are counted from 0"):format(k))
      end
    end
    return together(collate, samples)
  end}
end

-- stream is the source of a function that gives an iterator over samples for each epoch: batches come in their order.
local function stream(make, collate)
  local source = {}
  -- begin starts an epoch; next_batch(count) gives a batch and its number of samples, nil at the end.
  function source.begin(epoch)
    local iterator, state, control = make(epoch)
    if type(iterator) ~= "function" then
      fail("DataLoader", ("dataset() gave a %s, want an iterator: a function"):format(mx.type(iterator)))
    end
    local function step(...)
      control = ...
      if control == nil then return nil end
      return sample(...)
    end
    return function(count)
      local samples = {}
      while #samples < count and iterator do
        local s = step(iterator(state, control))
        if s == nil then iterator = nil else samples[#samples + 1] = s end
      end
      if #samples == 0 then return nil, 0 end
      return together(collate, samples), #samples
    end
  end
  return source
end

-- runs reports whether a dataset's samples are made by functions of the script.
local function runs(dataset)
  return type(dataset) == "function" or type(dataset) == "table" and type(dataset.get) == "function"
end

local function source(dataset, collate)
  if type(dataset) == "function" then return stream(dataset, collate) end
  if type(dataset) == "table" and type(dataset.get) == "function" and type(dataset.size) == "function" then
    return items(dataset, collate)
  end
  if collate then
    fail("DataLoader", "collate_fn makes batches of single samples: the dataset is a table of columns")
  end
  return columns(dataset, "dataset")
end

return {source = source, runs = runs, new_pick = new_pick}
