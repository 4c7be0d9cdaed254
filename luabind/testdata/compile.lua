-- mx.compile: traces, captures by path, guards, shapeless replay.
local runs = 0
local f = mx.compile(function(x) runs = runs + 1; return mx.exp(x) * 2 + mx.sum(x) end, {shapeless = true})
for _, n in ipairs({3, 5, 1, 8, 3}) do
  local x = mx.arange(n) * 0.25
  same(f(x), (mx.exp(x) * 2 + mx.sum(x)):tolist())
end
assert(runs == 1, "the function ran " .. runs .. " times")
-- without shapeless a new shape is traced
local traced = 0
local g = mx.compile(function(x) traced = traced + 1; return x + 1 end)
g(mx.zeros({2})); g(mx.zeros({2})); g(mx.zeros({3}))
assert(traced == 2)
-- captured arrays are inputs, read at each call
local w = mx.array({1, 2, 3})
local scale = 2
local layer = {weight = w}
local h = mx.compile(function(x) return x * layer.weight * scale end)
same(h(mx.ones({3})), {2, 4, 6})
layer.weight = mx.array({10, 20, 30})
same(h(mx.ones({3})), {20, 40, 60})
scale = 3
same(h(mx.ones({3})), {30, 60, 90})
-- dimensions that are read as numbers are guards
local seen = {}
local guard = mx.compile(function(x) seen[#seen + 1] = x.shape[1]; return x / x.shape[1] end, {shapeless = true})
same(guard(mx.ones({2})), {0.5, 0.5})
same(guard(mx.ones({4})), {0.25, 0.25, 0.25, 0.25})
-- the random state goes on
local r = mx.compile(function() return mx.random.uniform({shape = {3}}) end)
local first, second = r():tolist(), r():tolist()
assert(first[1] ~= second[1])
-- several results, trees
local t = mx.compile(function(p) return {a = p.x + 1, b = {p.y}}, p.x end)
local tree, again = t({x = mx.ones({2}), y = mx.zeros({1})})
same(tree.a, {2, 2})
same(tree.b[1], {0})
same(again, {1, 1})
-- gradients through compiled functions and of them
same(mx.grad(function(x) return mx.sum(f(x)) end)(mx.zeros({2})), {4, 4})
same(mx.compile(mx.grad(function(x) return mx.sum(x * x) end))(mx.array({1, 2})), {2, 4})
-- an empty table: no keywords
same(mx.compile(function(x) return x + 1 end, {})(mx.zeros({2})), {1, 1})
same(mx.compile(function(x) return x + 1 end, {}, {}, {shapeless = true})(mx.zeros({2})), {1, 1})
same(mx.compile(function(x) return x end, {mx.ones({1})})(mx.ones({1})), {1})
fails("outputs is an array float32 (1,), want a table", mx.compile, function(x) return x end, {outputs = mx.ones({1})})
-- traces of one structure may give results of different ones
do
  local f = mx.compile(function(x) if x:dim(0) > 2 then return {a = x + 1} end return {b = x, c = x * 2} end)
  for _, n in ipairs({2, 3, 2, 3}) do
    local got = f(mx.ones({n}))
    assert((got.a ~= nil) == (n > 2) and (got.b ~= nil) == (n <= 2) and (got.c ~= nil) == (n <= 2))
  end
end
fails("[grad] argnums and argnames are empty", mx.grad, function(x) return x:sum() end, {})
-- errors
fails("not known while f is traced", mx.compile(function(x) return x:item() end), mx.array(1))
assert(f:explain():find("trace"))
-- what is read beside upvalues is frozen, and explain says so
GLOBAL_FACTOR = 2
local function inner(x) return x * GLOBAL_FACTOR end
local frozen = mx.compile(function(x) return inner(math.abs(1) * x) end)
same(frozen(mx.ones({2})), {2, 2})
GLOBAL_FACTOR = 3
same(frozen(mx.ones({2})), {2, 2})
assert(frozen:explain():find("frozen: global GLOBAL_FACTOR,", 1, true), frozen:explain())
assert(not frozen:explain():find("math") and not frozen:explain():find("global mx"))
local timed = mx.compile(function(x) return x * os.time() + w end)
timed(mx.ones({3}))
assert(timed:explain():find("frozen: global os,", 1, true), timed:explain())
assert(timed:explain():find("capture: w, made at testdata/compile.lua:15\n", 1, true), timed:explain())
fails("the function reads something that changed", function()
  GLOBAL_FACTOR = 4
  local checked = mx.compile(inner, {check = true})
  checked(mx.ones({2}))
  GLOBAL_FACTOR = 5
  checked(mx.ones({2}))
end)
-- a kernel that changes its input: equal values, also behind views, stay apart from it
do
  local k = mx.fast.metal_kernel{name = "w", input_names = {"x"}, output_names = {"o"}, mutable_inputs = {"x"},
    source = "uint i = thread_position_in_grid.x; x[i] = x[i] * 0 + 7; o[i] = x[i] + 1;"}
  local function spoil(a, by)
    return k{inputs = {by and by(a) or a}, grid = a, threadgroup = {32, 1, 1}, output_shapes = {a},
      output_dtypes = {a.dtype}}
  end
  local function f(a)
    local before, p, after = a * 2, a * 2, nil
    local q = spoil(p)
    after = a * 2
    local v = mx.exp(a)
    local w = spoil(v, function(y) return mx.reshape(y, {4, 4}) end)
    return before, after, q, mx.exp(a), w
  end
  local x = mx.arange(16) * 0.125
  for _, options in ipairs({{shapeless = false}, {shapeless = true}}) do
    local g = mx.compile(f, options)
    for _ = 1, 2 do
      local before, after, q, e, w = g(x)
      mx.eval(q, w)
      same(before, (x * 2):tolist())
      same(after, (x * 2):tolist())
      same(q, mx.full({16}, 8):tolist())
      same(e, mx.exp(x):tolist())
      same(w, mx.full({16}, 8):tolist())
    end
  end
end
