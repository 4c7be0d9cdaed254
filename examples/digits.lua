-- Draws handwritten-looking digits, and learns to read them: mlxlua examples/digits.lua
-- With MNIST's four files (as they are, or .gz) in a folder it reads those: mlxlua examples/digits.lua --mnist FOLDER
local mx, nn, optim = require("mx"), require("mx.nn"), require("mx.optimizers")
local data, train = require("mx.data"), require("mx.train")

local options = {samples = 12000, epochs = 6, mnist = false}
local given = {...}
for i = 1, #given, 2 do
  local name = given[i]:match("^%-%-(%a+)$")
  if options[name] == nil or not given[i + 1] then error("unknown option, or one without a value: " .. given[i], 0) end
  options[name] = tonumber(given[i + 1]) or given[i + 1]
end

-- A glyph is a list of strokes, a stroke a list of points x, y in a square whose corner (0, 0) is the upper left one.
local function arc(x, y, rx, ry, from, to)
  local points = {}
  for i = 0, 10 do
    local a = math.rad(from + (to - from) * i / 10)
    points[#points + 1] = x + rx * math.cos(a)
    points[#points + 1] = y + ry * math.sin(a)
  end
  return points
end

local glyphs = {
  {arc(.5, .5, .26, .4, 0, 360)},
  {{.36, .26, .55, .1, .55, .9}},
  {arc(.5, .32, .24, .22, -170, 40), {.68, .46, .25, .9, .76, .9}},
  {arc(.47, .3, .25, .2, -150, 90), arc(.47, .7, .27, .2, -90, 150)},
  {{.62, .9, .62, .1, .22, .65, .8, .65}},
  {{.74, .1, .33, .1, .3, .46}, arc(.47, .66, .27, .24, -130, 150)},
  {{.66, .1, .4, .3, .27, .62}, arc(.5, .67, .24, .22, 0, 360)},
  {{.22, .1, .78, .1, .42, .9}},
  {arc(.5, .3, .2, .19, 0, 360), arc(.5, .7, .25, .21, 0, 360)},
  {arc(.5, .33, .24, .22, 0, 360), {.74, .33, .7, .62, .54, .9}},
}

-- segments is an array of shape (10, n, 2, 2): the ends of each glyph's segments; short glyphs repeat their last one.
local function segments(n)
  local all = {}
  for digit, strokes in ipairs(glyphs) do
    local list = {}
    for _, s in ipairs(strokes) do
      for i = 1, #s - 3, 2 do list[#list + 1] = {{s[i], s[i + 1]}, {s[i + 2], s[i + 3]}} end
    end
    while #list < n do list[#list + 1] = list[#list] end
    all[digit] = list
  end
  return mx.array(all)
end

local strokes = segments(20)

-- draw makes pictures of digits, shape (n, 28, 28), each turned, sheared, stretched, shifted, blurred and noisy in its
-- own way.
local function draw(digits)
  local n = #digits
  local function each(low, high) return mx.random.uniform(low, high, {n, 1, 1}) end
  local ends = strokes[digits] - 0.5 + 0.02 * mx.random.normal({n, 20, 2, 2})
  local turn, shear, width, height = each(-0.35, 0.35), each(-0.4, 0.4), each(0.6, 1.0), each(0.65, 0.95)
  local x, y = ends["..., 0"] * width, ends["..., 1"] * height
  x = x + shear * y
  x, y = x * mx.cos(turn) - y * mx.sin(turn) + each(0.42, 0.58), x * mx.sin(turn) + y * mx.cos(turn) + each(0.42, 0.58)
  -- the distance of each pixel (n, 784, 1) to each segment (n, 1, 20)
  local at = mx.arange(784)
  local px = ((at % 28 + 0.5) / 28):reshape({1, 784, 1})
  local py = ((mx.floor_divide(at, 28) + 0.5) / 28):reshape({1, 784, 1})
  local ax, ay = x[":, None, :, 0"], y[":, None, :, 0"]
  local bx, by = x[":, None, :, 1"] - ax, y[":, None, :, 1"] - ay
  local along = mx.clip(((px - ax) * bx + (py - ay) * by) / (bx * bx + by * by + 1e-9), 0, 1)
  local dx, dy = px - ax - along * bx, py - ay - along * by
  local distance = mx.sqrt(mx.min(dx * dx + dy * dy, -1, true))
  local ink = mx.sigmoid((each(0.025, 0.05) - distance) / each(0.006, 0.02))
  return mx.clip(ink:reshape({n, 28, 28}) + 0.15 * mx.random.normal({n, 28, 28}), 0, 1)
end

-- drawn is a data set of n digits. It is drawn in parts: all at once would take much memory.
local function drawn(n)
  local digits = mx.random.randint(0, 10, {n})
  local parts = {}
  for at = 0, n - 1, 1000 do
    parts[#parts + 1] = draw(digits[("%d:%d"):format(at, at + 1000)])
    mx.eval(parts)
  end
  return mx.concatenate(parts, 0), digits
end

-- mnist is one of MNIST's two data sets.
local function mnist(name)
  local function read(kind)
    local file = options.mnist .. "/" .. name .. kind
    local plain = io.open(file)
    if plain then plain:close() else file = file .. ".gz" end
    return data.load_idx(file)
  end
  return read("-images-idx3-ubyte"):astype(mx.float32) / 255, read("-labels-idx1-ubyte")
end

mx.random.seed(0)
local started = mx.clock()
local images, labels, test_images, test_labels
if options.mnist then
  images, labels = mnist("train")
  test_images, test_labels = mnist("t10k")
else
  images, labels = drawn(options.samples)
  test_images, test_labels = drawn(math.floor(options.samples / 6))
end
print(("%d digits to learn from, %d to be tested with; %.1f s"):format(#images, #test_images, mx.clock() - started))
print(data.draw_image(mx.concatenate({unpack(mx.split(images[":3"], 3))}, 2)[0], 84))

local model = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Dropout(0.1), nn.Linear(256, 10))
local function loss(model, x, y) return nn.losses.cross_entropy(model(x), y, {reduction = "mean"}) end
local function accuracy(model, x, y) return mx.equal(mx.argmax(model(x), -1), y) end

local function loader(x, y, size, shuffle)
  return data.DataLoader({x:reshape({#x, 784}), y}, size, {shuffle = shuffle})
end
local history = train.fit(model, optim.AdamW(2e-3), loss, loader(images, labels, 100, true), {
  epochs = options.epochs, validation = loader(test_images, test_labels, 500), metrics = {accuracy = accuracy},
})
local last = history[#history]
print(("%.2f %% of the test's digits are read right, after %.1f s"):format(100 * last.validation_accuracy,
  mx.clock() - started))

-- What it takes for something else, side by side.
model:eval()
local said = mx.argmax(model(test_images:reshape({#test_images, 784})), -1)
local wrong = mx.not_equal(said, test_labels):tolist()
local shown, names = {}, {}
for i = 0, #test_images - 1 do
  if wrong[i + 1] and #shown < 3 then
    shown[#shown + 1] = test_images[i]
    names[#names + 1] = ("%d for %d"):format(said[i]:item(), test_labels[i]:item())
  end
end
if #shown > 0 then
  print("it takes " .. table.concat(names, ", "))
  print(data.draw_image(mx.concatenate(shown, 1), 28 * #shown))
end
