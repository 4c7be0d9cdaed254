-- Compiled steps beside the same steps uncompiled: results and state have the same texts after each of them.
local nn, optim, utils = require("mx.nn"), require("mx.optimizers"), require("mx.utils")

local function text(tree)
  local out = {}
  for i, leaf in ipairs(utils.tree_flatten(tree)) do out[i] = leaf[1] .. " = " .. tostring(leaf[2]) end
  return table.concat(out, "\n")
end

-- alike runs what make gives, a step, its state, and a function of the step's number that gives arguments, both ways.
local function alike(name, traces, make, steps)
  local texts = {}
  for _, how in ipairs({"plain", "compiled", "shapeless"}) do
    mx.random.seed(5)
    local step, state, arguments = make()
    local f = step
    if how ~= "plain" then f = mx.compile(step, {inputs = state, outputs = state, shapeless = how == "shapeless"}) end
    local out = {}
    for i = 1, steps or 5 do
      local results = {f(arguments(i))}
      mx.eval(results, state)
      out[i] = text(results) .. "\n" .. text(state)
    end
    texts[how] = table.concat(out, "\n\n")
    assert(texts[how] == texts.plain, name .. ", " .. how .. ":\n" .. texts[how] .. "\n--- plain:\n" .. texts.plain)
    if how == "compiled" then
      assert(f:explain():find(" " .. traces .. " trace", 1, true), name .. ": " .. f:explain())
    end
  end
end

local function number(i) return mx.array(i) end

alike("dropout, running statistics, a schedule", 2, function()
  local m = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm(4), nn.Dropout(0.5), nn.Linear(4, 1))
  local o = optim.Adam(optim.cosine_decay(0.1, 8), {bias_correction = true})
  local grads = nn.value_and_grad(m, function(model, x, y) return nn.losses.mse_loss(model(x), y) end)
  local x, y = mx.random.normal({8, 3}), mx.random.normal({8, 1})
  return function(a, b)
    local loss, g = grads(m, a, b)
    o:update(m, g)
    return loss
  end, {m.state, o.state, mx.random.state}, function() return x, y end
end)

alike("two optimizers and clipping", 2, function()
  local m = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
  local o = optim.MultiOptimizer({optim.Muon(0.02), optim.AdamW(optim.linear_schedule(0, 0.1, 5))},
    {function(_, w) return w.ndim > 1 end})
  local grads = nn.value_and_grad(m, function(model, x) return model(x):square():mean() end)
  return function(x)
    local loss, g = grads(m, x)
    o:update(m, (optim.clip_grad_norm(g, 1)))
    return loss
  end, {m.state, o.state}, function(i) return mx.ones({2, 3}) * i end
end)

alike("gradients that add up", 2, function()
  local m, sum = nn.Linear(3, 2), {n = mx.array(0)}
  local grads = nn.value_and_grad(m, function(x) return m(x):square():sum() end)
  return function(x)
    local loss, g = grads(x)
    sum.g, sum.n = sum.g and utils.tree_map(mx.add, sum.g, g) or g, sum.n + 1
    return loss
  end, {m.state, sum}, function(i) return mx.ones({2, 3}) * i end
end)

alike("tied weights", 1, function()
  local e = nn.Embedding(5, 4)
  local m = {e = e, head = {weight = e.weight}}
  return function(x)
    local w = e.weight * 0.9 + x
    e.weight, m.head.weight = w, w
    return m.head.weight:sum()
  end, m, number
end)

alike("tied weights that come apart", 2, function()
  local w = mx.array(1)
  local s = {a = w, b = w}
  return function(x) s.a = s.a + x return s.b end, s, number
end)

alike("arrays that become one", 1, function()
  local s = {a = mx.array(1), b = mx.array(2)}
  return function(x) s.b = s.a s.a = s.a + x return s.b end, s, number
end)

alike("a capture that is an argument", 1, function()
  local s = {w = mx.ones({3})}
  return function(w) s.w = s.w + w return w * s.w end, s, function() return s.w end
end)

alike("tables that change places, and new ones", 1, function()
  local s = {a = {w = mx.array(1)}, b = {w = mx.array(2)}, layers = {{w = mx.array(3)}, {w = mx.array(4)}}}
  return function(x)
    s.a, s.b = s.b, s.a
    s.a.w = s.a.w + x
    s.layers = {{w = s.layers[2].w + x}, {w = s.layers[1].w * x}}
    return s.a.w
  end, s, number
end)

alike("a list that grows", 5, function()
  local s = {list = {}}
  return function(x) s.list[#s.list + 1] = x * 2 return x end, s, number
end)

alike("a list that shrinks", 5, function()
  local s = {list = {}}
  for i = 1, 6 do s.list[i] = mx.array(i) end
  return function(x) table.remove(s.list) return x end, s, number
end)

alike("a flag and a function", 2, function()
  local s = {a = mx.array(1), flag = false, act = nn.relu}
  return function(x)
    s.flag, s.act = not s.flag, s.act == nn.relu and nn.sigmoid or nn.relu
    s.a = s.act(s.flag and s.a + x or s.a * x)
    return s.a
  end, s, number
end)

alike("an array that is changed in place", 1, function()
  local s = {w = mx.zeros({4}), i = mx.array(0, mx.int32)}
  return function(x)
    s.w["1:3"] = x
    s.i = s.i + 1
    s.w[s.i % 4] = 5
    return s.w:sum()
  end, s, function(i) return mx.array({i, 2 * i}) end
end)

-- what happens between the calls: gradients that two functions add up and apply, a rate, a mode, a state that is loaded
local function both(run) assert(run(true) == run(false), run(true) .. "\n--- plain:\n" .. run(false)) end

both(function(compiled)
  mx.random.seed(1)
  local m, o, sum = nn.Linear(3, 2), optim.Adam(0.1), {}
  local state = {m.state, o.state, sum}
  local grads = nn.value_and_grad(m, function(x) return m(x):square():sum() end)
  local function add(x)
    local loss, g = grads(x)
    sum.g = sum.g and utils.tree_map(mx.add, sum.g, g) or g
    return loss
  end
  local function apply()
    o:update(m, sum.g)
    sum.g = nil
  end
  if compiled then
    add = mx.compile(add, {inputs = state, outputs = state})
    apply = mx.compile(apply, {inputs = state, outputs = state})
  end
  for i = 1, 6 do
    add(mx.ones({1, 3}) * i)
    if i % 2 == 0 then apply() end
    if i == 4 then o.learning_rate = 0.5 end
    mx.eval(state)
  end
  return text(state)
end)

both(function(compiled)
  mx.random.seed(1)
  local m, x, out = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm(2), nn.Dropout(0.5)), mx.array({{1, 2}, {3, 5}}), {}
  local f = function(a) return m(a) end
  if compiled then f = mx.compile(f, {inputs = {m.state, mx.random.state}, outputs = {m.state, mx.random.state}}) end
  for i = 1, 6 do
    m:train(i % 3 ~= 0)
    out[i] = f(x)
  end
  return text({out, m})
end)

-- a step below gradients, batches, an outer step, and itself
both(function(compiled)
  local s, out = {n = mx.array(1)}, {}
  local inner = function(x) s.n = s.n + x:sum() return x * s.n end
  if compiled then inner = mx.compile(inner, {inputs = s, outputs = s}) end
  local outer = function(x) return inner(x) + inner(x * 2) end
  if compiled then outer = mx.compile(outer, {inputs = s, outputs = s}) end
  for i = 1, 3 do
    out[#out + 1] = outer(mx.array({i, 1}))
    out[#out + 1] = mx.grad(function(x) return outer(x):sum() end)(mx.array({i, 2}))
    out[#out + 1] = mx.vmap(function(w) return w * mx.stop_gradient(s.n) end)(mx.array({1, 2}))
  end
  return text({out, s})
end)
local function counting(compiled)
  local s = {n = mx.array(0)}
  local f = function(x) s.n = s.n + 1 return x * s.n end
  if compiled then f = mx.compile(f, {inputs = s, outputs = s}) end
  local out = {}
  for i = 1, 3 do out[i] = mx.vmap(f)(mx.array({1, 2})) end
  return text({out, s})
end
both(counting)
local s, again = {a = mx.array(1)}, nil
again = mx.compile(function(x)
  if x.ndim == 1 then return again(x:sum()) end
  s.a = s.a + x
  return s.a
end, {inputs = s, outputs = s})
same(again(mx.array({1, 2})), 4)
same(again(mx.array({1, 2})), 7)

-- an error in the middle, at whatever depth, leaves model, optimizer and random state as they were
mx.random.seed(2)
local m, o = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5), nn.BatchNorm(2)), optim.Adam(0.1)
local state = {m.state, o.state, mx.random.state}
local failing = false
local grads = nn.value_and_grad(m, function(x)
  local y = m(x):sum()
  if failing then error("in the gradient") end
  return y
end)
local step = mx.compile(function(x)
  local loss, g = grads(x)
  o:update(m, g)
  return loss
end, {inputs = state, outputs = state})
for i = 1, 3 do
  failing = true
  local before = text(state)
  fails("in the gradient", step, mx.ones({i + 1, 2}))
  assert(text(state) == before)
  fails("[compile]|depends on an input of compile", mx.compile(function(x)
    local loss, g = grads(x)
    return loss:item()
  end, {inputs = state, outputs = state}), mx.ones({i + 1, 2}))
  assert(text(state) == before)
  failing = false
  step(mx.ones({i + 1, 2}))
end
assert(o.step:item() == 3)
