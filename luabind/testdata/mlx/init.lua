-- MLX's test_init.py.
local t, init = {}, nn.init

-- draws makes a test of an initialiser: what it makes has the shapes asked for, in both dtypes; check may look closer.
local function draws(make, sizes, check)
  return function()
    for _, d in ipairs({mx.float32, mx.float16}) do
      local draw = make(d)
      for _, size in ipairs(sizes) do
        local x = draw(mx.zeros(size))
        shape(x, unpack(size))
        dtype(x, tostring(d))
        if check then check(x, draw) end
      end
    end
  end
end

local any, matrices = {{3}, {3, 3}, {3, 3, 3}}, {{3, 3}, {3, 3, 3}}

t.test_constant = draws(function(d) return init.constant(5, d) end, any, function(x) equal(x, mx.full(x, 5, x.dtype)) end)
t.test_normal = draws(function(d) return init.normal(0, 1, {dtype = d}) end, any)
t.test_uniform = draws(function(d) return init.uniform(-1, 1, d) end, any, function(x)
  assert(x:min():item() >= -1 and x:max():item() <= 1)
end)
t.test_identity = draws(init.identity, {{3, 3}}, function(x, draw)
  equal(x:astype(mx.float32), mx.eye(3))
  fails("want a square matrix", draw, mx.zeros({3, 2}))
end)
for _, name in ipairs({"glorot_normal", "glorot_uniform", "he_normal", "he_uniform"}) do
  t["test_" .. name] = draws(init[name], matrices, function(_, draw) fails("1 dimensions", draw, mx.zeros({3})) end)
end
t.test_sparse = draws(function(d) return init.sparse(0.5, 0, 1, {dtype = d}) end, {{3, 2}, {2, 2}, {4, 3}}, function(x, draw)
  assert(mx.equal(x, 0):sum():item() >= 0.5 * x.size)
  fails("1 dimensions", draw, mx.zeros({1}))
end)

function t.test_sparse_zeros_per_row()
  for _, case in ipairs({{0.5, {4, 10}, 5}, {0.3, {5, 10}, 3}, {0.5, {2, 2}, 1}}) do
    local zeros = mx.equal(init.sparse(case[1])(mx.zeros(case[2])), 0):sum(1)
    equal(zeros, mx.full(zeros, case[3], zeros.dtype))
  end
end

function t.test_orthogonal()
  local draw = init.orthogonal{gain = 1, dtype = mx.float32}
  local x = draw(mx.zeros({4, 4}))
  shape(x, 4, 4)
  near(mx.matmul(x, x.T), mx.eye(4), 1e-5)
  x = draw(mx.zeros({6, 4}))
  shape(x, 6, 4)
  near(mx.matmul(x.T, x), mx.eye(4), 1e-5)
  fails("3 dimensions", draw, mx.zeros({2, 3, 4}))
end

return t
