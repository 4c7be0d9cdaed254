-- Training steps that fail, in one of several ways, between those that do not: run(way, mode, bad) gives the losses, and
-- the state after the last step. Without bad there are none of the steps that fail. Mode is eager or compiled; the state
-- of "mapped" is plain tables, and its compiled step differentiates what maps another function.
local mx = require("mx")
local optim = require("mx.optimizers")

-- A kernel that writes out of its output's bounds if the second input is large.
local shifted = mx.fast.metal_kernel{name = "shifted", input_names = {"a", "at"}, output_names = {"out"},
  source = "uint i = thread_position_in_grid.x; out[i + at[0]] = a[i];"}

local function one(x, e) -- 1, unless e is bad
  local y = shifted{inputs = {mx.ones_like(x), e}, grid = {x.size, 1, 1}, threadgroup = {32, 1, 1},
    output_shapes = {x.shape}, output_dtypes = {x.dtype}}
  return mx.stop_gradient(y):max()
end

-- What each way does to a loss, and what it is given: good, bad.
local ways = {
  label = {},
  token = {},
  host = {function(h, e) return h * mx.linalg.cholesky(e):sum() end, mx.eye(1), -mx.eye(1)},
  kernel = {function(h, e) return h * one(mx.zeros({64}), e) end, mx.array({0}, mx.int32), mx.array({1e6}, mx.int32)},
  memory = {function(h, e)
    return h * mx.stop_gradient(1 + mx.cumsum(mx.broadcast_to(h * 0, {e.shape[1], 256}), 0):sum())
  end, mx.zeros({4}), mx.zeros({300000})},
  nan = {function(h, e) return h * mx.sqrt(e) end, mx.array(1.0), mx.array(-1.0)},
}

local labels = {[false] = mx.arange(16), [true] = mx.arange(16) + 120}
local tokens = mx.random.randint(0, 50, {16, 16}, {key = mx.random.key(5)})

local function network(way)
  local model = nn.Sequential(nn.Embedding(50, 64), nn.Linear(64, 64), nn.BatchNorm(64), nn.relu, nn.Dropout(0.1),
    nn.Linear(64, 128))
  local opt = optim.Adam(1e-2, {bias_correction = true})
  local change, good, bad = unpack(ways[way])
  local function loss(x, y, e)
    local h = nn.losses.cross_entropy(model(x), y, {reduction = "mean"})
    return change and change(h, e) or h
  end
  local gradient = nn.value_and_grad(model, loss)
  local function step(x, y, e)
    local l, g = gradient(x, y, e)
    opt:update(model, g)
    return l
  end
  local function arguments(i, failing)
    local x = tokens[i]
    if failing and way == "token" then x = x + 40 end
    return x, labels[failing and way == "label" or false], failing and bad or good
  end
  return step, arguments, {model, opt.state, mx.random.state}
end

local function mapped()
  local params = {w = mx.random.normal({64, 128}), b = mx.zeros({128})}
  local opt = optim.SGD(0.1, {momentum = 0.9})
  local seen = {steps = mx.array(0), last = mx.zeros({2000})}
  local function loss(p, x, y)
    return mx.vmap(function(x, y) return -(nn.log_softmax(mx.matmul(x, p.w) + p.b))[y] end)(x, y):mean()
  end
  local function step(x, y)
    local v, g = mx.value_and_grad(loss)(params, x + mx.random.normal(x.shape), y)
    seen.steps = seen.steps + 1
    seen.last[3] = seen.last[3] + v -- in place
    opt:update(params, g)
    return v
  end
  local x = mx.random.normal({16, 16, 64})
  return step, function(i, failing) return x[i], labels[failing or false] end, {params, opt.state, seen, mx.random.state}
end

return function(way, mode, bad)
  mx.random.seed(3)
  local step, arguments, state
  if mode == "mapped" then step, arguments, state = mapped() else step, arguments, state = network(way) end
  if mode ~= "eager" then step = mx.compile(step, {inputs = state, outputs = state}) end
  mx.eval(state)
  local values = {}
  local function good(i)
    local l = step(arguments(i))
    values[#values + 1] = l
    mx.eval(l, state)
  end
  local function fails(f)
    if not bad then return end
    local ok, err = pcall(f)
    if ok then error("the step did not fail", 2) end
    mx.eval(state)
  end
  local function failing() mx.eval(step(arguments(9, true)), state) end
  fails(failing)
  good(1)
  fails(failing)
  fails(failing)
  good(2)
  fails(function() -- the value is read first
    local l = step(arguments(9, true))
    mx.eval(l)
  end)
  values[#values + 1] = step(arguments(3)) -- that nobody reads yet
  fails(function() -- in the midst of what is not computed
    step(arguments(9, true))
    mx.eval(step(arguments(10)), state)
  end)
  good(4)
  fails(function()
    mx.async_eval(step(arguments(9, true)), state)
    mx.async_eval(step(arguments(10)), state)
    mx.synchronize()
  end)
  good(5)
  return {values, state, mx.random.state[1]}
end
