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
local pair = {p = m, q = {u = m.T}}
local both = mx.vmap(function(t) return {p = t.p + t.q.u, q = {t.p * 2}} end,
  {in_axes = {{p = 0, q = {u = 1}}}, out_axes = {p = 1, q = {0}}})(pair)
same(both.p, (m * 2).T:tolist()) same(both.q[1], (m * 2):tolist())
same(mx.vmap(function(t) return {p = t.p} end, {in_axes = {{p = 0, q = false}}, out_axes = {{p = 1}}})(pair).p, m.T:tolist())
local first, second = mx.vmap(function(r) return r, {r * 2} end, 0, {1, {0}})(m)
same(first, m.T:tolist()) same(second[1], (m * 2):tolist())
fails('in_axes has an entry "z", and the table that it is for has none', mx.vmap(function(t) return t.p end,
  {in_axes = {{p = 0, z = 1}}}), pair)
fails('out_axes has an entry "z"', mx.vmap(function(r) return {p = r} end, {out_axes = {p = 0, z = 1}}), m)
fails("out_axes has 3 entries for 1 value", mx.vmap(function(r) return r end, 0, {0, 1, 2}), m)
fails("out_axes is the string", mx.vmap(function(r) return r end, 0, "x"), m)
-- custom functions
local c = mx.custom_function(function(a) return a * a end)
c:vjp(function(primal, cotangent, output) return cotangent * 100 end)
same(mx.grad(function(a) return mx.sum(c(a)) end)(x), {100, 100, 100})
same(mx.checkpoint(function(a) return mx.exp(a) end)(mx.array({0})), {1})
local k = mx.custom_function(function(a) return a * 2 end)
k:vmap(function(a, axis) return a["1:"], axis end)
fails("its vmap gave an output int32 (1, 3) with batch axis 0, want int32 (2, 3)", mx.vmap(k), m)
k:vmap(function(a, axis) return a, 1 end)
fails("its vmap gave an output int32 (2, 3) with batch axis 1, want int32 (3, 2)", mx.vmap(k), m)
k:vmap(function(a, axis) return a, false end)
fails("its vmap gave an output int32 (2, 3) with no batch axis, want int32 (3,)", mx.vmap(k), m)
k:vmap(function(a, axis) return a, 2 end)
fails("its vmap gave batch axis 2 for an output of shape (2, 3)", mx.vmap(k), m)
k:vmap(function(a, axis) return a end)
fails("a custom vmap returned 1 value, want two: outputs and their axes", mx.vmap(k), m)
-- errors
fails("must return a scalar", mx.grad(function(a) return a end), x)
fails("no such keyword", mx.grad(f, nil, {"k"}), x, y)
fails("argnums has 5", mx.grad(f, 5), x, y)
fails("boom", mx.grad(function() error("boom") end), x)

-- a function is given the tables themselves of which no array is differentiated or mapped: what it writes there lasts
local notes = {scale = mx.array(2), deep = {}}
local function noting(x, t)
  assert(t == notes)
  t.deep.calls = (t.deep.calls or 0) + 1
  return x * t.scale
end
same(mx.grad(noting)(mx.array(3), notes), 2)
same(mx.vmap(noting, {0, false})(mx.array({1, 2}), notes), {2, 4})
assert(notes.deep.calls == 2)
do -- the tangent of equal greatest elements is the gradient's product with it, and that of nothing is empty
  local x, t = mx.array({2, 1, 2}), mx.array({1, 8, 4})
  local _, tangent = mx.jvp(mx.max, {x}, {t})
  assert(tangent[1]:item() == 2.5 and (mx.grad(mx.max)(x) * t):sum():item() == 2.5)
  local none = mx.zeros({0, 3})
  local function last(f) return function(a) return f(a, {axis = -1}) end end
  for _, f in ipairs({mx.max, mx.softmax}) do
    local _, empty = mx.jvp(last(f), {none}, {none})
    assert(empty[1].size == 0)
  end
end

do -- quantize is differentiated as the formula that it is: the figures are MLX's, but for the group of zeros (NaN there)
  local i = mx.arange(32, {dtype = mx.float32})
  local rows = mx.stack({mx.minimum(i / 8 - 1, 2.75), i / 16 - 1.75, i * 0,
    mx.where(i:equal(3), 1e-3, 0) + mx.where(i:equal(9), -1e-3, 0)})
  local function f(w)
    local _, s, b = mx.quantize(w, 32, 4)
    return (s:reshape(-1) * mx.array({1, 2, 3, 4})):sum() + (b:reshape(-1) * mx.array({5, 7, 11, 13})):sum()
  end
  local want = {[30] = 2.4545455, [31] = 2.4545455, [32] = 6.857143, [99] = 12.5}
  local t = mx.sin(mx.arange(128, {dtype = mx.float32})):reshape(4, 32)
  local product, steps = 0, t:flatten():tolist()
  for k, x in ipairs(mx.grad(f)(rows):flatten():tolist()) do
    assert(math.abs(x - (want[k - 1] or 0)) < 1e-5, k)
    product = product + x * steps[k]
  end
  local _, tangent = mx.jvp(f, {rows}, {t})
  assert(math.abs(tangent[1]:item() - product) < 1e-4)
end
-- what cannot be computed says so once, with the line that made it
do
  local wrong = mx.linalg.cholesky(-mx.eye(2))
  assert(not pcall(mx.eval, wrong))
  local function loss(a) return mx.sum(a * 2) end
  for _, f in ipairs{mx.grad(loss), mx.value_and_grad(function() return wrong end), mx.vmap(loss)} do
    fails("^[^%[]*%[cholesky%] matrix 0 of shape", f, wrong)
  end
end
