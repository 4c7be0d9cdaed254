-- Deep graphs need no deep stack, and what is too large says so.
do
  local x = mx.array({1})
  for _ = 1, 20000 do x = x + 1 end
  same(x, {20001})
end
do
  local g = mx.grad(function(x)
    for _ = 1, 2000 do x = x * 1 end
    return mx.sum(x * x)
  end)
  same(g(mx.array({3})), {6})
end
do
  local f = mx.compile(function(x) for _ = 1, 1000 do x = x + 1 end return x end)
  same(f(mx.array({1})), {1001})
  same(mx.vmap(f)(mx.array({1, 2})), {1001, 1002})
end
local huge = mx.broadcast_to(mx.array({1}), {2 ^ 30, 2 ^ 30})
assert(#tostring(huge) < 1000)
fails("[tolist] tables of 1152921504606846976 elements take 1.8446744073709552e+19 bytes", huge.tolist, huge)
fails("is over 2147483647", mx.zeros, {3000000000})
fails("is over 2147483647", mx.concatenate, {mx.zeros({2 ^ 31 - 1}, mx.int8), mx.zeros({2}, mx.int8)})
fails("has more than 2^63 bytes", mx.zeros, {2 ^ 20, 2 ^ 20, 2 ^ 20, 2 ^ 20})
same(mx.sum(mx.broadcast_to(mx.array({1}), {2 ^ 12, 2 ^ 12})), 2 ^ 24)
