-- mx.compile with outputs: what a function writes into their trees is written at each replay.
local optim, utils = require("mx.optimizers"), require("mx.utils")
local function equal(a, b)
  local flat = utils.tree_flatten(b, {destination = {}})
  local n = 0
  for _, leaf in ipairs(utils.tree_flatten(a)) do
    local x, y = leaf[2], flat[leaf[1]]
    assert(x.dtype == y.dtype and mx.array_equal(x, y):item(), leaf[1])
    n = n + 1
  end
  for _ in pairs(flat) do n = n - 1 end
  assert(n == 0, "there are other leaves")
end
local function traces(f, n) assert(f:explain():find(" " .. n .. " trace", 1, true), f:explain()) end

-- a training loop gives the same bytes with and without compile: dropout, random state, a schedule, an optimizer whose
-- first step adds its state. It is traced twice: before that and after it.
local function dropout(x, p) return mx.where(mx.random.bernoulli(1 - p, {shape = x.shape}), x / (1 - p), 0) end
local function forward(p, x)
  local h = dropout(mx.maximum(mx.matmul(x, p.layers[1].w) + p.layers[1].b, 0), 0.25)
  return mx.matmul(h, p.layers[2].w)
end
local function loss(p, x, y) return mx.mean(mx.square(forward(p, x):squeeze(-1) - y)) end
local makers = {
  function() return optim.Adam(optim.cosine_decay(0.1, 8), {bias_correction = true}) end,
  function() return optim.SGD(0.1, {momentum = 0.9}) end,
  function() return optim.Adafactor() end,
  function() return optim.MultiOptimizer({optim.Muon(0.02), optim.Lion(0.01)}, {function(_, x) return x.ndim > 1 end}) end,
}
for _, options in ipairs({{}, {shapeless = true}, {check = true}}) do
  for _, make in ipairs(makers) do
    local function train(compiled)
      mx.random.seed(3)
      local p = {layers = {{w = mx.random.normal({3, 4}), b = mx.zeros({4})}, {w = mx.random.normal({4, 1})}}}
      local opt = make()
      local function step(x, y)
        local value, g = mx.value_and_grad(loss)(p, x, y)
        opt:update(p, g)
        return value
      end
      local f = step
      if compiled then
        local state = {p, opt.state, mx.random.state}
        f = mx.compile(step, {inputs = state, outputs = state, shapeless = options.shapeless, check = options.check})
      end
      local x, y, values = mx.arange(12):reshape({4, 3}) * 0.1, mx.array({1, 2, 3, 4}), {}
      for i = 1, 8 do
        values[i] = f(x, y)
        mx.eval(values[i], p, opt.state)
      end
      if compiled then traces(f, 2) end
      return {values, p, opt.state, mx.random.uniform()}
    end
    equal(train(true), train(false))
  end
end

-- random state by itself, in one of both or in a list
for _, state in ipairs({mx.random.state, {mx.random.state}}) do
  mx.random.seed(1)
  local f = mx.compile(function() return mx.random.uniform() end, {inputs = state, outputs = state})
  local a, b = f(), f()
  mx.random.seed(1)
  same(mx.random.uniform(), a:item())
  same(mx.random.uniform(), b:item())
end

-- the tables are looked up at each call: they may be others of the same structure
local model = {layers = {{w = mx.array(1)}, {w = mx.array(10)}}}
local up = mx.compile(function() for _, l in ipairs(model.layers) do l.w = l.w + 1 end end, {outputs = {model}})
up() up()
local old = model.layers[1]
model.layers[1] = {w = mx.array(5)}
up()
same(model.layers[1].w, 6)
same(model.layers[2].w, 13)
same(old.w, 3)
traces(up, 1)

-- new tables, entries that move and that go, flags
local s = {a = mx.array(1), b = mx.array(2), flag = false}
local names = {}
local move = mx.compile(function(x)
  s.a, s.b = s.b, s.a -- the arrays change places
  s.made = {x = x + s.a, twice = {}}
  s.made.twice[1], s.made.twice[2] = s.made.x, s.made
  s.gone = nil
  s.flag = not s.flag
  s.class = setmetatable({}, names)
end, {outputs = s})
for i = 1, 6 do
  s.gone = mx.array(0)
  move(mx.array(i))
  same(s.a, i % 2 == 1 and 2 or 1)
  same(s.b, i % 2 == 1 and 1 or 2)
  same(s.made.x, i + s.a:item())
  assert(s.made.twice[1] == s.made.x and s.made.twice[2] == s.made and s.gone == nil and s.flag == (i % 2 == 1))
  assert(getmetatable(s.class) == names)
  s.made = {x = s.made.x} -- of a structure that does not depend on the step
end

-- tied weights are one array, before and after
local tied = {embed = {w = mx.array({1, 2})}}
tied.head = {w = tied.embed.w}
local tie = mx.compile(function(x)
  local w = tied.embed.w + x
  tied.embed.w, tied.head.w = w, w
end, {inputs = tied, outputs = tied})
for i = 1, 3 do
  tie(mx.array(1))
  assert(rawequal(tied.embed.w, tied.head.w))
  same(tied.head.w, {1 + i, 2 + i})
end
assert(select(2, tie:explain():gsub("capture: tied", "")) == 1, tie:explain())
traces(tie, 1)
tied.head.w = tied.head.w + 0 -- another structure
tie(mx.array(1))
traces(tie, 2)

-- an array that is changed in place is the variable's
local cache = {k = mx.zeros({4}), n = mx.array(0, mx.int32)}
local alias = cache.k
local put = mx.compile(function(v)
  cache.k["1:3"] = v
  cache.n = cache.n + 1
  return cache.k:sum()
end, {outputs = cache})
same(put(mx.array({1, 2})), 3)
same(put(mx.array({3, 4})), 7)
same(cache.k, {0, 3, 4, 0})
assert(alias == cache.k and cache.n:item() == 2)
traces(put, 1)

-- inputs name what a function reads in another way, and outputs what it writes so
GLOBAL_MODEL = {w = mx.array(1)}
local global = mx.compile(function(x) GLOBAL_MODEL.w = GLOBAL_MODEL.w * x return GLOBAL_MODEL.w end,
  {inputs = {GLOBAL_MODEL}, outputs = {GLOBAL_MODEL}})
for i = 1, 3 do same(global(mx.array(2)), 2 ^ i) end
GLOBAL_MODEL.w = mx.array(10)
same(global(mx.array(2)), 20)
local read = mx.compile(function(x) return GLOBAL_MODEL.w + x end, {inputs = GLOBAL_MODEL})
same(read(mx.array(1)), 21)
GLOBAL_MODEL.w = mx.array(1)
same(read(mx.array(1)), 2)
-- a capture that is an argument too
same(mx.compile(function(w) GLOBAL_MODEL.w = w * GLOBAL_MODEL.w return GLOBAL_MODEL.w end, {outputs = {GLOBAL_MODEL}})(
  GLOBAL_MODEL.w), 1)

-- what stands still is an error that names the key and the line
local stats = {mean = mx.array(0), count = 0}
local counted = mx.compile(function(x)
  stats.mean = stats.mean + x
  stats.count = stats.count + 1
end, {outputs = stats})
fails("[compile] outputs.count changes from 0 to 1 at testdata/compile_state.lua:153: in a replay a number stands still",
  counted, mx.array(1))
assert(stats.count == 0)
same(stats.mean, 0)
local other, last = {deep = {}}, nil
local stray = mx.compile(function(x)
  stats.mean = stats.mean + x
  other.deep.mean = stats.mean * 2
end, {outputs = stats})
fails("[compile] other.deep.mean is set to an array of the trace, made at testdata/compile_state.lua:162: outputs does",
  stray, mx.array(1))
assert(other.deep.mean == nil)
same(stats.mean, 0)
fails("[compile] last[1] is set to an array of the trace, made at testdata/compile_state.lua:169", mx.compile(function(x)
  last = {x + 1}
end, {inputs = stats}), mx.array(1))
last = {kept = mx.array(2)}
mx.compile(function(x) last.made = {x + 1} last[1] = x * 2 return x end)(mx.array(1)) -- what f adds without inputs and outputs
fails("belongs to a compile trace that has ended", function() return last.made[1] + 1 end)
fails("[compile] last.kept is set to an array of the trace", mx.compile(function(x) last.kept = last.kept + x end),
  mx.array(1))
same(last.kept, 2)
fails("[compile] other.deep.x is set to an array of the trace", mx.compile(function() other.deep.x = stats.mean end,
  {inputs = stats}))
fails("[compile] stats.mean is set to an array of the trace", mx.compile(function(x) stats.mean["..."] = x end),
  mx.array(1))
same(stats.mean, 0)

-- an error during tracing restores every table
local p, opt = {w = mx.ones({2}), list = {1, 2}}, optim.Adam(0.1)
local before = {w = p.w, state = utils.tree_flatten(opt.state)}
local failing = true
local half = mx.compile(function(x)
  opt:update(p, {w = p.w * x})
  p.list[3], p.list[1], p.extra = 3, nil, {}
  other.deep.note = "written"
  setmetatable(p, names)
  if failing then error("half way") end
  p.list[3], p.list[1], p.extra = nil, 1, nil
  setmetatable(p, nil)
end, {outputs = {p, opt.state}})
fails("half way", half, mx.array(1))
assert(p.w == before.w and #p.list == 2 and p.list[1] == 1 and p.extra == nil and getmetatable(p) == nil)
assert(other.deep.note == nil and #utils.tree_flatten(opt.state) == #before.state and not opt._initialized)
failing = false
half(mx.array(1)) half(mx.array(1))
assert(opt.step:item() == 2)

-- inside of grad, vmap and an outer compile
local c = {n = mx.array(0), sum = mx.array(0)}
local inner = mx.compile(function(x)
  c.n, c.sum = c.n + 1, c.sum + x
  return x * c.n
end, {outputs = c})
same(inner(mx.array(2)), 2)
local value, g = mx.value_and_grad(function(x) return inner(x) * x end)(mx.array(3))
same(value, 18)
same(g, 12)
same(c.sum, 5)
local outer = mx.compile(function(x) return inner(x) + inner(x) end, {outputs = c})
same(outer(mx.array(1)), 3 + 4)
same(outer(mx.array(1)), 5 + 6)
same(c.n, 6)
same(c.sum, 9)
traces(outer, 1)
fails("[compile] inner.n is set to|[compile] inner.sum is set to|is set to an array of the trace",
  mx.compile(function(x) return inner(x) * 2 end), mx.array(1))
same(c.n, 6)
local d = {scale = mx.array(2)}
local scaled = mx.compile(function(x) d.scale = d.scale * 2 return x * d.scale end, {outputs = d})
same(mx.vmap(function(x) return scaled(x) + d.scale end)(mx.array({1, 2})), {8, 12})
same(d.scale, 4)

-- as the function itself where compile is disabled
mx.disable_compile()
inner(mx.array(1))
mx.enable_compile()
same(c.n, 7)
same(c.sum, 10)

-- an evaluation that finds no memory has not been, and can be tried again
local big = {w = mx.ones({500, 500}), m = mx.zeros({500, 500})}
local grow = mx.compile(function(x)
  big.m = big.m * 0.5 + big.w
  big.w = big.w * 2 + mx.matmul(big.w, big.m) * x
end, {outputs = big})
grow(mx.array(0))
mx.eval(big)
collectgarbage()
local limit = mx.set_memory_limit(1000)
grow(mx.array(0))
fails("memory limit", mx.eval, big)
mx.set_memory_limit(limit)
same(big.w[0][0], 2)
same(big.m[0][0], 1)
grow(mx.array(0))
same(big.w[0][0], 4)
same(big.m[0][0], 2.5)

-- a global, or a variable that functions share, is no place for an array of a trace; after the error each is what it was
GLOBAL_TABLE, GLOBAL_ARRAY = {deep = {}}, mx.array(7)
function GLOBAL_HELPER(x) GLOBAL_TABLE.deep.sum = x * 2 end
local shared, box = mx.array(1), {v = mx.array(1)}
local leaks = {
  ["LEAKED is set to an array of the trace, made at testdata/compile_state.lua:%d+"] = function(x) LEAKED = x + 1 return x end,
  ["GLOBAL_ARRAY is set"] = function(x) GLOBAL_ARRAY = GLOBAL_ARRAY * x return x end,
}
local strict = {
  ["shared is set to an array of the trace, made at"] = function(x) shared = shared + x return x end,
  ["GLOBAL_TABLE.deep.sum is set to an array of the trace, made at"] = function(x) GLOBAL_HELPER(x) return x end,
  ["GLOBAL_TABLE.new.list[1] is set"] = function(x) GLOBAL_TABLE.new = {list = {x * 3}} return x end,
  ["fresh is set"] = (function()
    local fresh
    return function(x) fresh = x * 2 return x, fresh end
  end)(),
}
for _, case in ipairs({{leaks, nil}, {leaks, box}, {strict, box}}) do
  for message, f in pairs(case[1]) do
    local compiled = mx.compile(function(x)
      box.v = case[2] and box.v + 1 or box.v
      return f(x)
    end, {outputs = case[2]})
    fails(message, compiled, mx.array(2))
    assert(rawget(_G, "LEAKED") == nil and GLOBAL_ARRAY:item() == 7 and shared:item() == 1 and box.v:item() == 1)
    assert(GLOBAL_TABLE.deep.sum == nil and GLOBAL_TABLE.new == nil)
  end
end
GLOBAL_TABLE.w = mx.array(1)
local good = mx.compile(function(x) GLOBAL_TABLE.w = GLOBAL_TABLE.w * x GLOBAL_TABLE.by = {x} end, {outputs = GLOBAL_TABLE})
for i = 1, 3 do good(mx.array(2)) end
same(GLOBAL_TABLE.w, 8)
same(GLOBAL_TABLE.by[1], 2)
local through = mx.compile(function(x) shared = x return shared * 2, shared end) -- a variable that the caller sets
for i = 1, 3 do
  local twice
  twice, shared = through(shared)
  same(twice, 2)
end
local global = mx.compile(function(x) GLOBAL_ARRAY = x * 2 return GLOBAL_ARRAY end)
for i = 1, 3 do GLOBAL_ARRAY = global(mx.array(i)) end
same(GLOBAL_ARRAY, 6)
LEAKED, GLOBAL_TABLE, GLOBAL_ARRAY, GLOBAL_HELPER, GLOBAL_MODEL = nil, nil, nil, nil, nil
local kept = {}
local function deep(levels)
  return mx.compile(function(x)
    kept.top = {}
    local last = kept.top
    for _ = 1, levels do last[1] = {} last = last[1] end
    return x
  end, {outputs = kept})
end
fails("[compile] what the function reaches is nested deeper than 10000 levels", deep(1e6), mx.ones(2))
same(deep(5000)(mx.ones(2)):sum(), 2)

-- What a step of training leaves out of inputs and outputs is named as its script knows it, with what to put there: no
-- field that only an optimizer or a layer knows, and no variable of the library.
do
  local nn, optim = mx.nn, mx.optimizers
  local Net = nn.class("Net")
  function Net:init() self.layers = {nn.Linear(4, 3), nn.BatchNorm(3)} end
  function Net:forward(x) return self.layers[2](self.layers[1](x)) end
  local model, x, y = Net(), mx.ones({2, 4}), mx.array({1, 2}, mx.int32)
  mx.eval(model:parameters())
  local function loss(model, x, y) return nn.losses.cross_entropy(model(x), y, {reduction = "mean"}) end
  local loss_and_grad = nn.value_and_grad(model, loss)
  for _, make in ipairs{"SGD", "Adam", "Adafactor", "MultiOptimizer"} do
    local optimizer = make == "MultiOptimizer" and
      optim.MultiOptimizer({optim.SGD(0.1), optim.Adam(0.1)}, {function(name) return name:find("bias") end}) or
      optim[make](0.1)
    local step = function(x, y)
      local value, gradients = loss_and_grad(model, x, y)
      optimizer:update(model, gradients)
      return value
    end
    local first = make == "MultiOptimizer" and "optimizer.optimizers[1].state.step" or "optimizer.state.step"
    fails("[compile] " .. first .. " is set to an array of the trace", mx.compile(step,
      {inputs = model.state, outputs = model.state}), x, y)
    fails("put optimizer.state into inputs and outputs, or return the array", mx.compile(step,
      {inputs = {model}, outputs = {model}}), x, y)
    fails("put model.state into inputs and outputs, or return the array", mx.compile(step), x, y)
    fails("put model.state into inputs and outputs", mx.compile(step, {inputs = optimizer.state, outputs = optimizer.state}), x, y)
    local state = {model.state, optimizer.state}
    mx.eval(mx.compile(step, {inputs = state, outputs = state})(x, y))
  end
  local held = {cache = {}}
  fails("put held.cache into inputs and outputs, or return the array", mx.compile(function(x) held.cache.k = x end,
    {outputs = stats}), x)
  fails("return the array, or keep it in a table that is among inputs and outputs", mx.compile(function(x)
    held = x
  end, {outputs = stats}), x)
end
-- of two calls that fail, the later one may be found out first: then the earlier one is undone as well
do
  local good = mx.arange(64)
  local bad = mx.concatenate({mx.arange(63), mx.array({64}, mx.int32)})
  local other = mx.new_stream(mx.default_device())
  mx.eval(good, bad)
  for _ = 1, 20 do
    local state = {a = mx.zeros({64, 64}), b = mx.zeros({64, 64}), n = mx.array(0)}
    mx.eval(state)
    local step = mx.compile(function(i)
      state.a, state.n = state.a + 1, state.n + 1
      local row = mx.take(state.a, i, {axis = 0})
      state.b = state.b + mx.matmul(mx.ones({64, 64}), row) * 0 + 1
      return mx.sum(row)
    end, {inputs = {state}, outputs = {state}})
    step(bad)
    local l
    mx.stream(other, function() l = step(bad) end)
    assert(not pcall(mx.eval, l))
    pcall(mx.eval, state)
    mx.eval(state)
    local a, b, n = mx.max(state.a):item(), mx.max(state.b):item(), state.n:item()
    assert(a == 0 and b == 0 and n == 0, a .. " " .. b .. " " .. n)
  end
end
-- what a failed call has changed is undone as well where only losses of later calls were asked for
do
  local good, bad = mx.array({3}, mx.int32), mx.array({64}, mx.int32)
  local streams = {mx.new_stream(mx.default_device()), mx.new_stream(mx.default_device())}
  local state
  local function body(i)
    state.a, state.n = state.a + 1, state.n + 1
    state.b = state.b + mx.take(state.a, i, {axis = 0})
    return mx.sum(state.a * state.p)
  end
  for _, compiled in ipairs{true, false} do
    state = mx.nn.Sequential()
    state.a, state.b, state.n, state.p = mx.zeros({64, 64}), mx.zeros({64, 64}), mx.array(0), mx.ones({64})
    state:freeze()
    state:unfreeze{keys = {"p"}}
    mx.eval(state)
    local step = compiled and mx.compile(body, {inputs = {state}, outputs = {state}}) or mx.nn.value_and_grad(state, body)
    step(bad)
    for k, s in ipairs(streams) do
      local l
      mx.stream(s, function() l = step(good) end)
      if k == 1 then mx.eval(l) end
    end
    assert(not pcall(mx.eval, state), "no error")
    mx.eval(state)
    local a, b, n = mx.max(state.a):item(), mx.max(state.b):item(), state.n:item()
    assert(a == 0 and b == 0 and n == 0, a .. " " .. b .. " " .. n)
  end
end
