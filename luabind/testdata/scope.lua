-- mx.scope frees what was made in it and neither returned nor kept.
local escaped, kept, outer
outer = mx.ones({4}) * 2
local y, tree = mx.scope(function()
  local a = outer + 1
  escaped = a * 10
  kept = mx.keep(a * 100)
  local same_again = outer:astype(mx.float32) -- not made here
  return a, {sum = mx.sum(escaped), list = {same_again}}
end)
same(y, {3, 3, 3, 3})
same(tree.sum, 120)
same(kept, {300, 300, 300, 300})
same(outer, {2, 2, 2, 2})
fails("made at .*scope.lua:6 was freed at .*scope.lua:4", function() return escaped + 1 end)
-- bytes come back at the end, and after an error
local before = mx.get_active_memory()
local big
mx.scope(function() big = mx.zeros({1024, 1024}) + 1; mx.eval(big) end)
assert(mx.get_active_memory() < before + 1024 * 1024, mx.get_active_memory() - before)
fails("boom", mx.scope, function() big = mx.ones({8}) + 1; error("boom") end)
fails("was freed", function() return big + 1 end)
-- nested: what the inner one returns belongs to the outer one
local inner
local z = mx.scope(function()
  inner = mx.scope(function() return mx.ones({2}) * 5 end)
  return inner + 1
end)
same(z, {6, 6})
fails("was freed", function() return inner + 1 end)
-- in compiled functions nothing is freed: a replay needs the constants
local f = mx.compile(function(x) return mx.scope(function() local c = mx.arange(2) * 1.0; return x + c end) end)
same(f(mx.ones({2})), {1, 2})
same(f(mx.zeros({2})), {0, 1})
same(mx.grad(function(x) return mx.scope(function() return mx.sum(x * x) end) end)(mx.array({1, 2})), {2, 4})
fails("want a function", mx.scope, 3)
