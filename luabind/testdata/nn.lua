-- Joins, scans, partitions, the fast ops and mx.nn. The numbers are MLX's.
local utils = require("mx.utils")
local x = mx.arange(6):reshape({2, 3})
same(mx.concatenate({x, x}), {{0, 1, 2}, {3, 4, 5}, {0, 1, 2}, {3, 4, 5}})
same(mx.concat({x, x}, {axis = 1}), {{0, 1, 2, 0, 1, 2}, {3, 4, 5, 3, 4, 5}})
same(mx.concatenate({x, mx.array({7}, mx.int32)}, {axis = false}), {0, 1, 2, 3, 4, 5, 7})
fails("[concatenate] no arrays are given", mx.concatenate, {})
fails("arrays is an array", mx.concatenate, x)
same(mx.stack({x, x}, -1)[1], {{3, 3}, {4, 4}, {5, 5}})
local parts = mx.split(x, 3, 1)
assert(#parts == 3)
same(parts[2], {{1}, {4}})
parts = x:split({1, -1}, {axis = 1})
assert(#parts == 3)
same(parts[3], {{2}, {5}})
assert(#mx.split(x, {}) == 1)
fails("cannot be split into 4", mx.split, x, 4)
fails("want an integer or a table of integers", mx.split, x, "2")
fails("want an integer", mx.split, x, 1.5)

same(x:cumsum(), {0, 1, 3, 6, 10, 15})
same(x:cumsum({axis = 1, reverse = true}), {{3, 3, 2}, {12, 9, 5}})
same(mx.cumprod(x, 0, {inclusive = false}), {{1, 1, 1}, {0, 1, 2}})
dtype(mx.cumsum(mx.array({true, true})), "int32")
dtype(mx.cumsum(x, 0, {dtype = mx.float16}), "float16")
same(mx.cummax(mx.array({1, 3, 2})), {1, 3, 3})
same(mx.cummin(mx.array({1, 3, 0})), {1, 1, 0})
same(mx.logcumsumexp(mx.array({1, 1})), {1, 1.6931472})
fails("unknown keyword \"dtype\"", mx.cummax, x, {dtype = mx.int32})

local v = mx.array({5, 1, 4, 2, 3})
same(v:partition(2)[2], 3)
same(mx.take_along_axis(v, mx.argpartition(v, -2), 0):index("-2:"):sort(), {4, 5})
same(mx.topk(v, 2):sort(), {4, 5})
fails("kth is 5, out of range", mx.partition, v, 5)

local q = mx.arange(16):reshape({1, 2, 2, 4}):astype(mx.float32) / 16
same(mx.fast.rms_norm(q, nil, 1e-5)[0][0][0], {0, 0.53432709, 1.0686542, 1.6029813})
same(mx.fast.rms_norm(q, mx.full({4}, 2), {eps = 1e-5})[0][0][0], {0, 1.0686542, 2.1373084, 3.2059627})
same(mx.fast.layer_norm(q, nil, mx.ones({4}), 1e-5)[0][0][0], {-0.34026897, 0.55324364, 1.4467564, 2.3402691})
same(mx.fast.rope(q, 4, {base = 10000, offset = 1})[0][0][0], {-0.10518387, 0.060621906, 0.067537785, 0.18811561})
same(mx.fast.rope(q, 4, true, 10000, 1, mx.array(1, mx.int32))[0][0][0], {-0.052591935, 0.033768892, 0.12311878, 0.18874061})
fails("want either base or freqs", mx.fast.rope, q, 4)
fails("offset has dtype float32", mx.fast.rope, q, 4, {base = 10, offset = 0.5})
local attend = mx.fast.scaled_dot_product_attention
same(attend(q, q, q, {scale = 0.5})[0][0][1], {0.13571583, 0.19821584, 0.26071584, 0.32321584})
same(attend(q, q, q, 0.5, "causal")[0][1][0], {0.5, 0.5625, 0.625, 0.6875})
same(attend(q, q, q, 0.5, mx.array({{false, true}, {true, false}}))[0][0][0], {0.25, 0.3125, 0.375, 0.4375})
fails("mask is the string \"full\", want \"causal\" or an array", attend, q, q, q, 0.5, "full")
fails("mask is a table", attend, q, q, q, 0.5, {1})

same(mx.random.normal({2}, {key = mx.random.key(7)}), {-1.6910607, 1.6054808})
same(mx.random.normal({2}, mx.float32, 10, 0, mx.random.key(7)), {10, 10})

assert(require("mx.nn") == nn and mx.nn == nn)
local u = mx.array({-2, -0.5, 0, 1, 3})
same(nn.silu(u), {-0.23840587, -0.18877034, 0, 0.7310586, 2.8577223})
same(nn.gelu(u), {-0.045500159, -0.1542688, 0, 0.84134471, 2.9959502})
same(nn.gelu_approx(u), {-0.045402288, -0.154286, 0, 0.84119201, 2.9963627})
same(nn.relu(u), {0, 0, 0, 1, 3})
same(nn.leaky_relu(u), {-0.02, -0.005, 0, 1, 3})
same(nn.leaky_relu(u, {negative_slope = 0.5}), {-1, -0.25, 0, 1, 3})
same(nn.softplus(u), {0.126928, 0.47407699, 0.69314718, 1.3132617, 3.0485873})
same(nn.log_softmax(u), {-5.2005363, -3.700536, -3.200536, -2.200536, -0.20053607})
same(nn.softmax(u:reshape({5, 1}), 0)[3], {0.11074378})
same(nn.sigmoid(u)[0], 0.119203)
same(nn.tanh(u)[0], -0.964028)
dtype(nn.gelu(u:astype(mx.float16)), "float16")
same(mx.grad(function(x) return nn.silu(x):sum() end)(u)[3], 0.927671)
same(mx.compile(nn.gelu)(u)[3], 0.841345)
fails("there is no mx.nn.silo; did you mean silu", function() return nn.silo end)
fails("[nn.silu] x is the string", nn.silu, "x")
fails("testdata/nn.lua:%d+: %[erf%]", function() return nn.gelu(u:astype(mx.complex64)) end)

-- bounds: arrays or numbers, beside whose dtypes numbers are weak; one may be left out, as a keyword may come alone
same(mx.clip(mx.array({1, 2, 3}), 1.5, 2.5), {1.5, 2, 2.5})
same(mx.array({1, 5, 9}, mx.int32):clip(2, 8), {2, 5, 8})
dtype(mx.clip(mx.array({1, 5, 9}, mx.int32), 2), "int32")
dtype(mx.clip(mx.array({1, 5, 9}, mx.int32), 1.5), "float32")
same(mx.clip(mx.array({1, 2}), {a_max = 1}), {1, 1})
same(mx.clip(mx.array({{1}, {5}}), mx.array({2, 3}), 4), {{2, 3}, {4, 4}})
same(mx.clip(mx.array({1, mx.nan}), 3, 2), {2, mx.nan})
same(mx.grad(function(a) return mx.clip(a, 1, 2):sum() end)(mx.array({0, 1.5, 3})), {0, 1, 0})
fails("[clip] both bounds are missing", mx.clip, x)
same(mx.arctan2(mx.array({1, -1, 0}), mx.array({0, -1, -2})), {mx.pi / 2, -0.75 * mx.pi, mx.pi})
same(mx.grad(function(a) return mx.arctan2(a, 2) end)(mx.array(1)), 0.4)
fails("[arctan2]", mx.arctan2, x:astype(mx.complex64), x)

-- sizes of layers: the layer's own argument is named
fails("[nn.Linear] input_dims is -1, want at least 1", nn.Linear, -1, 3)
fails("[nn.Linear] input_dims is 0, want at least 1", nn.Linear, 0, 3)
fails("[nn.Linear] output_dims is -1, want at least 0", nn.Linear, 3, -1)
fails("[nn.Embedding] dims is 0, want at least 1", nn.Embedding, 3, 0)
fails("[nn.LSTM] hidden_size is 0, want at least 1", nn.LSTM, 3, 0)
fails("[nn.RoPE] dims is -2, want at least 1", nn.RoPE, -2)
fails("[nn.Linear] input_dims is 1.5, want an integer", nn.Linear, 1.5, 3)
fails("[nn.Linear] input_dims is the string \"a\", want an integer", nn.Linear, "a", 3)
fails("[nn.Linear] output_dims is missing", nn.Linear, 3)
fails("[nn.Conv2d] stride is 0, want at least 1", nn.Conv2d, 3, 4, 3, {stride = 0})
fails("[nn.Conv2d] kernel_size is -1, want at least 1", nn.Conv2d, 3, 4, {3, -1})
fails("[nn.Conv2d] padding is -1, want at least 0", nn.Conv2d, 3, 4, 3, {padding = -1})
fails("[nn.Embedding] num_embeddings is -5", nn.Embedding, -5, 3)
fails("[nn.MultiHeadAttention] num_heads is 0", nn.MultiHeadAttention, 8, 0)
fails("[nn.LSTM] hidden_size is -2", nn.LSTM, 3, -2)
fails("[nn.PReLU] num_parameters is -1", nn.PReLU, -1)
fails("[nn.MaxPool2d] kernel_size is 0", nn.MaxPool2d, 0)
fails("[nn.Transformer] num_encoder_layers is -1, want at least 0", nn.Transformer, {num_encoder_layers = -1})
assert(nn.Transformer{dims = 4, num_heads = 2, num_encoder_layers = 0, num_decoder_layers = 1})

do -- sizes of 0, where MLX 0.32.4 computes with them: these are the shapes that it gives
  local function shape(want, x)
    mx.eval(x)
    assert(table.concat(x.shape, " ") == want, table.concat(x.shape, " ") .. ", want " .. want)
  end
  local row, empty = mx.ones({2, 3}), mx.ones({2, 0})
  shape("2 0", nn.Linear(3, 0)(row))
  shape("0 3", nn.Embedding(0, 3)(mx.zeros({0}, mx.int32)))
  shape("2 0", nn.Embedding(0, 3):as_linear(row))
  for _, layer in ipairs{nn.PReLU(0), nn.LayerNorm(0), nn.RMSNorm(0), nn.BatchNorm(0)} do shape("2 0", layer(empty)) end
  shape("2 3 3 0", nn.BatchNorm(0)(mx.ones({2, 3, 3, 0})))
  shape("2 0", nn.AllToShardedLinear(3, 0)(row))
  shape("2 0", nn.ShardedToAllLinear(3, 0)(row))
  assert(tostring(nn.Linear(3, 0)) == "Linear(input_dims=3, output_dims=0, bias=True)")
  local x = mx.ones({1, 2, 4})
  shape("1 2 4", nn.TransformerEncoder(1, 4, 2, {mlp_dims = 0})(x))
  shape("16 4", nn.TransformerEncoder(1, 4, 2, {mlp_dims = 0}).layers[1].linear1.weight)
  shape("1 2 4", nn.MultiHeadAttention(4, 2, {value_dims = 0, value_output_dims = 0})(x, x, x))
  -- MLX makes these too, and cannot call them
  shape("1 3 3 0", nn.Conv2d(3, 0, 3)(mx.ones({1, 5, 5, 3})))
  shape("1 7 0", nn.ConvTranspose1d(3, 0, 3)(mx.ones({1, 5, 3})))
  shape("2 0", nn.QuantizedLinear(64, 0)(mx.ones({2, 64})))
  shape("2 3 0", nn.InstanceNorm(0)(mx.ones({2, 3, 0})))
  local gru, x0 = nn.GRU(0, 3), mx.ones({2, 4, 0})
  local one = nn.GRU(1, 3) -- whose input is 0
  one:update{Wh = gru.Wh, b = gru.b, bhn = gru.bhn}
  assert(mx.allclose(gru(x0), one(mx.zeros({2, 4, 1}))):item())
  -- wrong at the call, as in MLX
  fails("[nn.TransformerEncoderLayer] activation is a string, want a function",
    nn.Transformer{dims = 4, num_heads = 2, num_encoder_layers = 1, num_decoder_layers = 1, activation = "gelu"}, x, x)
  fails("[repeat] -1 repeats, want 0 or more", nn.Upsample(-1), mx.ones({1, 4, 4, 2}))
end

do -- a class whose init leaves its parent's out, also with a method of its own that needs nothing of it
  local Bare = nn.class("Bare", nn.Linear)
  function Bare:init() self.size = 1 end
  local want = "[nn.Bare] its init does not call nn.Linear.init(self, ...), so that it has no fields of nn.Linear's"
  fails(want, Bare(), mx.ones({2, 3}))
  fails(want, tostring, Bare())
  function Bare:forward(x) return x + self.size end
  assert(Bare()(mx.array(1)):item() == 2)
  local Whole = nn.class("Whole", nn.Linear)
  function Whole:init(n) nn.Linear.init(self, n, n) end
  assert(Whole(2)(mx.ones({1, 2})).size == 2)

  -- the error is told too; and other layers made within init are none of that business
  fails("nn.Linear's: mlxlua:nn/linear.lua:%d+: attempt to index", tostring, Bare())
  function Bare:forward(x) return x + self.nothing.there end
  fails("nn.Linear's: testdata/nn.lua:%d+: attempt to index field 'nothing' %(a nil value%)",
    Bare(), mx.array(1))
  function Whole:init(n)
    nn.Linear.init(self, n, n)
    self.norm = nn.LayerNorm(n)
  end
  function Whole:forward(x) return self.norm(x) + self.nothing.there end
  local _, why = pcall(Whole(2), mx.ones({1, 2}))
  assert(tostring(why):find("^testdata/nn.lua:%d+: attempt to index field 'nothing' %(a nil value%)$"), why)
  local Other = nn.class("Other", nn.Linear)
  function Other:init() nn.Dropout.init(self, 0.5) end
  fails("[nn.Other] its init does not call nn.Linear.init(self, ...)", Other(), mx.ones({1, 2}))
end

fails("[nn.Sequential] argument 2 is a number, want a module or a function", nn.Sequential, nn.relu, 3)
fails("[nn.Sequential] argument 2 is nil", nn.Sequential, nn.relu, nil, nn.relu)
assert(nn.Sequential(mx.compile(function(x) return x + 1 end), nn.relu, nn.Identity())(mx.array(1)):item() == 2)
fails("[nn.Sequential] argument 1 is a dtype, want a module or a function", nn.Sequential, mx.float32)

do -- what mx.compile gives stands for a function everywhere
  local rnn, compiled = nn.RNN(2, 3), nn.RNN(2, 3, {nonlinearity = mx.compile(nn.tanh)})
  compiled:update(rnn:parameters())
  local x = mx.random.normal({1, 4, 2})
  assert(mx.allclose(rnn(x), compiled(x)):item())
  local doubled = utils.tree_map(mx.compile(function(a) return a * 2 end), {w = mx.array({1, 2})})
  same(doubled.w, {2, 4})
end

do -- a module that contains itself
  local outer, inner = nn.Module(), nn.Module()
  outer.inner, inner.list = inner, {outer}
  assert(tostring(outer):find("Module(...)", 1, true), tostring(outer))
  fails("a Module contains itself, so that its tree has no end", outer.parameters, outer)
  fails("a Module contains itself", outer.modules, outer)
  inner.list = {nn.Linear(1, 1), nn.Linear(1, 1)}
  outer.again = inner -- twice is not inside of itself
  assert(#outer:modules() == 7 and tostring(outer):find("again", 1, true))
end

do -- errors of parameters() name that; and so they do for a plain table that contains itself
  local outer = nn.Module()
  outer.inner = nn.Module()
  outer.inner.back = outer
  fails("[nn.Module.parameters] a Module contains itself", outer.parameters, outer)
  fails("[nn.Module.parameters] a Module contains itself", outer.trainable_parameters, outer)
  local m, list = nn.Linear(1, 1), {}
  m.lists, list[1] = {list}, {list}
  local own = "a table contains itself, so that its tree has no end"
  for _, name in ipairs{"parameters", "modules", "children", "leaf_modules", "freeze", "train"} do
    fails(own, m[name], m)
  end
  fails(own, m.load_weights, m, {})
  fails(own, tostring, m)
end

do -- arguments that are none
  local m = nn.Linear(1, 1)
  fails("[nn.Module.update_modules] modules is a number, want a table", m.update_modules, m, 3)
  fails("[nn.Module.freeze] the argument is a number, want a table of recurse, keys, strict", m.freeze, m, 3)
  fails("[nn.Module.load_weights] weights is a number, want the name of a file or a table", m.load_weights, m, 3)
  fails("[nn.Module.filter_and_map] filter_fn is missing, want a function", m.filter_and_map, m)
  fails("[nn.Module.filter_and_map] map_fn is a number, want a function", m.filter_and_map, m, nn.relu, 3)
  fails("[nn.Module.apply] map_fn is missing, want a function", m.apply, m)
  fails("[nn.Module.apply_to_modules] apply_fn is missing, want a function", m.apply_to_modules, m)
end
