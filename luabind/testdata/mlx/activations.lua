-- MLX's test_nn.py, TestLayers: the activations.
local t = {}

-- gives makes a test of a function or layer: what it gives of an array, to so many places.
local function gives(f, x, want, places)
  local y = f(mx.array(x))
  float32(y, #x)
  if places then below(y, mx.array(want), places) else equal(y, want) end
end

function t.test_gelu()
  local x = {1.15286231, -0.81037411, 0.35816911, 0.77484438, 0.66276414}
  -- jax.nn.gelu gives these, without and with approximate=True.
  near(nn.GELU()(mx.array(x)), {1.0093501, -0.16925684, 0.22918941, 0.60498625, 0.49459383})
  local approximate = {1.0091482, -0.1693441, 0.22918446, 0.60491, 0.4945476}
  for _, name in ipairs({"precise", "tanh"}) do near(nn.GELU{approx = name}(mx.array(x)), approximate) end
  equal(nn.GELU{approx = "precise"}(mx.array(x)), nn.GELU{approx = "tanh"}(mx.array(x)))
  local line = mx.arange(-6, 6, 12 / 100)
  below(nn.gelu(line), nn.gelu_approx(line), 0.0005)
  below(nn.gelu(line), nn.gelu_fast_approx(line), 0.025)
end

function t.test_sigmoid()
  local x = mx.array({1, 0, -1})
  equal(nn.sigmoid(x), mx.sigmoid(x))
  equal(nn.Sigmoid()(x), mx.sigmoid(x))
end

function t.test_relu() gives(nn.relu, {1, -1, 0}, {1, 0, 0}) end

function t.test_step()
  equal(nn.step(mx.array({-1, 0, 1})), {0, 1, 1})
  equal(nn.Step{threshold = 1}(mx.array({-1, 0, 1})), {0, 0, 1})
end

function t.test_leaky_relu()
  gives(nn.leaky_relu, {1, -1, 0}, {1, -0.01, 0})
  gives(nn.LeakyReLU{negative_slope = 0.1}, {1, -1, 0}, {1, -0.1, 0})
end

function t.test_elu()
  gives(nn.elu, {1, -1, 0}, {1, -0.6321, 0}, 1e-4)
  gives(nn.ELU{alpha = 1.1}, {1, -1, 0}, {1, -0.6953, 0}, 1e-4)
end

function t.test_relu6() gives(nn.relu6, {1, -1, 0, 7, -7}, {1, 0, 0, 6, 0}) end

function t.test_softmax() gives(nn.softmax, {1, -1, 0}, {0.6652, 0.0900, 0.2447}, 1e-4) end

function t.test_softmin() gives(nn.softmin, {1, 2, 3}, {0.6652, 0.2447, 0.0900}, 1e-4) end

function t.test_softplus() gives(nn.softplus, {1, -1, 0}, {1.3133, 0.3133, 0.6931}, 1e-4) end

function t.test_softsign() gives(nn.softsign, {1, -1, 0}, {0.5, -0.5, 0}, 1e-4) end

function t.test_softshrink()
  gives(nn.softshrink, {1, -1, 0}, {0.5, -0.5, 0}, 1e-4)
  gives(nn.Softshrink{lambd = 0.7}, {1, -1, 0}, {0.3, -0.3, 0}, 1e-4)
end

function t.test_celu()
  gives(nn.celu, {1, -1, 0}, {1, -0.6321, 0}, 1e-4)
  gives(nn.CELU{alpha = 1.1}, {1, -1, 0}, {1, -0.6568, 0}, 1e-4)
end

function t.test_log_softmax()
  gives(nn.log_softmax, {1, 2, 3}, {-2.4076, -1.4076, -0.4076}, 1e-4)
  for _, v in ipairs({1, 1e4, 1e8, 1e20, 1e36}) do
    near(nn.log_softmax(mx.full({1, 2}, v)), mx.full({1, 2}, -math.log(2)), 1e-5)
  end
end

function t.test_log_sigmoid() gives(nn.log_sigmoid, {1, -1, 0}, {-0.3133, -1.3133, -0.6931}, 1e-4) end

function t.test_prelu() gives(nn.PReLU(), {1, -1, 0, 0.5}, {1, -0.25, 0, 0.5}) end

function t.test_mish() gives(nn.Mish(), {1, -1, 0, 0.5}, {0.8651, -0.3034, 0, 0.3752}, 1e-4) end

function t.test_hardswish() gives(nn.hardswish, {-3, -1.5, 0, 1.5, 3}, {0, -0.375, 0, 1.125, 3}, 1e-4) end

function t.test_glu() near(nn.glu(mx.array({{{1, 2, 3, 4}}})), {{{0.952574, 1.96403}}}) end

function t.test_hard_tanh() gives(nn.hard_tanh, {1, -2, 0, 0.5, 2}, {1, -1, 0, 0.5, 1}) end

function t.test_hard_shrink()
  local x = {1, -0.5, 0, 0.5, -1.5}
  for _, f in ipairs({nn.hard_shrink, nn.HardShrink()}) do gives(f, x, {1, 0, 0, 0, -1.5}) end
  for _, f in ipairs({function(a) return nn.hard_shrink(a, {lambd = 0.1}) end, nn.HardShrink{lambd = 0.1}}) do
    gives(f, x, x)
  end
end

return t
