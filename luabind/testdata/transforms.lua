-- docs/lua.md, 2 and 6: transforms of functions over trees.
local function f(x, y) return mx.sum(x * x * y) end
local x, y = mx.array({1, 2, 3}), mx.array({4, 5, 6})
same(mx.grad(f)(x, y), {8, 20, 36})
local g = mx.grad(f, {0, 1})(x, y)
same(g[1], {8, 20, 36})
same(g[2], {1, 4, 9})
local value, grads = mx.value_and_grad(f, {0, 1})(x, y)
same(value, 4 + 20 + 54)
same(grads[2], {1, 4, 9})
-- trees keep their structure
local function loss(params, v) return mx.sum(params.w * v) + params.list[1] end
local tree = mx.grad(loss)({w = mx.array({1, 2}), list = {mx.array(3)}}, mx.array({5, 6}))
same(tree.w, {5, 6})
same(tree.list[1], 1)
-- several results: the first is the loss
local v2, g2 = mx.value_and_grad(function(a) return mx.sum(a * a), a + 1 end)(x)
same(v2[1], 14)
same(v2[2], {2, 3, 4})
same(g2, {2, 4, 6})
-- second derivatives
same(mx.grad(mx.grad(function(a) return a * a * a end))(mx.array(2)), 12)
-- one array as two arguments
same(mx.grad(function(a, b) return a * b * b end)(mx.array(3), mx.array(3)), 9)
-- vjp, jvp
local outs, vjps = mx.vjp(function(a) return a * a end, {x}, {mx.array({1, 1, 2})})
same(outs[1], {1, 4, 9})
same(vjps[1], {2, 4, 12})
local _, jvps = mx.jvp(mx.square, {x}, {mx.array({1, 0, 1})})
same(jvps[1], {2, 0, 6})
-- vmap
local m = mx.arange(6):reshape({2, 3})
same(mx.vmap(function(r) return mx.sum(r) end)(m), {3, 12})
same(mx.vmap(function(r) return mx.sum(r) end, 1)(m), {3, 5, 7})
same(mx.vmap(function(r, s) return r + s end, {0, false})(m, mx.array({10, 20, 30})), {{10, 21, 32}, {13, 24, 35}})
-- custom functions
local c = mx.custom_function(function(a) return a * a end)
c:vjp(function(primal, cotangent, output) return cotangent * 100 end)
same(mx.grad(function(a) return mx.sum(c(a)) end)(x), {100, 100, 100})
same(mx.checkpoint(function(a) return mx.exp(a) end)(mx.array({0})), {1})
-- errors
fails("must return a scalar", mx.grad(function(a) return a end), x)
fails("no such keyword", mx.grad(f, nil, {"k"}), x, y)
fails("argnums has 5", mx.grad(f, 5), x, y)
fails("boom", mx.grad(function() error("boom") end), x)
