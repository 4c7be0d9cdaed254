-- mx.utils and mx.optimizers. The trees and numbers are those of MLX's documentation and of its answers.
local optim, utils = require("mx.optimizers"), require("mx.utils")
assert(optim == mx.optimizers and utils == mx.utils)

local function paths(tree, ...)
  local out = {}
  for i, leaf in ipairs(utils.tree_flatten(tree, ...)) do out[i] = leaf[1] .. "=" .. tostring(leaf[2]) end
  return table.concat(out, " ")
end
assert(paths({{{0}}}) == "0.0.0=0")
assert(paths({{{0}}}, ".hello") == "hello.0.0.0=0")
assert(paths({b = {1, 2}, a = {x = 3, [4] = 4}, [true] = 5}) == "true=5 a.3=4 a.x=3 b.0=1 b.1=2")
assert(paths(7) == "=7")
assert(paths({}) == "")
assert(paths({a = {1, 2}}, {is_leaf = function(t) return t[1] == 1 end}):match("^a=table"))
assert(utils.tree_flatten({a = {b = 1}}, {destination = {}})["a.b"] == 1)
local list = {{"first", 0}}
assert(utils.tree_flatten({a = {b = 1}}, {destination = list}) == list)
assert(#list == 2 and list[2][1] == "a.b")

local t = utils.tree_unflatten({{"hello.world", 42}})
assert(t.hello.world == 42)
assert(utils.tree_unflatten({["hello.world"] = 42}).hello.world == 42)
assert(utils.tree_unflatten({{"", 7}}) == 7)
t = utils.tree_unflatten({{"a.1.w", 1}, {"a.0.w", 2}, {"b.2", 3}})
assert(t.a[1].w == 2 and t.a[2].w == 1 and #t.b == 3 and next(t.b[1]) == nil and t.b[3] == 3)
t = utils.tree_unflatten({{"01", 1}, {"1", 2}}) -- two keys, one number
assert(t["01"] == 1 and t["1"] == 2)
assert(next(utils.tree_unflatten({})) == nil)
fails("[utils.tree_unflatten] tree[1] is no pair", utils.tree_unflatten, {{1, 2}})
fails("[utils.tree_unflatten] element 5000000 comes behind element -1", utils.tree_unflatten, {{"5000000", 2}})

local tree = {a = {1, 2, 3}, b = {4, 5}}
assert(utils.tree_reduce(function(acc, v) return acc + v end, tree, 0) == 15)
assert(utils.tree_reduce(function(acc, v) return acc * v end, tree) == 120)
assert(utils.tree_reduce(function(acc, v) return acc + #v end, tree, 0, function(v) return v[1] ~= nil end) == 5)
assert(#utils.tree_reduce(function(first) return first end, tree, {is_leaf = function(v) return v[1] ~= nil end}) == 3)
t = utils.tree_map(function(a, b, c) return a + b * c end, tree, {a = {1, 1, 1, 9}, b = {2, 2}, c = 1}, tree)
assert(t.a[3] == 6 and t.b[2] == 15 and #t.a == 3 and t.c == nil)
t = utils.tree_map(function(v) return #v end, tree, {is_leaf = function(v) return v[1] ~= nil end})
assert(t.a == 3 and t.b == 2)
fails("[utils.tree_map] tree 2 has nothing at a.2", utils.tree_map, function() end, tree, {a = {1, 1}, b = {1, 1}})
fails("[utils.tree_map] tree 2 has number at a, where the first tree has a table", utils.tree_map, function() end, tree,
  {a = 1, b = {1, 1}})
local seen = {}
utils.tree_map_with_path(function(path) seen[#seen + 1] = path return 0 end, {model = {{w = 0, b = 1}, {w = 0}}})
assert(table.concat(seen, " ") == "model.0.b model.0.w model.1.w")
utils.tree_map_with_path(function(path) assert(path == "p.0") end, {1}, {path = "p"})
utils.tree_map_with_path(function(path) assert(path == nil) end, 1)
assert(select("#", utils.tree_map(function(a, b) return a, b, nil end, 1, 2)) == 3)
seen = {} -- keys in their order; what fn gives no value for is not there, and errors of fn pass
t = utils.tree_map(function(v) seen[#seen + 1] = v if v ~= 3 then return v end end,
  {[true] = 6, b = 8, [2.5] = 4, 1, 2, a = 7, [false] = 5, [-1] = 3})
assert(table.concat(seen, " ") == "1 2 3 4 5 6 7 8" and t[-1] == nil and t[2] == 2 and t.b == 8)
assert(not pcall(utils.tree_map, function() error({}) end, {1}))
assert(coroutine.wrap(function() -- other trees may have fields by their class, as modules do
  return utils.tree_map(function(_, v) return v end, {w = 1}, setmetatable({}, {__index = {w = 2}}))
end)().w == 2)
do -- trees without end
  local loop = {}
  loop.inner = loop
  fails("[utils.tree_map] a table is nested deeper than 200 levels", utils.tree_map, function() end, loop)
  fails("[nn.Module.update] a table is nested deeper than 200 levels", function()
    local l = mx.nn.Linear(1, 1)
    l.inner = loop
    l:update{inner = loop}
  end)
end

t = utils.tree_merge({a = {1}, b = {}, c = 3}, {b = {x = 2}, d = {}})
assert(t.a[1] == 1 and t.b.x == 2 and t.c == 3 and next(t.d) == nil)
t = utils.tree_merge({1, 2, {3}}, {{}, {}, {}, 4})
assert(t[1] == 1 and t[3][1] == 3 and t[4] == 4)
assert(utils.tree_merge({a = 1}, {a = 2}, function(a, b) return a + b end).a == 3)
fails("[utils.tree_merge] both trees have something at a.0", utils.tree_merge, {a = {1}}, {a = {2}})

for _, name in ipairs{"Adam", "AdamW", "Adamax", "Lion"} do
  local broken = optim[name](0.1)
  broken.betas = {{}, 0.9}
  fails("[optimizers] b1 is a table, want an array or a number", broken.apply_gradients, broken, {mx.array(1)},
    {mx.array(1)})
end

-- the state is there after init, before a step, and the first step makes it otherwise
local o = optim.SGD{learning_rate = 1e-1, momentum = 0.9}
dtype(o.step, "uint64")
assert(o.state.weight == nil)
o:init({weight = mx.ones({2, 2}), bias = mx.ones({2})})
assert(paths(o.state):match("bias.v=.*learning_rate=.*step=.*weight.v="))
assert(tostring(o) == "mx.optimizers.SGD")

-- update changes a tree of parameters; state that is loaded goes on as state that was never saved
local function gradients(p) return utils.tree_map(function(x) return x * 0.5 end, p) end
local function run(opt, p, steps)
  for _ = 1, steps do opt:update(p, gradients(p)) end
  return p
end
local function fresh() return {layers = {{w = mx.ones({2, 3}), b = mx.ones({3}, mx.bfloat16)}, {w = mx.ones({2})}}} end
local function adam() return optim.Adam(optim.cosine_decay(0.1, 10), {bias_correction = true}) end
local whole = run(adam(), fresh(), 6)
local first = adam()
local half = run(first, fresh(), 3)
local file = os.tmpname() .. ".safetensors"
mx.save_safetensors(file, utils.tree_flatten({p = half, s = first.state}, {destination = {}}))
local loaded = utils.tree_unflatten(mx.load(file))
os.remove(file)
local second = adam()
second.state = loaded.s
run(second, loaded.p, 3)
assert(mx.array_equal(whole.layers[1].b, loaded.p.layers[1].b):item())
assert(mx.array_equal(whole.layers[1].w, loaded.p.layers[1].w):item())
assert(mx.array_equal(whole.layers[2].w, loaded.p.layers[2].w):item())
assert(second.step:item() == 6)

-- parameters that come later get a state of their own; a single array has one too
o = optim.Adam(0.1)
o:init({a = mx.ones({2})})
o:init({a = mx.ones({2}), b = {mx.ones({3})}})
assert(o.state.b[1].m.size == 3)
local alone = optim.SGD(0.5, 0.5)
same(alone:apply_gradients(mx.array({1, 2}), mx.array({1, 1})), {0.5, 0})
same(alone:apply_gradients(mx.array({1, 2}), mx.array({0.5, 0})), {-0.25, -1.5})
same(alone.state.v, {1.5, 3})

-- the gradients may be of a part of the parameters; no gradients move the schedule on
local part = optim.SGD(0.5):apply_gradients({a = mx.array(1)}, {a = mx.array(1), b = mx.array(2)})
assert(part.b == nil and part.a:item() == 0.5)
o = optim.SGD(optim.exponential_decay(1e-1, 0.9))
for _ = 1, 5 do o:update({}, {}) end
same(o.learning_rate, 0.06561)
o = optim.Adam(optim.linear_schedule(0, 1e-1, 100))
same(o.learning_rate, 0)
for _ = 1, 101 do o:update({}, {}) end
same(o.learning_rate, 0.1)
o.learning_rate = 0.25
same(o.state.learning_rate, 0.25)

-- an optimizer of one's own
local signs = optim.Optimizer({learning_rate = function(step) return 0.25 / (step + 1) end})
function signs:init_single(p, state) state.count = mx.zeros_like(p) end
function signs:apply_single(g, p, state)
  state.count = state.count + 1
  return p - self.learning_rate * mx.sign(g)
end
local p = {w = mx.array({1, -1})}
for _ = 1, 2 do signs:update(p, p) end
same(p.w, {0.625, -0.625})
same(signs.state.w.count, {2, 2})
fails("[optimizers.Optimizer] it has no init_single", function() optim.Optimizer():update(p, p) end)

-- several optimizers
local multi = optim.MultiOptimizer({optim.SGD(0.5), optim.SGD(0.25)}, {function(path) return path:match("^a") end})
p = {a = mx.array(1), b = {mx.array(1)}}
multi:update(p, {a = mx.array(1), b = {mx.array(1)}})
same(p.a, 0.5)
same(p.b[1], 0.75)
assert(#multi.state.states == 2 and multi.step:item() == 1)
multi.learning_rate = 1
same(multi.state.states[2].learning_rate, 1)
multi.state = {states = {optim.SGD(0.125).state, optim.SGD(0.125).state}}
same(multi.learning_rate, 0.125)
fails("[optimizers.MultiOptimizer] state is no table {states = ...} of 2 states", function() multi.state = {states = {}} end)
fails("[optimizers.MultiOptimizer] filters has 0 functions, want 1", optim.MultiOptimizer, {optim.SGD(1), optim.SGD(1)})

local clipped, norm = optim.clip_grad_norm({w1 = mx.array({2, 3}), w2 = mx.array({1})}, 2)
same(norm, 3.7416575)
same(clipped.w1, {1.0690447, 1.6035671})
clipped, norm = optim.clip_grad_norm({mx.full({4}, 300, mx.float16)}, {max_norm = 1})
same(norm, 600)
dtype(clipped[1], "float16")

fails("[optimizers.SGD] nesterov wants momentum and no dampening: momentum is 0, dampening 0", optim.SGD, 1, {nesterov = true})
fails("[optimizers.SGD] learning_rate is missing", optim.SGD)
fails("[optimizers.SGD] learning_rate is a boolean, want a number, an array or a schedule", optim.SGD, false)
fails("[optimizers.SGD] learning_rate is a boolean", function() optim.SGD(1).learning_rate = true end)
fails("[optimizers.RMSprop] alpha is -1, want at least 0", optim.RMSprop, 1, -1)
fails("[optimizers.RMSprop] eps is 0, want more than 0", optim.RMSprop, 1, {eps = 0})
fails("[optimizers.Adagrad] eps is 0, want more than 0", optim.Adagrad, 1, 0)
fails("[optimizers.AdaDelta] rho is -1, want at least 0", optim.AdaDelta, 1, -1)
fails("[optimizers.Adam] beta2 is 1, want at least 0 and below 1", optim.Adam, 1, {0.9, 1})
fails("[optimizers.AdamW] eps is -1, want at least 0", optim.AdamW, 1, {eps = -1})
fails("[optimizers.Lion] beta1 is nil, want at least 0", optim.Lion, 1, {})
fails("[optimizers.Adafactor] learning_rate is missing", optim.Adafactor, {relative_step = false})
fails("[optimizers.clip_grad_norm] max_norm is -1, want at least 0", optim.clip_grad_norm, {}, -1)
fails("[optimizers.step_decay] step_size is 0, want at least 1", optim.step_decay, 1, 0.5, 0)
fails("[optimizers.cosine_decay] decay_steps is 0, want at least 1", optim.cosine_decay, 1, 0)
fails("[optimizers.linear_schedule] steps is 0, want at least 1", optim.linear_schedule, 1, 2, 0)
fails("[optimizers.join_schedules] schedules is empty, want at least 1", optim.join_schedules, {}, {})
fails("[optimizers.join_schedules] boundaries has 2 steps, want 1 for 2 schedules", optim.join_schedules, {math.sin, math.sin}, {1, 2})
fails("[optimizers.SGD] state is a number, want a table", function() optim.SGD(1).state = 1 end)

-- a dot in the place of a colon, betas that are one number, and a state that is none
local plain = optim.Adam(0.1)
fails("[Optimizer.update] the first argument is a table, want an object of class Optimizer: methods are called with a colon",
  plain.update, {w = mx.ones({1})}, {w = mx.ones({1})})
fails("[Optimizer.init] the first argument is a table", plain.init, {w = mx.ones({1})})
fails("[optimizers.Adam] betas is 0.9, want two numbers", optim.Adam, 0.1, {betas = 0.9})
plain.state = {}
fails("[optimizers.Adam] state has no step", plain.update, plain, {w = mx.ones({1})}, {w = mx.ones({1})})
local both, tree = optim.MultiOptimizer{optim.SGD(1)}, {w = mx.ones({1})}
both:update(tree, {w = mx.ones({1})})
assert(tree.w:item() == 0)

do -- a state of another model, whose shapes would broadcast
  local function stepped(opt, n)
    local model = nn.Linear(n, 3)
    local grads = mx.utils.tree_map(mx.ones_like, model:trainable_parameters())
    opt:update(model, grads)
    return model, grads
  end
  local opt, other = optim.Adam(0.1), optim.Adam(0.1)
  local model, grads = stepped(opt, 4)
  stepped(other, 1)
  opt.state = other.state
  local before = model.weight
  fails("[optimizers.Adam] the state has weight.", opt.update, opt, model, grads)
  fails("of shape (3, 1), want (3, 4): it is that of another model", opt.update, opt, model, grads)
  assert(model.weight == before and opt.step:item() == 1, "nothing is half-written")
  other = optim.Adam(0.1)
  stepped(other, 4)
  opt.state = other.state
  opt:update(model, grads)
  assert(opt.step:item() == 2)
end
