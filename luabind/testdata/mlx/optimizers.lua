-- MLX's test_optimizers.py.
local t = {}

local all = {"AdaDelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "Lion", "Muon", "RMSprop", "SGD"}

local function parameters() return {first = {mx.zeros({10}), mx.zeros({1})}, second = mx.zeros({1})} end

local function ones(tree) return utils.tree_map(mx.ones_like, tree) end

-- states calls f with each parameter and its state.
local function states(f, tree, state)
  for k, p in pairs(tree) do
    if type(p) == "table" then states(f, p, state[k]) else f(p, state[k]) end
  end
end

-- begins makes a test of an optimizer: its state under the names is zeros after init.
local function begins(o, ...)
  local p = parameters()
  o:init(p)
  for _, name in ipairs({...}) do
    states(function(x, s) equal(s[name], mx.zeros_like(x)) end, p, o.state)
  end
  return p
end

function t.test_optimizer_state()
  local o = optim.SGD(0.1)
  o.state.hello = "world"
  assert(o.state.hello == "world")
  local other = {1}
  o.state = other
  assert(o.state == other and o.state[1] == 1)
end

function t.test_optimizers()
  for _, name in ipairs(all) do
    local p = parameters()
    local new = optim[name](0.1):apply_gradients(ones(p), p)
    mx.eval(new)
    each_leaf(function(x, y) shape(y, unpack(x.shape)) end, p, new)
  end
end

function t.test_types_conserved()
  for _, name in ipairs(all) do
    local p = {w = mx.ones({5, 5}, mx.float16)}
    dtype(optim[name](0.1):apply_gradients(ones(p), p).w, "float16")
  end
end

function t.test_sgd()
  local p = begins(optim.SGD{learning_rate = 1e-2, momentum = 0.9}, "v")
  local o, g = optim.SGD{learning_rate = 1e-2, momentum = 0.9}, ones(p)
  o:apply_gradients(g, p)
  states(function(x, s) equal(s.v, x) end, g, o.state)
end

function t.test_rmsprop()
  local p = begins(optim.RMSprop{learning_rate = 1e-2}, "v")
  local o, g = optim.RMSprop{learning_rate = 1e-2, alpha = 0.99}, ones(p)
  o:apply_gradients(g, p)
  states(function(x, s) near(s.v, (1 - 0.99) * x) end, g, o.state)
end

function t.test_adagrad() begins(optim.Adagrad{learning_rate = 1e-2}, "v") end

function t.test_adadelta() begins(optim.AdaDelta{learning_rate = 1e-2}, "v", "u") end

function t.test_epsilon_validation()
  for _, name in ipairs({"RMSprop", "Adagrad", "AdaDelta"}) do
    for _, eps in ipairs({-1, 0}) do
      fails(("[optimizers.%s] eps is %g, want more than 0"):format(name, eps), optim[name],
        {learning_rate = 1e-2, eps = eps})
    end
  end
end

function t.test_adam()
  for _, name in ipairs({"Adam", "AdamW", "Adamax"}) do begins(optim[name]{learning_rate = 1e-2}, "v", "m") end
  local p = utils.tree_map(function(x) return x:astype(mx.float16) end, parameters())
  each_leaf(function(x) dtype(x, "float16") end, optim.Adam(1e-2, {bias_correction = true}):apply_gradients(ones(p), p))
end

function t.test_adamw_matches_pytorch()
  local model = nn.Linear(3, 1)
  model.weight, model.bias = formula({1, 3}, 1), formula({1}, 2)
  local o = optim.AdamW{learning_rate = 3e-4, bias_correction = true}
  local step = nn.value_and_grad(model, function(m, x, y) return nn.losses.mse_loss(m(x), y) end)
  local _, grads = step(model, formula({3, 3}, 3), formula({3, 1}, 4))
  o:update(model, grads)
  for _, name in ipairs({"weight", "bias"}) do
    near(grads[name], torch.adamw.grad[name], 1e-6)
    near(model[name], torch.adamw.after[name], 1e-6)
  end
end

function t.test_lion() begins(optim.Lion{learning_rate = 1e-2}, "m") end

function t.test_adafactor()
  for _, d in ipairs({mx.float32, mx.float16}) do
    local p, o = {x = mx.zeros({5, 5}, d)}, optim.Adafactor()
    for _ = 1, 2 do
      local new = o:apply_gradients(ones(p), p)
      shape(new.x, 5, 5)
      dtype(new.x, tostring(d))
    end
    assert(o.state.step:item() == 2)
  end
  local p, o = {x = mx.zeros({2, 3, 4})}, optim.Adafactor()
  for _ = 1, 2 do
    p = o:apply_gradients(ones(p), p)
    shape(p.x, 2, 3, 4)
    assert(mx.all(mx.isfinite(p.x)):item())
  end
  -- Of three dimensions each matrix is estimated by its own rows and columns: as it would be alone.
  local g = formula({2, 3, 4}, 5)
  local function stepped(x) return optim.Adafactor{clip_threshold = 1e9, scale_parameter = false}:apply_gradients(x,
    mx.zeros_like(x)) end
  near(stepped(g), mx.stack({stepped(g[0]), stepped(g[1])}), 1e-6)
end

function t.test_muon()
  local p = {first = {mx.zeros({10, 5}), mx.zeros({1})}, second = mx.zeros({3, 3}), conv = mx.zeros({16, 8, 3, 3})}
  local o, g = optim.Muon{learning_rate = 1e-2, momentum = 0.95, nesterov = true}, ones(p)
  o:init(p)
  states(function(x, s) equal(s.v, mx.zeros_like(x)) end, p, o.state)
  each_leaf(function(x, y)
    shape(y, unpack(x.shape))
    assert(not mx.array_equal(x, y):item())
  end, p, o:apply_gradients(g, p))
  for _, keywords in ipairs({{momentum = 0.95, nesterov = false}, {momentum = 0}}) do
    keywords.learning_rate = 1e-2
    each_leaf(function(x, y) shape(y, unpack(x.shape)) end, p, optim.Muon(keywords):apply_gradients(g, p))
  end
end

function t.test_compiled_optimizer()
  local model, x = nn.Linear(10, 10), mx.random.uniform(0, 1, {2, 10})
  local begin = model:parameters()
  local function fresh()
    model:update(begin)
    return optim.SGD{learning_rate = 1e-2, momentum = 0.9}
  end
  local function loss(m, a) return m(a):sum() end
  local o = fresh()
  local function step(a)
    local _, g = nn.value_and_grad(model, loss)(model, a)
    o:update(model, g)
  end
  step(x)
  local want = model:parameters()

  -- MLX's pure step leaves the arrays of the trace in the model and in the optimizer. Here that is an error; a step that
  -- puts back what it changed is none.
  o = fresh()
  local function pure(p, state, a, before)
    local g = mx.grad(function(q, b)
      model:update(q)
      return model(b):sum()
    end)(p, a)
    o.state = state
    local new = o:apply_gradients(g, p)
    state = o.state
    if before then
      model:update(before.model)
      o.state = before.state
    end
    return new, state
  end
  o:init(model:parameters())
  fails("is set to an array of the trace", mx.compile(pure), model:parameters(), o.state, x)
  local before = {model = model:parameters(), state = o.state}
  local new, state = mx.compile(function(p, s, a) return pure(p, s, a, before) end)(model:parameters(), o.state, x)
  each_leaf(near, new, want)
  assert(state.step:item() == 1 and o.step:item() == 0)

  o = fresh()
  state = {model.state, o.state}
  mx.compile(step, {inputs = state, outputs = state})(x)
  each_leaf(near, model:parameters(), want)
end

function t.test_update_lr_compiled()
  local p, o = {w = mx.ones({5, 5})}, optim.SGD(-1)
  local function step(g) return o:apply_gradients(g, p) end
  -- The step counts in the optimizer's state: that inputs alone name it is an error here, where MLX loses the count.
  fails("o.state.step is set to an array of the trace", mx.compile(step, {inputs = o.state}), ones(p))
  local update = mx.compile(step, {inputs = o.state, outputs = o.state})
  near(update(ones(p)).w, mx.full({5, 5}, 2))
  o.learning_rate = -2
  near(update(ones(p)).w, mx.full({5, 5}, 3))
end

function t.test_decay_lr()
  for _, name in ipairs(all) do
    local o, p = optim[name]{learning_rate = optim.step_decay(1e-1, 0.9, 1)}, {w = mx.ones({5, 5})}
    for i = 0, 9 do
      o:apply_gradients(ones(p), p)
      near(o.learning_rate, 0.1 * 0.9 ^ i, 1e-7, 0)
    end
  end
end

local function number(x) return type(x) == "number" and x or x:item() end

local function within(x, want, bound) assert(math.abs(number(x) - want) <= bound, number(x)) end

function t.test_step_decay() within(optim.step_decay(1e-1, 0.9, 1000)(2500), 0.1 * 0.9 ^ 2, 1e-7) end

function t.test_exponential_decay() within(optim.exponential_decay(1e-1, 0.99)(10), 0.1 * 0.99 ^ 10, 1e-7) end

function t.test_cosine_decay()
  within(optim.cosine_decay(0.1, 10)(4), 0.1 * 0.5 * (1 + math.cos(math.pi * 4 / 10)), 1e-7)
  local f = optim.cosine_decay(0.1, 10, 0.05)
  assert(number(f(9)) > 0.05)
  equal(f(20), 0.05)
end

local function always(v) return function() return v end end

function t.test_schedule_joiner()
  local schedules = {always(3), always(4), always(5)}
  fails("boundaries has 3 steps, want 2", optim.join_schedules, schedules, {2, 3, 4})
  local f = optim.join_schedules(schedules, {2, 4})
  for step, want in pairs({[0] = 3, [1] = 3, [2] = 4, [3] = 4, [5] = 5, [7] = 5}) do assert(number(f(step)) == want) end
end

function t.test_linear_warmup_with_cosine_decay()
  local f = optim.join_schedules({optim.linear_schedule(0, 1e-5, 100), optim.cosine_decay(1e-5, 100)}, {101})
  assert(number(f(0)) == 0)
  within(f(101), 1e-5, 1e-10) -- MLX's test bears 1e-1, more than all these rates
  local o = optim.Adam{learning_rate = f}
  for _ = 1, 100 do o:update({}, {}) end
  within(o.learning_rate, 0.99e-5, 1e-10)
  for _ = 1, 100 do o:update({}, {}) end
  within(o.learning_rate, 1e-5 * 0.5 * (1 + math.cos(math.pi * 98 / 100)), 1e-10)
end

function t.test_compile_with_schedule()
  local f = optim.exponential_decay(1e-1, 0.9)
  local o = optim.SGD{learning_rate = f}
  local update = mx.compile(function() o:update({}, {}) end, {inputs = o.state, outputs = o.state})
  for step = 0, 4 do
    update()
    within(o.learning_rate, number(f(step)), 1e-7)
  end
end

function t.test_clip_grad_norm()
  local small = {first = {mx.array({0.1, 0.2}), mx.array({0.1})}, second = mx.array({0.3})}
  each_leaf(equal, (optim.clip_grad_norm(small, 10)), small)
  local large = {first = {mx.array({10, 20}), mx.array({10})}, second = mx.array({30})}
  local clipped, norm = optim.clip_grad_norm(large, 1)
  local squares = utils.tree_reduce(function(sum, g) return sum + g:square():sum() end, clipped, mx.array(0))
  within(mx.sqrt(squares), 1, 1e-6)
  each_leaf(function(x, g) near(x, g * (1 / norm), 1e-6) end, clipped, large)
  fails("max_norm is -1", optim.clip_grad_norm, small, -1)
end

local Model = nn.class("Model")

function Model:init()
  self.l1, self.drop, self.l2 = nn.Linear(2, 2), nn.Dropout{p = 0.5}, nn.Linear(2, 2)
  self.vals = {nn.Linear(2, 2), nn.ReLU(), nn.ReLU()}
end

function t.test_init_from_state()
  local model, o = Model(), optim.Adam{learning_rate = 3e-4}
  o:init(model:trainable_parameters())
  local flat = utils.tree_flatten(o.state)
  o = optim.Adam{learning_rate = 3e-4}
  o.state = utils.tree_unflatten(flat)
  local before = model.l1.weight
  o:update(model, model:trainable_parameters())
  assert(not mx.array_equal(model.l1.weight, before):item())
end

function t.test_multi_optimizer()
  local model = Model()
  local o = optim.MultiOptimizer({optim.Adam{learning_rate = 0.001}, optim.SGD{learning_rate = 0.1}},
    {function(_, w) return w.ndim > 1 end})
  o:init(model:trainable_parameters())
  assert(#o.state.states == 2)
  local adam, sgd = paths(o.state.states[1]), paths(o.state.states[2])
  local function count(text) return select(2, text:gsub("%S+", "")) end
  assert((count(sgd) - 2) * 2 == count(adam) - 2 and not adam:find("bias") and not sgd:find("weight"))
end

function t.test_multi_optimizer_with_parameterless_layers()
  mx.random.seed(0)
  local model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))
  local o = optim.MultiOptimizer({optim.Muon{learning_rate = 0.01}, optim.AdamW{learning_rate = 0.01}},
    {function(_, w) return w.ndim >= 2 end})
  local _, grads = nn.value_and_grad(model, function(m, x) return m(x):sum() end)(model, mx.ones({1, 4}))
  o:update(model, grads)
  local w, b = model.layers[1].weight, model.layers[1].bias
  o:update(model, grads)
  assert(not mx.array_equal(w, model.layers[1].weight):item() and not mx.array_equal(b, model.layers[1].bias):item())
end

return t
