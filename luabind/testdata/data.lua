-- mx.data: loaders, CSV, IDX and pictures. The files are Python's: tensor/format/testdata/make_csv.py,
-- internal/picture/testdata/make.py.
local mx = require("mx")
local data = require("mx.data")
local DataLoader = data.DataLoader
local tables, pictures = "../tensor/format/testdata/", "../internal/picture/testdata/"

local function collect(loader)
  local out = {}
  for x in loader() do
    for _, v in ipairs(x:tolist()) do out[#out + 1] = v end
  end
  return out
end

local function text(list) return table.concat(list, " ") end

-- Batches stand in order; the last one is kept, dropped or padded with the first samples.
local x = mx.arange(10)
for prefetch = 0, 3 do
  local sizes, seconds = {}, {}
  for a, b in DataLoader({x, {x * 10, x:astype(mx.float32)}}, 4, {prefetch = prefetch})() do
    sizes[#sizes + 1] = #a
    seconds[#seconds + 1] = b[1][0]:item()
    dtype(b[2], "float32")
  end
  assert(text(sizes) == "4 4 2" and text(seconds) == "0 40 80")
end
assert(text(collect(DataLoader(x, 4, {last = "drop"}))) == "0 1 2 3 4 5 6 7")
assert(text(collect(DataLoader(x, 4, {last = "pad"}))) == "0 1 2 3 4 5 6 7 8 9 0 1")
assert(text(collect(DataLoader(mx.arange(2), 5, {last = "pad"}))) == "0 1 0 1 0")
assert(#collect(DataLoader(mx.arange(2), 5, {last = "drop"})) == 0)
local loader = DataLoader(x, 4, {last = "pad"})
local valid = {}
for _ in loader() do valid[#valid + 1] = loader.valid end
assert(text(valid) == "4 4 2" and loader:size() == 3 and DataLoader(x, 4, {last = "drop"}):size() == 2)
assert(tostring(loader) == "DataLoader(batch_size=4, 10 samples, epoch=1, batch=0)", tostring(loader))
local names = {}
for batch in DataLoader({x = x, name = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"}}, 3)() do
  names[#names + 1] = batch.name[1] .. batch.x[0]:item()
end
assert(text(names) == "a0 d3 g6 j9")

-- One key gives one order; each epoch has its own; all samples come once.
local function shuffled(key, more)
  local o = {shuffle = true, key = key}
  for k, v in pairs(more or {}) do o[k] = v end
  return DataLoader(x, 4, o)
end
local first, second = shuffled(mx.random.key(1)), shuffled(mx.random.key(1), {prefetch = 0})
local orders = {}
for epoch = 1, 3 do
  local order = collect(first)
  assert(text(order) == text(collect(second)))
  orders[epoch] = text(order)
  table.sort(order)
  assert(text(order) == "0 1 2 3 4 5 6 7 8 9")
end
assert(orders[1] ~= orders[2] and orders[2] ~= orders[3])
assert(text(collect(shuffled(mx.random.key(2)))) ~= orders[1])
mx.random.seed(5)
local order = text(collect(shuffled()))
mx.random.seed(5)
assert(order == text(collect(shuffled())))

-- A loader goes on where a state says, also at an epoch's end; one that was left early begins the next epoch.
for stop = 1, 7 do
  local whole, parts = shuffled(mx.random.key(3)), {}
  local half = shuffled(mx.random.key(3))
  local function run(l, n)
    while n > 0 do
      for batch in l() do
        parts[#parts + 1] = text(batch:tolist())
        n = n - 1
        if n == 0 then break end
      end
    end
  end
  run(whole, 7)
  local want = table.concat(parts, ";")
  parts = {}
  run(half, stop)
  local other = shuffled(mx.random.key(9), {prefetch = 0})
  other.state = half.state
  run(other, 7 - stop)
  assert(table.concat(parts, ";") == want, stop)
  assert(other.state.epoch == whole.state.epoch and other.state.batch == whole.state.batch)
end
local left = shuffled(mx.random.key(1))
for _ in left() do break end
assert(text(collect(left)) == orders[2])

-- Iterators, single samples, transform and collate_fn.
local function count(n)
  return function()
    local i = 0
    return function()
      i = i + 1
      if i <= n then return i, "s" .. i end
    end
  end
end
local got = {}
loader = DataLoader(count(5), 2)
for n, s in loader() do got[#got + 1] = text(n:tolist()) .. text(s) end
assert(text(got) == "1 2s1 s2 3 4s3 s4 5s5" and loader.epoch == 1 and loader:size() == nil)
for _ in loader() do break end
local state = loader.state
loader = DataLoader(count(5), {batch_size = 2, last = "drop", prefetch = 0})
loader.state = state
for n in loader() do got[#got + 1] = text(n:tolist()) end
assert(got[#got] == "3 4" and loader.epoch == 2)
local squares = {}
function squares:size() return 5 end
function squares:get(i) return {i = i, square = mx.array({i * i, -i})} end
local batch = DataLoader(squares, 3)()()
same(batch.square, {{0, 0}, {1, -1}, {4, -2}})
same(batch.i, {0, 1, 2})
local sums = DataLoader(squares, 2, {collate_fn = function(s) return s[1].i + 10 * #s end})
assert(sums()() == 20)
local half = DataLoader({x, x}, 4, {transform = function(a, b) return a / 2, b + 1 end})
local a, b = half()()
same(a, {0, 0.5, 1, 1.5})
same(b, {1, 2, 3, 4})
local lines = {}
for batch in DataLoader(function() return io.lines("testdata/data.lua") end, 2)() do lines[#lines + 1] = batch[2] end
assert(lines[1] == "-- internal/picture/testdata/make.py.")

-- What transform draws depends on the key and the batch, not on what is made ahead, nor on the script's own numbers.
local function uniform(v) return v + mx.random.uniform({shape = {#v}}) end
local function noisy(prefetch, state)
  local l = DataLoader(x, 4, {key = mx.random.key(4), prefetch = prefetch, transform = uniform})
  if state then l.state = state end
  return l
end
mx.random.seed(7)
local drawn = collect(noisy(0))
mx.random.seed(7)
local own = mx.random.uniform():item()
mx.random.seed(7)
local ahead = noisy(3)
assert(text(collect(ahead)) == text(drawn) and text(collect(ahead)) ~= text(drawn))
assert(mx.random.uniform():item() == own)
loader = noisy(3)
for _ in loader() do break end
assert(text(collect(noisy(1, loader.state))) == text({unpack(drawn, 5)}))
fails("no luck", function() DataLoader(x, 4, {transform = function() error("no luck") end})() end)

fails("[data.DataLoader] dataset.2 has 3 samples, dataset.1 has 10", DataLoader, {x, mx.arange(3)})
fails("[data.DataLoader] dataset.1 is an array without dimensions", DataLoader, {mx.array(1)})
fails("[data.DataLoader] dataset.a is a number, want an array", DataLoader, {a = 3})
fails("[data.DataLoader] dataset is an empty table", DataLoader, {})
fails("[data.DataLoader] batch_size is 0", DataLoader, x, 0)
fails("[data.DataLoader] prefetch is -1", DataLoader, x, 1, {prefetch = -1})
fails("last is the string \"cut\"", DataLoader, x, 1, {last = "cut"})
fails("shuffle needs to know all samples", DataLoader, count(2), 1, {shuffle = true})
fails("needs the first samples again", DataLoader, count(2), 1, {last = "pad"})
fails("key is given, and there is nothing random", DataLoader, x, 1, {key = mx.random.key(0)})
fails("collate_fn makes batches of single samples", DataLoader, x, 1, {collate_fn = print})
fails("for x, y in loader() do", function() for _ in DataLoader(x) do end end)
fails("want an iterator", DataLoader(function() return 3 end))
fails("state is no state", function() left.state = {} end)
fails("only one of both has a key", function() left.state = {epoch = 0, batch = 0} end)
fails("sample 1 of a batch has no b", DataLoader({size = function() return 2 end, get = function(_, i)
  return i == 0 and {a = 1, b = 2} or {a = 1}
end}, 2))

-- CSV as Python reads it, and of it batches.
local columns, header = data.load_csv(tables .. "table.csv")
assert(table.concat(header, "|") == "name|size, in m|count|big|ok|note|ratio")
same(columns.count, {3, -7, 0, 2147483647})
dtype(columns.big, "int64")
same(columns.ok, {true, false, true, false})
assert(columns.name[1] == 'Ä "quoted"' and columns.note[1] == "two\nlines" and #columns.note == 4)
same(mx.isnan(columns.ratio), {false, true, false, true})
local typed = data.load_csv(tables .. "table.csv", {types = {count = mx.float64, big = "string"}})
assert(tostring(typed.count.dtype) == "float64" and typed.big[1] == "1099511627776")
for batch in DataLoader(columns, 3, {last = "drop"})() do
  same(batch.count, {3, -7, 0})
  assert(batch.name[3] == "a,b")
end
local file = os.tmpname()
local function write(s)
  local f = io.open(file, "wb")
  f:write(s)
  f:close()
end
write("1;2\n3;-\n")
local list = data.load_csv(file, {header = false, delimiter = ";", missing = {"-"}, types = {mx.int8}})
dtype(list[1], "int8")
same(list[1], {1, 3})
same(list[2], {2, 0 / 0})
write("a,b\n1,2\n3,x\n")
fails("line 3, column 3: \"x\" is no float32", data.load_csv, file, {types = {b = mx.float32}})
fails("[data.load_csv] " .. file .. ": line 3, column 3", data.load_csv, file, {types = {b = mx.float32}})
fails("types[\"b\"] is float16", data.load_csv, file, {types = {b = mx.float16}})
fails("types[\"b\"] is the number 3, want a dtype or \"string\"", data.load_csv, file, {types = {b = 3}})
fails("delimiter is the string|delimiter is \"::\", want one character", data.load_csv, file, {delimiter = "::"})
fails("[data.load_csv] cannot open absent.csv", data.load_csv, "absent.csv")
os.remove(file)

-- IDX as NumPy wrote its elements.
for _, name in ipairs({"digits.idx", "digits.idx.gz"}) do
  assert(mx.array_equal(data.load_idx(tables .. name), mx.load(tables .. "digits.npy")):item())
end
fails("not an IDX file", function() mx.eval(data.load_idx(tables .. "digits.npy")) end)

-- npz and safetensors are datasets as they are.
for _, name in ipairs({"data.npz", "data.safetensors"}) do
  local archive = os.tmpname() .. name
  if name == "data.npz" then mx.savez(archive, {x = x, y = -x}) else mx.save_safetensors(archive, {x = x, y = -x}) end
  local sum = mx.array(0)
  for batch in DataLoader(mx.load(archive), 3, {shuffle = true})() do
    assert(mx.array_equal(batch.x, -batch.y):item())
    sum = sum + batch.x:sum()
  end
  assert(sum:item() == 45)
  os.remove(archive)
end

-- Pictures.
local image = data.load_image(pictures .. "rgb.png")
dtype(image, "uint8")
assert(image.shape == mx.zeros({5, 7, 3}).shape)
local grey = data.load_image(pictures .. "rgb.png", {channels = 1})
assert(grey:dim(2) == 1)
file = os.tmpname()
data.save_image(file, image)
assert(mx.array_equal(data.load_image(file .. ".png"), image):item())
data.save_image(file .. ".png", image:astype(mx.float32) / 255)
assert(mx.array_equal(data.load_image(file .. ".png"), image):item())
data.save_image(file .. ".png", mx.greater(image[":, :, 0"], 100))
same(data.load_image(file .. ".png")[":, :, 0"], (mx.greater(image[":, :, 0"], 100):astype(mx.uint8) * 255):tolist())
data.save_image(file .. ".png", mx.array({{mx.nan, -1, 0.5, 2}}))
same(data.load_image(file .. ".png"), {{{0}, {0}, {128}, {255}}})
local files = {pictures .. "rgb.png", pictures .. "rgba.png", pictures .. "palette.png"}
local batches = 0
for images, labels in DataLoader({data.ImageFiles(files, 3), mx.array({0, 1, 2})}, 2)() do
  assert(images.shape == mx.zeros({#labels, 5, 7, 3}).shape)
  batches = batches + 1
  if batches == 1 then assert(mx.array_equal(images[0], image):item()) end
end
assert(batches == 2)
fails("rgb.png has 5 x 7 pixels of 3 channels, " .. pictures .. "rgb.jpg has 16 x 24 of 3 channels", data.load_image,
  {pictures .. "rgb.png", pictures .. "rgb.jpg"})
local small = data.load_image({pictures .. "rgb.png", pictures .. "rgb.jpg"}, {size = {4, 6}})
assert(small.shape == mx.zeros({2, 4, 6, 3}).shape)
assert(mx.array_equal(small[1], data.load_image(pictures .. "rgb.jpg", 3, {4, 6})):item())
for images in DataLoader(data.ImageFiles({pictures .. "rgb.png", pictures .. "rgb.jpg"}, 3, {4, 6}), 2)() do
  assert(mx.array_equal(images, small):item())
end
fails("[data.load_image] size has 1 number, want height and width", data.load_image, files, {size = {3}})
fails("[data.load_image] size is {0, 3}: the picture has 0 x 3 pixels", data.load_image, files, {size = {0, 3}})
fails("[data.load_image] channels is 2", data.load_image, files, 2)
fails("file is an empty list", data.load_image, {})
fails("file is the number 3, want a table of strings", data.load_image, 3)
fails("neither a PNG nor a JPEG", data.load_image, "testdata/data.lua")
fails("image has shape (2,)", data.save_image, file, mx.zeros({2}))
fails("image is int32", data.save_image, file, mx.zeros({2, 2}, mx.int32))
fails("has 2 channels", data.save_image, file, mx.zeros({2, 2, 2}))
fails("cannot create absent/a.png", data.save_image, "absent/a", mx.zeros({2, 2}))
assert(data.draw_image(mx.array({{1, 0}, {1, 1}})) == "█▄\n")
assert(data.draw_image(mx.array({{1}, {0}}), {color = true}) == "\27[38;2;255;255;255m\27[48;2;0;0;0m▀\27[0m\n")
assert(#data.draw_image(mx.zeros({4, 8}), 4, false) == 5)
os.remove(file)
os.remove(file .. ".png")

-- A file that is damaged behind its header is an error where it is read, also ahead.
local png = io.open(pictures .. "rgb.png", "rb"):read("*a")
write(png:sub(1, 60))
fails("cut short|damaged", function() mx.eval(data.load_image(file)) end)
fails("cut short|damaged", function()
  for images in DataLoader(data.ImageFiles({file}))() do images:tolist() end
end)
os.remove(file)

-- A dataset's own functions: collate_fn may give several values; one that gives nothing, or not what it should, is an
-- error, and no batch without some of its samples.
local function numbers(get, n) return {size = function() return n or 3 end, get = function(_, i) return get(i) end} end
local function first(...)
  for a, b in DataLoader(...)() do return a, b end
end
local function whole(i) return {n = i} end
local two, three = first(numbers(whole), 2, {collate_fn = function(samples) return mx.array({#samples}), {"x", "y"} end})
assert(two:item() == 2 and three[2] == "y")
fails("collate_fn gave nothing", first, numbers(whole), 2, {collate_fn = function() end})
fails("transform gave nothing", first, x, 2, {transform = function() end})
fails("get(0) gave nothing, want a sample: they are counted from 0", first, numbers(function(i) return ({1, 2})[i] end))
fails("sample 0 of a batch has no b, sample 1 has one", first,
  numbers(function(i) return {a = 1, b = i > 0 and 1 or nil} end), 3)
fails("sample 1 of a batch is a number, sample 0 a table", first, numbers(function(i) return i == 0 and {} or 1 end), 3)
fails("size() gave nil, want the number of samples", first, {size = function() end, get = whole})
fails("size() gave 2.5", first, numbers(whole, 2.5))

-- A loop that lost its loader to another one says so; one that was left, or has ended, does not.
local shared = DataLoader(x, 5)
fails("another loop over this loader began within this one", function()
  for _ in shared() do
    for _ in shared() do break end
  end
end)
for _ in shared() do break end
local again, passed = shared(), 0
while again() do passed = passed + 1 end
assert(passed == 2 and again() == nil and again() == nil)
