-- What random calls beside MLX found.
same(mx.eye(2, {dtype = mx.bool}), {{true, false}, {false, true}})
local none = mx.eye(2, {m = 0, dtype = mx.bool})
assert(tostring(none) == tostring(mx.zeros({2, 0}, mx.bool)) and none.size == 0)
-- take_along_axis goes along the last axis, not over the flattened array.
local x = mx.array({{1, 2}, {3, 4}})
same(mx.take_along_axis(x, mx.array({{1}, {0}}, mx.int32)), {{2}, {3}})
same(mx.take_along_axis(x, mx.array({3}, mx.int32), false), {4})
fails("take_along_axis", mx.take_along_axis, x, mx.array({3}, mx.int32))
dtype(mx.zeros_like(x, mx.int8), "int8")
same(mx.ones_like(x, {dtype = mx.int32}), {{1, 1}, {1, 1}})
dtype(mx.ones_like(mx.array({true})), "bool")
fails("300 does not fit uint8", mx.full_like, mx.array({1}, mx.uint8), 300)
same(mx.full_like(mx.array({1}, mx.uint8), 255), {255})
same(mx.floor_divide(mx.array({-7, 7, 0}, mx.int32), 0), {0, 0, 0})
same(mx.floor_divide(mx.array({-7, 7}, mx.int32), 2), {-4, 3})
-- Sums change the dtype of bools and small integers; their gradients change it back.
for _, f in ipairs{mx.isnan, mx.logical_not, mx.all, function(v) return mx.less(v, 0) end} do
  same(mx.grad(function(v) return mx.sum(f(v)) end)(mx.array({1, 2})), {0, 0})
end
assert(math.huge == 1 / 0 and 1 / math.huge == 0)
-- The last place has nothing after it: exp(1e18 - nothing) is no part of a derivative.
local function logs(v, options) return mx.grad(function(a) return mx.sum(mx.logcumsumexp(a, options)) end)(mx.array(v)) end
assert(mx.allclose(logs({1, 1, 1e18}, {axis = 0}), mx.array({1.5, 0.5, 1})):item())
assert(mx.allclose(logs({1e18, 1, 1}, {axis = 0, reverse = true}), mx.array({1, 0.5, 1.5})):item())
assert(mx.allclose(logs({1, 1, 1e18}, {axis = 0, inclusive = false})[2], 0):item())
-- at() is for updates; who reads by it is told what reads.
fails("is x:at%(...%), which has only updates .* x%[i%] and x:index%(i, j%) read", mx.abs, mx.array({1, 2}):at(0))
-- A number beside logical_and is a truth of its own; max of an axis of nothing is an error though the result is empty.
same(mx.logical_and(mx.array({1, 0}, mx.uint8), 300), {true, false})
same(mx.logical_or(mx.array({1, 0}, mx.uint8), -1), {true, true})
fails("cannot reduce axis 1 of shape %(5, 0, 0%): it has no elements", mx.max, mx.zeros({5, 0, 0}), 1)
assert(mx.min(mx.zeros({5, 0, 2}), 0).shape == mx.zeros({0, 2}).shape)
-- Arguments are told apart by their places, also where they are one array or one table.
local x, tree = mx.array({1, 2, 3}), {w = mx.array({1, 2, 3})}
same(mx.grad(function(a, b) return mx.sum(a * b * b) end, 1)(x, x), {2, 8, 18})
local both = mx.grad(function(a, b) return mx.sum(a.w * b.w * b.w) end, {0, 1})(tree, tree)
same(both[1].w, {1, 4, 9})
same(both[2].w, {2, 8, 18})
local _, byPlace, byName = mx.value_and_grad(function(a, o) return mx.sum(a * o.u * o.w * o.w) end, {0}, {"w", "u"})(
  x, {u = x, w = x, x})
same(byPlace[1], {1, 8, 27})
same(byName.w, {2, 16, 54})
same(byName.u, {1, 8, 27})
fails("argument 0 is the number 3, want an array or a table of arrays", mx.grad(mx.sum), 3)
-- A message shows the beginning of a long string, and a string on one line.
for _, f in ipairs{mx.array, function(t) return mx.array({1})["1" .. t] end, function(t) return mx.add(1, t) end,
  function(t) return mx.sum(1, {[t] = 1}) end} do
  local ok, err = pcall(f, ("9"):rep(1e6))
  assert(not ok and #tostring(err) < 600 and tostring(err):find("of 1000"), #tostring(err))
end
fails([[the string "a\nb"]], mx.add, mx.array({1}), "a\nb")
fails("the arguments have no arrays to differentiate by", mx.grad(function() return mx.array(1) end), {})
-- A kernel that takes its inputs as they lie finds all elements of what zeros, ones and full make, also through views.
local flat = mx.fast.metal_kernel{name = "flat", input_names = {"x"}, output_names = {"o"}, ensure_row_contiguous = false,
  source = "uint i = thread_position_in_grid.x; o[i] = i < 12 ? x[i] : float(x_strides[i - 12]);"}
local made = {[0] = mx.zeros({3, 4}), mx.ones({3, 4}), mx.full({3, 4}, 2), mx.full({12}, mx.array(3.0)):reshape(3, 4)}
for value, x in pairs(made) do
  local o = flat{inputs = {x}, grid = {14}, threadgroup = {14}, output_shapes = {{14}}, output_dtypes = {mx.float32}}
  local want = {}
  for i = 1, 12 do want[i] = value end
  want[13], want[14] = 4, 1
  same(o, want)
end

for mode, want in pairs({safe = 0, relaxed = 0, fast = 1}) do -- Metal's compiler defines __FAST_MATH__ in that mode
  local kernel = mx.fast.metal_kernel({name = "math_mode", input_names = {"x"}, output_names = {"out"},
    compile_options = {math_mode = mode}, source = [[
      #if defined(__FAST_MATH__) && __FAST_MATH__
      out[thread_position_in_grid.x] = 1;
      #else
      out[thread_position_in_grid.x] = 0;
      #endif]]})
  local y = kernel({inputs = {mx.zeros({4})}, grid = {4, 1, 1}, threadgroup = {4, 1, 1}, output_shapes = {{4}},
    output_dtypes = {mx.float32}})
  assert(y:sum():item() == 4 * want, mode)
end
