-- docs/lua.md, 3 to 5: indices, operators, properties, dtypes.
local a = mx.arange(24):reshape({2, 3, 4})
same(a[0][1][2], 6)
same(a[-1][0], {12, 13, 14, 15})
same(a["..., -1"], {{3, 7, 11}, {15, 19, 23}})
same(a["0, ::-2, None"], {{{8, 9, 10, 11}}, {{0, 1, 2, 3}}})
same(a["1, 1:3, 0"], {16, 20})
same(a:index(1, "0:2", -1), {15, 19})
assert(tostring(a.shape) == "(2, 3, 4)" and a.shape[1] == 2 and #a.shape == 3)
assert(a.shape == mx.zeros({2, 3, 4}).shape and not (a.shape == a[0].shape))
assert(a.ndim == 3 and a.size == 24 and a.nbytes == 96 and a.itemsize == 4 and #a == 2)
assert(a:dim(-1) == 4)
local z = mx.array({mx.complex(1, -2), mx.complex(0, 3)})
same(z.real, {1, 0})
same(mx.imag(z), {-2, 3})
assert(z.imag.dtype == mx.float32 and a.real.dtype == mx.int32)
assert(tostring(a.T.shape) == "(4, 3, 2)")
fails("index 2 is out of range for size 2", function() return a[2] end)
fails("no integer, slice", function() return a["1:2:3:4"] end)
fails("array has no method or property \"smu\"; did you mean sum?", function() return a:smu() end)
fails("array has no method or property \"foo\"$", function() return a.foo end)
fails("array has no method or property \"dtpye\"; did you mean dtype?", function() return a.dtpye end)
fails("compared element by element by name", function() return a < a end)
assert(a == a and not (a == a[0]))
local n = 0
for row in a:rows() do
  same(row:sum(), n == 0 and 66 or 210)
  n = n + 1
end
assert(n == 2)
-- operators
local x = mx.array({4, 9})
same(x + 1, {5, 10})
same(1 - x, {-3, -8})
same(x * x, {16, 81})
same(x / 2, {2, 4.5})
same(x % 5, {4, 4})
same(x ^ 0.5, {2, 3})
same(-x, {-4, -9})
assert("x = " .. mx.array({1, 2}, mx.int32) == "x = array([1, 2], dtype=int32)")
-- text
assert(tostring(mx.arange(10)) == "array([0, 1, 2, ..., 7, 8, 9], dtype=int32)")
assert(tostring(mx.array({{1.5, -2}, {1e-10, 1e20}})) == "array([[1.5, -2],\n       [1e-10, 1e+20]], dtype=float32)")
assert(tostring(mx.array({true, false})) == "array([True, False], dtype=bool)")
assert(tostring(mx.array(mx.complex(1, -2))) == "array(1-2j, dtype=complex64)")
assert(tostring(mx.zeros({0, 3})) == "array([], dtype=float32)")
assert(tostring(mx.array(1 / 3)) == "array(0.333333, dtype=float32)")
-- items
local re, im = mx.array(mx.complex(1, 2)):item()
assert(re == 1 and im == 2)
assert(mx.array({mx.complex(3, 4)}):tolist()[1].im == 4)
assert(mx.array(2.5):item() == 2.5 and mx.array(true):item() == true)
fails("want one element", mx.zeros({2}).item, mx.zeros({2}))
-- dtypes
assert(tostring(mx.float32) == "float32" and mx.float32 == mx.zeros({1}).dtype and mx.float32 ~= mx.int8)
assert(mx.type(a) == "array" and mx.type(mx.int8) == "dtype" and mx.type(mx.cpu) == "device" and mx.type(1) == "number")
assert(tostring(mx.default_device()):find("^Device%([cg]pu, 0%)$"))
-- shapes from arrays
assert(mx.zeros(a).shape == a.shape)
assert(tostring(mx.zeros(mx.dims(a, 0, {a, -1}, 5)).shape) == "(2, 4, 5)")
-- assignment
local y = mx.zeros({3})
local alias = y
y[1] = 7
same(y, {0, 7, 0})
same(alias, {0, 7, 0})
y["0:2"] = mx.array({1, 2})
same(y, {1, 2, 0})
-- free
local f = mx.ones({2})
f:free()
fails("freed at", function() return f + 1 end)
-- an index that no int32 holds must not wrap to one that exists
fails("has the number 4294967296, want integers that fit int32", mx.take, y, {2 ^ 32}, 0)
fails("has the number 4294967296, want integers that fit int32", function() return y[{2 ^ 32}] end)
-- 64-bit dtypes take whatever 64 bits hold, as in MLX; others refuse
same(mx.array({1}, mx.uint64) + -1, {0})
fails("-1 does not fit uint32", function() return mx.array({1}, mx.uint32) + -1 end)
-- a table that holds one table twice, forty times over
local shared = {1}
for _ = 1, 40 do shared = {shared, shared} end
fails("more than the memory limit", mx.array, shared)

-- Views of several arrays and lists of views; a slice whose place is an array's.
local a, b = mx.broadcast_arrays(mx.array({1, 2}), mx.zeros({3, 1}))
assert(#mx.unstack(a) == 3 and b.shape[2] == 2 and mx.broadcast_shapes({6, 7}, {5, 6, 1})[1] == 5)
assert(mx.atleast_2d(1).ndim == 2 and #mx.atleast_1d(1, a) == 2)
local at = mx.slice_update(mx.zeros({4}), mx.ones({2}), mx.array({1}, mx.int32), {0})
assert(tostring(at) == "array([0, 1, 1, 0], dtype=float32)" and mx.slice(at, {2}, {0}, {1}):item() == 1)

-- rows of products, alone and in a batch
do
  local w, x = mx.random.normal({600, 100}), mx.random.normal({30, 600})
  local function alone(i) return x[i .. ":" .. i + 1] end
  local function equal(f)
    local all = f(x)
    for i = 0, 29 do
      if not mx.array_equal(all[i], f(alone(i))[0]):item() then return false end
    end
    return true
  end
  local function plain(v) return mx.matmul(v, w) end
  assert(not equal(plain))
  assert(mx.set_batch_invariant(true) == false)
  assert(equal(plain) and equal(mx.compile(plain)))
  assert(mx.set_batch_invariant(false) == true)
  assert(not equal(mx.compile(plain)))
  -- what a compiled function says counts in it, also where an equal product is beside
  local both = mx.compile(function(v)
    mx.set_batch_invariant(true)
    local y = mx.matmul(v, w)
    mx.set_batch_invariant(false)
    return y, mx.matmul(v, w)
  end)
  assert(equal(function(v) return (both(v)) end))
  assert(not equal(function(v) return select(2, both(v)) end))
end
