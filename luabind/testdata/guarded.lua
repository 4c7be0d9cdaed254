-- What functions of the library that write into a script's tables do when something fails: see luabind/changes.go.
local nn, optim = require("mx.nn"), require("mx.optimizers")
mx.random.seed(1)

local function model_of()
  local model = nn.Linear(2, 4)
  model.extra = mx.ones({1})
  return model
end
local x, good, bad = mx.ones({3, 2}), mx.arange(3), mx.arange(3) * 50
local function loss(m, y) return nn.losses.cross_entropy(m(x), y, {reduction = "mean"}) end

-- stepper is a step of training, and a function that fails unless a step which fails is undone.
local function stepper(model)
  local opt, gradient = optim.SGD(0.1), nn.value_and_grad(model, function(y) return loss(model, y) end)
  local function step(y)
    local _, g = gradient(y)
    opt:update(model, g)
  end
  return step, function()
    local before = model.weight:tolist()
    step(bad)
    fails("index 100 is out of range", mx.eval, model:parameters())
    same(model.weight, before)
  end
end

do -- a loss that takes a parameter away: as in MLX it is gone, and the gradient has it
  local model = model_of()
  local _, undone = stepper(model)
  local extra = model.extra
  local value, grads = nn.value_and_grad(model, function()
    local sum = model.extra:sum() + model(x):sum()
    model.extra = nil
    return sum
  end)()
  assert(model.extra == nil and grads.extra:item() == 1 and value.ndim == 0)
  undone()
  model.extra = extra
  nn.checkpoint(model, function() model.extra = nil return model(x) end)()
  assert(model.extra == nil)
  undone()
end

do -- an error, in a loss and in a step, leaves what there was; and it is told where it came from
  local model = model_of()
  local _, undone = stepper(model)
  local weight, extra = model.weight, model.extra
  local thrown = {}
  local function bad_loss()
    model.extra, model.other = nil, 1
    error(thrown, 0)
  end
  local ok, why = pcall(nn.value_and_grad(model, bad_loss))
  assert(not ok and why == thrown)
  ok, why = pcall(nn.checkpoint(model, bad_loss))
  assert(not ok and why == thrown)
  assert(model.weight == weight and model.extra == extra and model.other == nil)
  undone()
end

do -- trees have a bound, also those that an optimizer is given or makes
  local function deep(n)
    local out = {w = mx.ones({1})}
    for _ = 1, n do out = {a = out} end
    return out
  end
  local opt, tree = optim.SGD(0.1), deep(150)
  opt:update(tree, tree)
  fails("[optimizers.Optimizer.update] a table is nested deeper than 200 levels", opt.update, opt, deep(250), deep(250))
  local model = nn.Linear(1, 1)
  model.settings = deep(250)
  fails("[nn.value_and_grad] a table is nested deeper than 200 levels", nn.value_and_grad(model, function() end))
  local making = optim.Optimizer()
  function making:init_single() end
  function making:apply_single(g, p, state)
    state.v = deep(250)
    return p
  end
  fails("[optimizers.Optimizer.update] a table is nested deeper than 200 levels", making.update, making, {w = mx.ones({1})},
    {w = mx.ones({1})})
  assert(making.state.w == nil, "nothing is half-written")
end

do -- a random state that the script sets stays what it is when a step before that is undone
  local model = nn.Sequential(nn.Linear(2, 4), nn.Dropout(0.5))
  local opt = optim.SGD(0.1)
  local gradient = nn.value_and_grad(model, function(y) return loss(model, y) end)
  local function eager(y)
    local _, g = gradient(y)
    opt:update(model, g)
  end
  local state = {model, opt.state, mx.random.state}
  mx.eval(state)
  local compiled = mx.compile(eager, {inputs = state, outputs = state})
  for _, step in ipairs({eager, compiled}) do
    local before = mx.random.state[1]:tolist()
    step(bad)
    fails("index 100", mx.eval, model:parameters())
    same(mx.random.state[1], before) -- as it was before the step
    step(bad)
    mx.random.seed(7)
    fails("index 100", mx.eval, model:parameters())
    same(mx.random.state[1], mx.random.key(7):tolist())
    step(bad)
    mx.random.state[1] = mx.random.key(8)
    fails("index 100", mx.eval, model:parameters())
    same(mx.random.state[1], mx.random.key(8):tolist())
  end
end

do -- what a checkpoint gives cannot fail any more: nothing of what was there is kept
  local train, model, file = require("mx.train"), nn.Linear(500, 500), os.tmpname() .. ".safetensors"
  mx.eval(model:parameters())
  train.save_checkpoint(file, {m = model})
  collectgarbage()
  local before = mx.get_active_memory()
  train.load_checkpoint(file, {m = model})
  collectgarbage()
  assert(mx.get_active_memory() <= before - 1000000, "old parameters are kept")
  os.remove(file)
end
