-- mx.compile: whatever a function reaches and a script may change is read again at each call. Each case is a function
-- and a change; the compiled function must give what the function gives, before and after.
local x = mx.array({1, 2})
local function stays_true(name, f, change, ...)
  for _, options in ipairs({{shapeless = false}, {shapeless = true}}) do
    local compiled = mx.compile(f, options)
    for _ = 1, 2 do same(compiled(x, ...), f(x, ...):tolist()) end
    change(2)
    local want = f(x, ...):tolist()
    for _ = 1, 2 do same(compiled(x, ...), want) end
    change(1)
    for _ = 1, 2 do same(compiled(x, ...), f(x, ...):tolist()) end
    assert(compiled:explain():find(" 2 traces", 1, true) or compiled:explain():find(" 1 trace,", 1, true), name)
    change(1)
  end
end
local function either(a, b) return function(i) return i == 1 and a or b end end

-- functions: of Lua, of mx, of Lua's libraries
do
  local pick = either(function(a) return a + 1 end, function(a) return a * 10 end)
  local act = pick(1)
  stays_true("a function", function(a) return act(a) end, function(i) act = pick(i) end)
end
do
  local pick = either(mx.exp, mx.negative)
  local held = {op = pick(1)}
  stays_true("a function of mx", function(a) return held.op(a) end, function(i) held.op = pick(i) end)
end
do
  local pick = either(math.sin, math.cos)
  local number = pick(1)
  stays_true("a function of Lua", function(a) return a * number(0) end, function(i) number = pick(i) end)
end
-- methods behind a metatable
do
  local pick = either({__index = {forward = function(_, a) return a + 1 end}},
    {__index = {forward = function(_, a) return a * 10 end}})
  local model = setmetatable({}, pick(1))
  stays_true("a method", function(a) return model:forward(a) end, function(i) setmetatable(model, pick(i)) end)
end
-- kernels
do
  local function kernel(body) return mx.fast.metal_kernel{name = "k", input_names = {"a"}, output_names = {"o"},
    source = "uint i = thread_position_in_grid.x; o[i] = " .. body .. ";"} end
  local pick = either(kernel("a[i] + 1"), kernel("a[i] * 10"))
  local k = pick(1)
  stays_true("a kernel", function(a) return k{inputs = {a}, grid = a, threadgroup = {2, 1, 1}, output_shapes = {a},
    output_dtypes = {a.dtype}} end, function(i) k = pick(i) end)
end
-- transformed functions: which, and what they reach
for name, transform in pairs({
  grad = function(f) return mx.grad(function(a) return mx.sum(f(a)) end) end,
  second = function(f)
    local both = mx.value_and_grad(function(a) return mx.sum(f(a)) end)
    return function(a) local value, g = both(a) return value * g end
  end,
  vmap = mx.vmap, checkpoint = mx.checkpoint, compile = mx.compile, custom_function = mx.custom_function,
}) do
  local pick = either(function(a) return a * a end, function(a) return a * 10 end)
  local f = transform(pick(1))
  stays_true(name, function(a) return f(a) end, function(i) f = transform(pick(i)) end)
  local w, n = mx.array({3, 4}), 1
  local g = transform(function(a) return a * w * n end)
  if name ~= "vmap" then -- whose function sees one number
    stays_true(name .. ", an array", function(a) return g(a) end, function(i) w = mx.array({3 * i, 4}) end)
    local direct = transform(function(a) return a * w end)
    stays_true(name .. ", compiled itself", direct, function(i) w = mx.array({5 * i, 4}) end)
  end
  stays_true(name .. ", a number", function(a) return g(a) end, function(i) n = i end)
end
do
  local pick = either(mx.vmap(function(a) return a * 2 end, 0, 0), mx.vmap(function(a) return a * 2 end, 0, 1))
  local f = pick(1)
  stays_true("a transform's arguments", function(a) return f(mx.stack({a, a + 1, a * 5})) end,
    function(i) f = pick(i) end)
end
-- other values
do
  local z = mx.complex(3, 4)
  stays_true("a complex number", function(a) return mx.abs(a * z) end, function(i) z = mx.complex(3 * i, 4) end)
  local d = mx.float32
  stays_true("a dtype", function(a) return (a + 0.5):astype(d) end, function(i) d = i == 1 and mx.float32 or mx.int32 end)
  local v = 1
  stays_true("a type", function(a) return type(v) == "number" and a or a * 5 end, function(i) v = i == 1 and 1 or "1" end)
end
-- keys of tables beside 1..n and strings, deep tables, modules of the script's own
for _, key in ipairs({0, -3, 1.5, 7, true, false, mx.float32, x, print}) do
  local t = {[key] = mx.array({1, 3})}
  stays_true("key " .. tostring(key), function(a) return a * t[key] end, function(i) t[key] = mx.array({i, 3}) end)
  local n = {[key] = 1}
  stays_true("key of a number", function(a) return a * n[key] end, function(i) n[key] = i end)
end
do
  local moved = {[0] = 5}
  stays_true("the key alone", function(a) return a * (moved[0] or 7) end,
    function(i) moved[0], moved[-1] = i == 1 and 5 or nil, i == 2 and 5 or nil end)
  local deep, last = {}, nil
  last = deep
  for _ = 1, 1000 do last.next = {} last = last.next end
  last.w = mx.array({1})
  stays_true("deep", function(a)
    local at = deep
    while at.next do at = at.next end
    return a * at.w
  end, function(i) last.w = mx.array({i}) end)
  for _ = 1, 10000 do last.next = {w = last.w} last = last.next end
  fails("[compile] what the function reaches is nested deeper than 10000 levels",
    mx.compile(function(a) return a, deep end), x)
  local M = {scale = mx.array({1})}
  package.loaded["a.module.of.the.test"] = M
  stays_true("a module", function(a) return a * M.scale end, function(i) M.scale = mx.array({i}) end)
end
-- functions and trees among the arguments
do
  local n, w = 1, mx.array({1, 1})
  local function inner(a) return a * n + w end
  stays_true("an argument's number", function(a, f) return f(a) end, function(i) n = i end, inner)
  stays_true("an argument's array", function(a, f) return f.g(a) end, function(i) w = mx.array({i, 1}) end, {g = inner})
  local p = {[0] = mx.array({1}), [true] = mx.array({2}), n = 1}
  stays_true("an argument's keys", function(a, q) return a * q[0] + q[true] * q.n end, function(i)
    p[0], p[true], p.n = mx.array({i}), mx.array({2 * i}), i
  end, p)
  local class = {}
  class.__index = class
  function class.forward(_, a) return a + 1 end
  local plus, times = class.forward, function(_, a) return a * 10 end
  stays_true("an argument's class", function(a, model) return model:forward(a) end,
    function(i) class.forward = i == 1 and plus or times end, setmetatable({w = w}, class))
end
-- gradients reach arrays under any key
do
  local g = mx.grad(function(p) return mx.sum(p[0] * 2 + p[true] * 3 + p.w * 4) end)(
    {[0] = mx.ones({2}), [true] = mx.ones({2}), w = mx.ones({2})})
  same(g[0], {2, 2})
  same(g[true], {3, 3})
  same(g.w, {4, 4})
end
-- functions that come and go: none is taken for an earlier one that had its address
do
  local act
  local compiled = mx.compile(function(a) return act(a) end)
  for i = 1, 300 do
    act = assert(loadstring("return function(a) return a * " .. i .. " end"))()
    same(compiled(x), {i, 2 * i})
    if i % 50 == 0 then collectgarbage() end
  end
  assert(compiled:explain():find("cache: 64 of 64 traces, 236 evicted", 1, true), compiled:explain())
end
