-- MLX's test_nn.py, TestLayers: all but the activations, the pools and Upsample.
local t = {}

function t.test_identity() equal(nn.Identity()(mx.ones({10, 4})), mx.ones({10, 4})) end

function t.test_linear() shape(nn.Linear{input_dims = 4, output_dims = 8}(mx.zeros({10, 4})), 10, 8) end

function t.test_bilinear()
  local layer = nn.Bilinear{input1_dims = 2, input2_dims = 4, output_dims = 6}
  shape(layer(mx.zeros({10, 2}), mx.zeros({10, 4})), 10, 6)
end

function t.test_norm_eps_validation()
  for name, make in pairs{
    LayerNorm = function(eps) return nn.LayerNorm(16, {eps = eps}) end,
    RMSNorm = function(eps) return nn.RMSNorm(16, {eps = eps}) end,
    GroupNorm = function(eps) return nn.GroupNorm(4, 16, {eps = eps}) end,
    InstanceNorm = function(eps) return nn.InstanceNorm(16, {eps = eps}) end,
    BatchNorm = function(eps) return nn.BatchNorm(16, {eps = eps}) end,
  } do
    for _, eps in ipairs({-1, -1e-30, 0}) do fails(name .. "] eps is .* want a positive number", make, eps) end
    for _, eps in ipairs({1e-30, 1e-5, 1}) do assert(make(eps).eps == eps) end
  end
end

function t.test_group_norm()
  local ramp = mx.broadcast_to(mx.arange(100):astype(mx.float32):reshape({1, 10, 10, 1}), {2, 10, 10, 4})
  local x = mx.concatenate({ramp, 0.5 * ramp}, -1)
  local function moments(y, size, axes, mean, var)
    y = y:reshape(size)
    for what, want in pairs{mean = mean, var = var} do
      local got = mx[what](y, axes)
      near(got, mx.full(got, want), 1e-6)
    end
  end
  for _, case in ipairs({{false, {2, -1, 2}, 1}, {true, {2, -1, 2, 4}, {1, -1}}}) do
    local g = nn.GroupNorm(2, 8, {pytorch_compatible = case[1]})
    moments(g(x), case[2], case[3], 0, 1)
    g.weight, g.bias = g.weight * 2, g.bias + 3
    moments(g(x), case[2], case[3], 3, 4)
  end
  fails("no multiple of num_groups, 4", nn.GroupNorm, {num_groups = 4, dims = 6})
  fails("num_groups is 0", nn.GroupNorm, {num_groups = 0, dims = 8})
  fails("num_groups is -1", nn.GroupNorm, {num_groups = -1, dims = 8})
  fails("dims is 0", nn.GroupNorm, {num_groups = 4, dims = 0})
end

function t.test_instance_norm()
  local v = values.test_instance_norm
  for i = 1, 3 do near(nn.InstanceNorm{dims = 3}(mx.array(v["x " .. i])), v["expected_y " .. i], 1e-5) end
  -- Squares of what halfs hold do not fit into halfs.
  local i = mx.arange(4)
  local odd = (i:reshape({4, 1, 1}) + i:reshape({4, 1}) + i) % 2
  local board = mx.stack({512 - 1024 * odd, 256 - 512 * odd}, -1):astype(mx.float16):reshape({1, 4, 4, 4, 2})
  local y = nn.InstanceNorm{dims = 2}(board)
  dtype(y, "float16")
  near(y:min(), mx.array(-1, mx.float16))
  near(y:max(), mx.array(1, mx.float16))
  assert(tostring(nn.InstanceNorm{dims = 3}) == "InstanceNorm(3, eps=1e-05, affine=False)")
  fails("the array has 2 dimensions", nn.InstanceNorm{dims = 8}, mx.zeros({4, 8}))
end

function t.test_batch_norm()
  local v = values.test_batch_norm
  local function fresh(n, affine)
    local bn = nn.BatchNorm{num_features = n, affine = affine}
    equal(bn.running_mean, mx.zeros({n}))
    equal(bn.running_var, mx.ones({n}))
    return bn
  end
  mx.random.seed(42)
  local x = mx.random.normal({5, 4})
  local bn = fresh(4, true)
  near(bn(x), v["expected_y 1"], 1e-5)
  near(bn.running_mean, v["expected_mean 1"], 1e-5)
  near(bn.running_var, v["expected_var 1"], 1e-5)
  bn:eval()
  near(bn(x), v["expected_y 2"], 1e-5)
  near(fresh(4, false)(x), v["expected_y 3"], 1e-5)

  mx.random.seed(42)
  bn = fresh(5, true)
  near(bn(mx.random.normal({2, 4, 5})), v["expected_y 4"], 1e-5)
  near(bn.running_mean, v["expected_mean 2"], 1e-5)
  near(bn.running_var, v["expected_var 2"], 1e-5)
  fails("the array has 5 dimensions", bn, mx.random.normal({2, 4, 5, 4, 5}))
  assert(paths(bn:parameters()) == "bias running_mean running_var weight")
  assert(paths(bn:trainable_parameters()) == "bias weight")
  assert(paths(bn:unfreeze():trainable_parameters()) == "bias weight")

  mx.random.seed(42)
  local y = fresh(6, true)(mx.random.normal({2, 3, 3, 6}))
  near(y:mean({0, 1, 2}), mx.zeros({6}), 1e-5)
  near(y:var({0, 1, 2}), mx.ones({6}), 1e-2)
end

function t.test_batch_norm_matches_torch()
  for _, case in ipairs(torch.batch_norm) do
    local size = {unpack(case.shape)}
    local features = size[#size]
    local bn = nn.BatchNorm(features, 1e-5, 0.1)
    bn.weight, bn.bias = formula({features}, 2), formula({features}, 3)
    local x = formula(size, 1)
    summed(bn(x), case.train, 1e-4)
    near(bn.running_mean, case.mean, 1e-5)
    near(bn.running_var, case.var, 1e-4)
    bn:eval()
    summed(bn(x), case.eval, 1e-4)
  end
end

function t.test_batch_norm_stats()
  local bn = nn.BatchNorm(4):train()
  local y = bn(mx.random.normal({2, 3, 3, 4}))
  near(y:mean({0, 1, 2}), mx.zeros({4}), 1e-5)
  near(y:var({0, 1, 2}), mx.ones({4}), 1e-2)
  shape(bn.running_mean, 4)
  fails("a channel has one value only", nn.BatchNorm(4), mx.random.normal({1, 4}))
end

function t.test_conv1d()
  local x = mx.ones({5, 12, 2})
  local function conv(more)
    more.in_channels, more.out_channels, more.kernel_size = 2, 4, 3
    return nn.Conv1d(more)
  end
  local c = conv{}
  c.weight = mx.ones_like(c.weight)
  near(c(x), mx.full({5, 10, 4}, 6))
  c = conv{stride = 2}
  shape(c(x), 5, 5, 4)
  assert(paths(c:parameters()) == "bias weight")
  shape(conv{dilation = 2}(x), 5, 8, 4)
  assert(paths(conv{bias = false}:parameters()) == "weight")
  c = conv{groups = 2}
  shape(c.weight, 4, 3, 1)
  shape(c(x), 5, 10, 4)
end

function t.test_conv2d()
  local x = mx.ones({4, 8, 8, 3})
  local c = nn.Conv2d(3, 1, 8)
  shape(c(x), 4, 1, 1, 1)
  c.weight = mx.ones_like(c.weight) / 8 / 8 / 3
  near(c(x)[":, 0, 0, 0"], x:mean({1, 2, 3}))

  -- Of ones, each place is the sum of the weights that it meets.
  local function sums(w) return w:sum({1, 2, 3}) end
  c = nn.Conv2d(3, 8, 3)
  shape(c(x), 4, 6, 6, 8)
  below(c(x), sums(c.weight), 1e-4)
  c = nn.Conv2d(3, 8, 3, {padding = 1})
  local y = c(x)
  shape(y, 4, 8, 8, 8)
  for place, part in pairs{
    [":, 1:7, 1:7"] = "...", [":, 0, 0"] = ":, 1:, 1:", [":, 7, 7"] = ":, :-1, :-1",
    [":, 1:7, 7"] = ":, :, :-1", [":, 7, 1:7"] = ":, :-1, :",
  } do below(y[place], sums(c.weight[part]), 1e-4) end
  c = nn.Conv2d(3, 8, 3, {padding = 0, stride = 2})
  shape(c(x), 4, 3, 3, 8)
  below(c(x), sums(c.weight), 1e-4)
  c = nn.Conv2d(3, 8, 3, {dilation = 2})
  shape(c(x), 4, 4, 4, 8)
  below(c(x), sums(c.weight), 1e-4)
  shape(nn.Conv2d(4, 8, 3, {padding = 1, stride = 1, groups = 2})(mx.ones({4, 7, 7, 4})), 4, 7, 7, 8)
end

function t.test_conv_transpose_extra_repr()
  assert(tostring(nn.ConvTranspose2d(4, 8, {kernel_size = {3, 5}})):find("kernel_size=(3, 5)", 1, true))
  assert(tostring(nn.ConvTranspose3d(4, 8, {kernel_size = {2, 3, 4}})):find("kernel_size=(2, 3, 4)", 1, true))
end

function t.test_sequential()
  local x = mx.ones({10, 2})
  local m = nn.Sequential(nn.Linear(2, 10), nn.ReLU(), nn.Linear(10, 1))
  local y = m(x)
  shape(y, 10, 1)
  local layers = m:parameters().layers
  assert(#layers == 3 and layers[1].weight and next(layers[2]) == nil and layers[3].weight)
  m.layers[2] = nn.relu
  equal(m(x), y)
end

function t.test_sin_pe()
  local x = mx.arange(10)
  local y = nn.SinusoidalPositionalEncoding(16, {min_freq = 0.01})(x)
  shape(y, 10, 16)
  below(mx.diag(mx.matmul(y, y.T)), mx.array(1), 1e-5)
  shape(nn.SinusoidalPositionalEncoding(2)(x), 10, 2)
  fails("dims is 0", nn.SinusoidalPositionalEncoding, 0)
  for _, dims in ipairs({1, 3}) do fails("want a positive even number", nn.SinusoidalPositionalEncoding, dims) end
  local m = nn.SinusoidalPositionalEncoding(16, {scale = 0})
  assert(m.scale == 0)
  equal(m(x), mx.zeros({10, 16}))
end

function t.test_rope()
  for _, keywords in ipairs({{}, {traditional = false}, {base = 10000}, {scale = 0.25}}) do
    local rope, x = nn.RoPE(4, keywords), mx.random.uniform(0, 1, {1, 3, 4})
    shape(rope(x), 1, 3, 4)
    dtype(rope(x), "float32")
    shape(rope(x, {offset = 3}), 1, 3, 4)
    dtype(rope(x:astype(mx.float16)), "float16")
  end
end

function t.test_alibi()
  local alibi, x = nn.ALiBi(), mx.random.uniform(0, 1, {1, 8, 20, 20})
  shape(alibi(x), 1, 8, 20, 20)
  dtype(alibi(x), "float32")
  dtype(alibi(x:astype(mx.float16)), "float16")
end

local function drops(class, size)
  return function()
    for _, d in ipairs({mx.float32, mx.bfloat16, mx.float16}) do
      local y = nn[class](0.5)(mx.ones(size, d))
      shape(y, unpack(size))
      dtype(y, tostring(d))
    end
  end
end

t.test_dropout = drops("Dropout", {2, 4})
t.test_dropout2d = drops("Dropout2d", {2, 4, 4, 4})
t.test_dropout3d = drops("Dropout3d", {2, 4, 4, 4, 4})

function t.test_set_dtype()
  local layer = nn.Linear{input_dims = 4, output_dims = 8, bias = true}
  local function are(want)
    for _, p in ipairs(utils.tree_flatten(layer:parameters())) do dtype(p[2], want) end
  end
  are("float32")
  layer:set_dtype(mx.bfloat16)
  are("bfloat16")
  layer:set_dtype(mx.float32, function() return false end)
  are("bfloat16")
  layer:set_dtype(mx.int32, function() return true end)
  are("int32")
  layer:set_dtype(mx.int64, {predicate = false}) -- Python's None
  are("int64")
  layer:set_dtype(mx.int16, function(d) return mx.issubdtype(d, mx.integer) end)
  are("int16")
end

function t.test_rnn()
  local layer, x = nn.RNN{input_size = 5, hidden_size = 12, bias = true}, mx.random.normal({2, 25, 5})
  shape(layer(x), 2, 25, 12)
  layer = nn.RNN(5, 12, {bias = false, nonlinearity = function(a) return mx.maximum(0, a) end})
  shape(layer(x), 2, 25, 12)
  fails("nonlinearity", nn.RNN, 5, 12, {nonlinearity = "tanh"})
  x = mx.random.normal({44, 5})
  local h = layer(x)
  shape(h, 44, 12)
  shape(layer(x, {hidden = h[-1]}), 44, 12)
end

function t.test_gru()
  local layer, x = nn.GRU(5, 12, {bias = true}), mx.random.normal({2, 25, 5})
  local h = layer(x)
  shape(h, 2, 25, 12)
  shape(layer(x, {hidden = h[":, -1, :"]}), 2, 25, 12)
  x = mx.random.normal({44, 5})
  h = layer(x)
  shape(h, 44, 12)
  shape(layer(x, h[-1]), 44, 12)
  for _, bias in ipairs({true, false}) do
    layer, x = nn.GRU(5, 12, {bias = bias}), mx.random.normal({2, 25, 5})
    near(layer(x), layer(x, {hidden = mx.zeros({2, 12})}))
  end
end

function t.test_lstm()
  local layer = nn.LSTM(5, 12)
  local function both(h, c, ...)
    shape(h, ...)
    shape(c, ...)
    return h, c
  end
  local x = mx.random.normal({2, 25, 5})
  local h, c = layer(x)
  both(h, c, 2, 25, 12)
  h, c = layer(x, {hidden = h[":, -1, :"], cell = c[":, -1, :"]})
  both(h, c, 2, 25, 12)
  x = mx.random.normal({44, 5})
  h, c = layer(x)
  both(h, c, 44, 12)
  h, c = layer(mx.random.normal({44, 5}), {hidden = h[-1], cell = c[-1]})
  both(h, c, 44, 12)
end

function t.test_quantized_embedding()
  local e = nn.Embedding(32, 256)
  local q = nn.QuantizedEmbedding.from_embedding(e, {bits = 8})
  local ids = mx.array({2, 6, 9, 3, 0, 3}, mx.int32)
  below(e(ids), q(ids), q.scales:max():item())
  local x = mx.random.uniform(0, 1, {2, 256})
  local a, b = e:as_linear(x), q:as_linear(x)
  local cosine = (a * b):sum(-1) / mx.linalg.norm(a, {axis = -1}) / mx.linalg.norm(b, {axis = -1})
  assert(cosine:min():item() > 0.99)
end

function t.test_causal_mask()
  for _, d in ipairs({mx.float16, mx.bfloat16}) do
    local mask = nn.MultiHeadAttention.create_additive_causal_mask(4, d)
    assert(not mx.any(mx.isnan(mask)):item() and mask["0, -1"]:item() < 0)
    dtype(mask, tostring(d))
  end
end

function t.test_attention()
  local x = mx.random.normal({2, 5, 32})
  shape(nn.MultiHeadAttention(32, 4)(x, x, x), 2, 5, 32)
end

function t.test_transformer_encoder_layer()
  local x, mask = mx.random.normal({2, 5, 32}), nn.MultiHeadAttention.create_additive_causal_mask(5)
  for _, more in ipairs({{}, {norm_first = false}, {mlp_dims = 64}}) do
    more.dims, more.num_heads = 32, 4
    local layer = nn.TransformerEncoderLayer(more)
    shape(layer(x, {mask = nil}), 2, 5, 32)
    shape(layer(x, mask), 2, 5, 32)
    shape(layer(x, {mask = mask}), 2, 5, 32)
  end
end

function t.test_transformer_decoder_layer()
  local x, memory = mx.random.normal({2, 5, 32}), mx.random.normal({2, 8, 32})
  local mask = nn.MultiHeadAttention.create_additive_causal_mask(5)
  for _, more in ipairs({{}, {norm_first = false}, {mlp_dims = 64}}) do
    more.dims, more.num_heads = 32, 4
    local layer = nn.TransformerDecoderLayer(more)
    shape(layer(x, memory), 2, 5, 32)
    shape(layer(x, memory, mask), 2, 5, 32)
    equal(layer(x, memory, {x_mask = mask, memory_mask = nil}), layer(x, memory, mask))
  end
end

function t.test_transformer_encoder()
  shape(nn.TransformerEncoder{num_layers = 2, dims = 32, num_heads = 4}(mx.random.normal({2, 5, 32}), {mask = nil}), 2, 5, 32)
end

function t.test_transformer_decoder()
  local decoder = nn.TransformerDecoder{num_layers = 2, dims = 32, num_heads = 4}
  shape(decoder(mx.random.normal({2, 5, 32}), mx.random.normal({2, 8, 32})), 2, 5, 32)
end

local small = {dims = 32, num_heads = 4, num_encoder_layers = 2, num_decoder_layers = 2}

function t.test_transformer()
  local src, tgt = mx.random.normal({2, 8, 32}), mx.random.normal({2, 5, 32})
  local model, mask = nn.Transformer(small), nn.MultiHeadAttention.create_additive_causal_mask(5)
  shape(model(src, tgt), 2, 5, 32)
  equal(model(src, tgt, {tgt_mask = mask}), model(src, tgt, nil, mask))
end

function t.test_transformer_custom_modules()
  local keywords = utils.tree_map(function(v) return v end, small)
  keywords.custom_encoder, keywords.custom_decoder = nn.Identity(), nn.Identity()
  local model = nn.Transformer(keywords)
  of_class(model.encoder, nn.Identity)
  of_class(model.decoder, nn.Identity)
end

return t
