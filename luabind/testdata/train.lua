-- mx.train: steps are the same eager, compiled and after a break; checkpoints hold everything or are errors.
local mx, nn, optim, utils = require("mx"), require("mx.nn"), require("mx.optimizers"), require("mx.utils")
local data, train = require("mx.data"), require("mx.train")

local x = mx.random.normal({40, 6}, {key = mx.random.key(0)})
local y = mx.sum(x * x, 1, true)

-- A model with dropout and running statistics, data in an order of their own with noise, an optimizer with a schedule.
local function setup(seed)
  mx.random.seed(seed)
  local run = {model = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm(16), nn.GELU(), nn.Dropout(0.2), nn.Linear(16, 1))}
  run.optimizer = optim.AdamW(optim.cosine_decay(1e-2, 100))
  run.loader = data.DataLoader({x, y}, 12, {shuffle = true, transform = function(a, b)
    return a + 0.01 * mx.random.normal(a.shape), b
  end})
  return run
end

local function loss(model, x, y) return nn.losses.mse_loss(model(x), y) end

-- bytes is all that a run has come to, as text.
local function bytes(run)
  local out = {}
  for _, leaf in ipairs(utils.tree_flatten({run.model:parameters(), run.optimizer.state})) do
    out[#out + 1] = leaf[1]
    for _, v in ipairs(leaf[2]:reshape(-1):tolist("string")) do out[#out + 1] = ("%.17g"):format(v) end
  end
  out[#out + 1] = table.concat(mx.random.state[1]:tolist(), " ")
  for _, entry in ipairs(run.history) do
    out[#out + 1] = ("%d %.17g"):format(entry.epoch, entry.loss)
  end
  return table.concat(out, " ")
end

-- fit trains for 100 steps: 25 epochs of 4 batches, the last one of each smaller.
local function fit(run, options)
  local o = {epochs = 25, progress = false, max_norm = 1}
  for k, v in pairs(options or {}) do o[k] = v end
  run.history = train.fit(run.model, run.optimizer, loss, run.loader, o)
  return run
end

local file = os.tmpname() .. ".safetensors"
local compiled = fit(setup(3))
local want = bytes(compiled)
assert(#compiled.history == 25 and compiled.history[25].loss < compiled.history[1].loss / 2)
assert(compiled.optimizer.step:item("string") == "100")
assert(bytes(fit(setup(3), {compile = false})) == want, "eager")
assert(bytes(fit(setup(4))) ~= want)
do -- what mx.compile gives is a loss, too, and a metric
  local function history(loss, metric, run)
    local f
    if metric then
      f, loss = mx.compile(loss, {inputs = {run.model}}), mx.compile(loss, {inputs = {run.model}, outputs = {run.model}})
    end
    return train.fit(run.model, run.optimizer, loss, run.loader, {progress = false, validation = run.loader,
      metrics = {metric = f}})[1]
  end
  local with, without = history(loss, true, setup(5)), history(loss, false, setup(5))
  assert(math.abs(with.loss - without.loss) < 1e-4 and with.validation_metric == with.validation_loss)
end
for _, stop in ipairs({50, 52, 99}) do -- in the middle of an epoch, at its end, before the last step
  local steps = 0
  fit(setup(3), {checkpoint = file, callbacks = {step = function(info)
    steps = steps + 1
    assert(info.step == steps)
    return steps < stop
  end}})
  assert(steps == stop)
  local resumed = fit(setup(11), {checkpoint = file, resume = true, compile = stop ~= 52})
  assert(bytes(resumed) == want, stop)
  local again = fit(setup(12), {checkpoint = file, resume = true}) -- there is nothing left to do
  assert(bytes(again) == want)
end

-- A break without notice: the last checkpoint, of step 64, is what counts.
fails("the power is out", fit, setup(3), {checkpoint = file, every = 32, callbacks = {step = function(info)
  if info.step == 66 then error("the power is out") end
end}})
assert(train.load_checkpoint(file).fit.step == 64)
assert(bytes(fit(setup(11), {checkpoint = file, resume = true})) == want)

-- What a checkpoint holds comes back as it was.
local parts = setup(1)
mx.random.seed(8)
train.save_checkpoint(file, {model = parts.model, opt = parts.optimizer, loader = parts.loader, n = 3, none = 0 / 0,
  big = -math.huge, text = "a.b", yes = true, tree = {a = {1, 2, mx.array({5, 6})}, b = "x"}})
local key = table.concat(mx.random.state[1]:tolist(), " ")
local other = setup(2)
local rest = train.load_checkpoint(file, {model = other.model, opt = other.optimizer, loader = other.loader})
assert(rest.n == 3 and rest.none ~= rest.none and rest.big == -math.huge and rest.text == "a.b" and rest.yes == true)
assert(rest.tree.a[2] == 2 and rest.tree.b == "x")
same(rest.tree.a[3], {5, 6})
assert(table.concat(mx.random.state[1]:tolist(), " ") == key)
other.history, parts.history = {}, {}
assert(bytes(other) == bytes(parts))

-- Files that are none, that are damaged or of another model change nothing.
mx.random.seed(1)
local before = bytes(other)
fails("parameters are not in the module|has the shape", train.load_checkpoint, file, {model = nn.Linear(2, 2)})
fails("has no part optimizer", train.load_checkpoint, file, {model = other.model, optimizer = other.optimizer})
fails("parts.n is a number, want a module", train.load_checkpoint, file, {n = 3})
fails("has the state of the optimizer AdamW for opt, which is of the class SGD", train.load_checkpoint, file,
  {opt = optim.SGD(0.1, {momentum = 0.9})})
fails("has the state of the optimizer AdamW for opt, which is a DataLoader", train.load_checkpoint, file,
  {opt = other.loader})
fails("has the state of the optimizer AdamW for opt, which is a Linear", train.load_checkpoint, file,
  {opt = nn.Linear(1, 1)})
do -- an optimizer of several is known by what they are
  local function several(...)
    local last = function(path) return path:find("bias") end
    local o, model = optim.MultiOptimizer({...}, {last}), nn.Linear(2, 2)
    o:update(model, model:parameters())
    return o
  end
  local other_file, saved = os.tmpname() .. ".safetensors", several(optim.Adam(0.1), optim.SGD(0.1))
  train.save_checkpoint(other_file, {opt = saved})
  fails("the optimizer MultiOptimizer(Adam, SGD) for opt, which is of the class MultiOptimizer(SGD, Adam)",
    train.load_checkpoint, other_file, {opt = several(optim.SGD(0.1), optim.Adam(0.1))})
  local again = several(optim.Adam(0.5), optim.SGD(0.5))
  train.load_checkpoint(other_file, {opt = again})
  assert(math.abs(again.learning_rate:item() - 0.1) < 1e-6)
  local arrays, texts = mx.load(other_file, {return_metadata = true})
  texts["mlxlua.checkpoint.rule.opt"] = "MultiOptimizer" -- as it was written before
  mx.eval(arrays)
  mx.save_safetensors(other_file, arrays, texts)
  train.load_checkpoint(other_file, {opt = several(optim.Adam(0.5), optim.SGD(0.5))})
  os.remove(other_file)
end
fails("has no part optimizer", fit, other, {checkpoint = file, resume = true})
local same_parts = {model = other.model, optimizer = other.optimizer, loader = other.loader}
train.save_checkpoint(file, same_parts)
fails("is a checkpoint of something else", fit, other, {checkpoint = file, resume = true})
local small = nn.Linear(6, 16)
train.save_checkpoint(file, {a = other.model, b = small})
local wrong = nn.Linear(6, 17)
local third = setup(5).model
local was = third.layers[1].weight[0][0]:item()
fails("has the shape", train.load_checkpoint, file, {a = third, b = wrong})
assert(third.layers[1].weight[0][0]:item() == was)
other.model:save_weights(file)
fails("is no checkpoint", train.load_checkpoint, file, {model = other.model})
local whole = io.open(file, "rb"):read("*a")
local cut = io.open(file, "wb")
cut:write(whole:sub(1, #whole - 10))
cut:close()
fails("[load]", train.load_checkpoint, file, {model = other.model})
fails("cannot open absent", train.load_checkpoint, "absent", {model = other.model})
fails("parts has the key a.b, want names without dots", train.save_checkpoint, file, {["a.b"] = 1})
fails("f is a function, want arrays, numbers", train.save_checkpoint, file, {f = print})
mx.random.seed(1)
assert(bytes(other) == before)
os.remove(file)

-- evaluate: averages over samples, in evaluation mode.
local linear = nn.Linear(1, 1, {bias = false})
linear.weight = mx.array({{2}})
local numbers = data.DataLoader(mx.arange(5):astype(mx.float32):reshape({5, 1}), 2)
local function sum(model, v)
  assert(not model.training)
  return mx.mean(model(v))
end
linear:train()
for _, compile in ipairs({true, false}) do
  local got = train.evaluate(linear, numbers, {sum = sum, one = function() return mx.array({1, 1}) end}, compile)
  assert(got.sum == 4 and got.one == 1 and linear.training, tostring(got.sum))
end
fails("no luck", train.evaluate, linear, numbers, {sum = function() error("no luck") end})
assert(linear.training)
fails("data has no batch", train.evaluate, linear, function() return function() end end, {sum = sum})
fails("metrics.sum is a number", train.evaluate, linear, numbers, {sum = 3})

-- fit over a function that gives iterators, with validation and callbacks.
local function pairs_of()
  local i = 0
  return function()
    i = i + 1
    if i <= 3 then return x[":4"], y[":4"] end
  end
end
local epochs = 0
local run = setup(6)
local history = train.fit(run.model, run.optimizer, loss, pairs_of, {epochs = 5, progress = false,
  validation = data.DataLoader({x, y}, 16), metrics = {l1 = function(m, a, b) return nn.losses.l1_loss(m(a), b) end},
  callbacks = {epoch = function(entry)
    epochs = epochs + 1
    return entry.epoch < 2
  end}})
assert(#history == 2 and epochs == 2 and history[2].validation_l1 > 0 and history[2].validation_loss > 0)

fails("model is a table", train.fit, {}, run.optimizer, loss, run.loader)
fails("optimizer is a number", train.fit, run.model, 3, loss, run.loader)
fails("data is a table, want a DataLoader", train.fit, run.model, run.optimizer, loss, {x, y})
fails("epochs is -1", train.fit, run.model, run.optimizer, loss, run.loader, -1)
fails("every is 0", train.fit, run.model, run.optimizer, loss, run.loader, {checkpoint = file, every = 0})
fails("about checkpoint", train.fit, run.model, run.optimizer, loss, run.loader, {resume = true})
fails("every needs a DataLoader", train.fit, run.model, run.optimizer, loss, pairs_of, {checkpoint = file, every = 2})
fails("metrics are computed on validation", train.fit, run.model, run.optimizer, loss, run.loader, {metrics = {}})
fails('callbacks has no "batch"', train.fit, run.model, run.optimizer, loss, run.loader, {callbacks = {batch = print}})
fails("data has no batch", train.fit, run.model, run.optimizer, loss, data.DataLoader({x, y}, 50, {last = "drop"}))

-- The line: rate and remaining time by a clock; the first step counts for neither.
local now = 100
local line = train.Progress(200, {label = "epoch 1", clock = function() return now end})
assert(line:text(now) == "epoch 1    0 %  0/200")
now = 130
line:step()
assert(line:text(now) == "epoch 1    0 %  1/200")
for _ = 1, 49 do
  now = now + 0.5
  line:step("loss 0.5")
end
assert(line:text(now) == "epoch 1   25 %  50/200  2.0/s  1:15 left  loss 0.5", line:text(now))
line:step(nil, 150)
assert(line:text(now) == "epoch 1  100 %  200/200  8.1/s", line:text(now))
line = train.Progress({clock = function() return now end})
line:step()
now = now + 7200
line:step("slow")
assert(line:text(now) == "  2  7200.0 s each  slow", line:text(now))

do -- nothing to train
  local frozen = nn.Linear(2, 2)
  frozen:freeze()
  fails("[train.fit] model has no parameter to train: it has none, or all are frozen", mx.train.fit, frozen,
    mx.optimizers.SGD(0.1), function(m, x) return m(x):sum() end, mx.data.DataLoader(mx.ones({4, 2}), 2), {progress = false})
end

do -- a step that fails has not been, and resume goes on from the checkpoint, which is that of the step before
  local x, y = mx.random.normal({8, 3}), mx.array({0, 1, 0, 1, 1, 9, 0, 1}, mx.int32)
  local function loss(m, x, y) return mx.nn.losses.cross_entropy(m(x), y, {reduction = "mean"}) end
  local model, opt, file = mx.nn.Linear(3, 2), mx.optimizers.Adam(1e-2), os.tmpname() .. ".safetensors"
  local options = {checkpoint = file, every = 1, resume = true, progress = false}
  local bad = mx.data.DataLoader({x, y}, 4)
  fails("index 9 is out of range", mx.train.fit, model, opt, loss, bad, options)
  local left = model.weight:tolist()
  assert(opt.step:item() == 1)
  fails("index 9 is out of range", mx.train.fit, model, opt, loss, bad, options)
  assert(mx.array_equal(model.weight, mx.array(left)):item() and opt.step:item() == 1)
  local h = mx.train.fit(model, opt, loss, mx.data.DataLoader({x, mx.minimum(y, 1)}, 4), options)
  assert(#h == 1 and opt.step:item() == 2 and model.weight:tolist())
  os.remove(file)
end
