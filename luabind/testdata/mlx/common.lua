-- What the translations of MLX's tests compare with. They are in functions named as MLX names the tests.
nn, utils, optim = require("mx.nn"), require("mx.utils"), require("mx.optimizers")

-- near wants arrays or numbers as allclose finds them.
function near(x, want, atol, rtol)
  if type(want) ~= "userdata" then want = mx.array(want) end
  if not mx.allclose(x, want, rtol or 1e-5, atol or 1e-8):item() then
    error("got " .. tostring(x) .. ", want " .. tostring(want), 2)
  end
end

function equal(x, want)
  if type(want) ~= "userdata" then want = mx.array(want, x.dtype) end
  if not mx.array_equal(x, want):item() then error("got " .. tostring(x) .. ", want " .. tostring(want), 2) end
end

-- below wants the largest distance of two arrays below a bound.
function below(x, y, bound)
  local d = mx.max(mx.abs(x - y)):item()
  if not (d < bound) then error("they are " .. d .. " apart", 2) end
end

function shape(x, ...)
  local want = table.concat({...}, ", ")
  if table.concat(x.shape, ", ") ~= want then error("the shape is " .. tostring(x.shape) .. ", want " .. want, 2) end
end

function float32(x, n)
  shape(x, n)
  dtype(x, "float32")
end

function of_class(x, class)
  if getmetatable(x) ~= class then error(tostring(x) .. " is no " .. tostring(class), 2) end
end

-- formula is array() of values.py.
function formula(size, seed)
  local n = 1
  for _, s in ipairs(size) do n = n * s end
  return ((mx.arange(n) * 37 + seed * 11) % 101 / 50 - 1):reshape(size)
end

-- summed compares an array with what values.py says of another one.
function summed(x, want, atol)
  shape(x, unpack(want.shape))
  local flat = x:flatten()
  local weights = (mx.arange(flat.size) * 29 % 17 - 8) / 8
  local most = atol * math.max(1, want.size)
  local sum, size = mx.sum(flat * weights):item(), mx.sum(mx.abs(flat)):item()
  assert(math.abs(sum - want.sum) <= most, "the weighted sum is " .. sum .. ", want " .. want.sum)
  assert(math.abs(size - want.size) <= most, "the sum of absolute values is " .. size .. ", want " .. want.size)
  for i, v in ipairs(want.first) do
    local got = flat[i - 1]:item()
    assert(math.abs(got - v) <= atol + 1e-5 * math.abs(v), "element " .. i - 1 .. " is " .. got .. ", want " .. v)
  end
end

-- paths are the names of a tree's leaves, sorted.
function paths(tree)
  local out = {}
  for i, leaf in ipairs(utils.tree_flatten(tree)) do out[i] = leaf[1] end
  table.sort(out)
  return table.concat(out, " ")
end

-- each_leaf calls f with the leaves of trees at the same places.
function each_leaf(f, ...)
  utils.tree_map(function(...)
    f(...)
    return 0
  end, ...)
end
