-- mx.random: the state that scripts read, set and hand to compile; distributions by their parameters.
local state = mx.random.state
assert(#state == 1 and mx.type(state) == "random_state" and tostring(state) == "mx.random.state")
mx.random.seed(7)
same(state[1], {0, 7})
local first = mx.random.uniform({shape = {3}})
local place = state[1]
local second = mx.random.uniform({shape = {3}})
assert(mx.any(mx.not_equal(place, state[1])):item())
state[1] = place
same(mx.random.uniform({shape = {3}}), second:tolist())
state[1] = mx.random.key(7)
same(mx.random.uniform({shape = {3}}), first:tolist())
-- an array that was read may be freed: the state keeps its own
local key = state[1]
key:free()
mx.eval(state, {state})
mx.random.uniform({shape = {3}}):tolist()
local mine = mx.random.key(3)
state[1] = mine
mine:free()
same(state[1], {0, 3})
fails("[random.state] there is no element 2: it has one, state[1]", function() return state[2] end)
fails("[random.state] there is no element 0", function() state[0] = mx.random.key(1) end)
fails("[random.state] a key is an array, not a number", function() state[1] = 5 end)
fails("[random.state] key is float32 (2,), want uint32 (2,)", function() state[1] = mx.zeros({2}) end)
fails("[random.state] key is uint32 (3,), want uint32 (2,)", function() state[1] = mx.zeros({3}, mx.uint32) end)
-- it is an input and an output of every compiled function, and may be named as one
local function draw() return mx.random.uniform({shape = {3}}) end
for _, f in ipairs({mx.compile(draw), mx.compile(draw, {inputs = state, outputs = state}), mx.compile(draw, {state}, {state})}) do
  mx.random.seed(7)
  same(f(), first:tolist())
  same(f(), second:tolist())
end
-- the whole shape of a number, and the state's own key
assert(#mx.random.permutation(5).shape == 1 and mx.random.permutation(5).dtype == mx.uint32)
same(mx.sort(mx.random.permutation(mx.array({3, 1, 2}))), {1, 2, 3})
assert(mx.random.categorical(mx.zeros({4, 3}), {num_samples = 6}).shape[2] == 6)
fails("[random_categorical] both shape and num_samples are given", mx.random.categorical, mx.zeros({4}),
  {shape = {2}, num_samples = 2})
fails("[random_permutation] x is -1, want 0 or more", mx.random.permutation, -1)
-- mean and deviation may be complex numbers and numbers beside arrays
local z = mx.random.normal({shape = {2}, dtype = mx.complex64, loc = mx.complex(3, 1), scale = 2, key = mx.random.key(1)})
local unit = mx.random.normal({shape = {2}, dtype = mx.complex64, key = mx.random.key(1)})
assert(mx.allclose(z, unit * 2 + mx.complex(3, 1)):item())
