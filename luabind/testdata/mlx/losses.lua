-- MLX's test_losses.py.
local t, losses = {}, nn.losses

-- reduced wants what a loss gives of arguments, for each example, on average and in all.
local function reduced(name, want, atol, ...)
  local args, n = {...}, select("#", ...)
  local function call(how)
    local keywords = {}
    for k, v in pairs(args[n]) do keywords[k] = v end
    keywords.reduction = how
    local all = {unpack(args, 1, n - 1)}
    all[n] = keywords
    return losses[name](unpack(all, 1, n))
  end
  want = mx.array(want)
  near(call("none"), want, atol)
  near(call("mean"), mx.mean(want), atol)
  near(call("sum"), mx.sum(want), atol)
end

local none = {reduction = "none"}

function t.test_cross_entropy()
  local function ce(logits, targets, keywords)
    keywords = keywords or {}
    keywords.reduction = "none"
    return losses.cross_entropy(logits, targets, keywords)
  end
  local sure = mx.array({{0, -mx.inf}, {-mx.inf, 0}})
  local ids, probabilities = mx.array({0, 1}, mx.int32), mx.array({{1, 0}, {0, 1}})
  near(ce(sure, ids), {0, 0})
  local first, base = mx.array({0}, mx.int32), mx.array({{2, -1}})
  for _, offset in ipairs({1e4, 1e6}) do near(ce(base + offset, first), ce(base, first), 1e-5) end
  for _, v in ipairs({1, 1e4, 1e8, 1e20}) do near(ce(mx.full({1, 2}, v), first), {math.log(2)}, 1e-5) end
  assert(mx.all(mx.isnan(ce(sure, probabilities))):item())

  local logits, weights = mx.array({{2, -1}, {-1, 2}}), mx.array({1, 2})
  for _, targets in ipairs({ids, probabilities}) do
    near(ce(logits, targets, {weights = weights}), {0.04858735, 0.0971747})
    near(ce(logits, targets, {label_smoothing = 0.3}), {0.498587, 0.498587})
    near(ce(logits, targets, {weights = weights, label_smoothing = 0.3}), {0.49858734, 0.9971747})
  end
  logits, ids = mx.random.normal({4, 8}), mx.array({1, 2, 3, 0}, mx.int32)
  near(ce(logits.T, ids, {axis = 0}), ce(logits, ids, {axis = -1}))
end

function t.test_binary_cross_entropy()
  local targets = mx.array({0, 0, 1, 1})
  local logits = mx.array({0.105361, 0.223144, 1.20397, 0.916291})
  reduced("binary_cross_entropy", {0.747215, 0.810930, 0.262365, 0.336472}, nil, logits, targets, {})
  near(losses.binary_cross_entropy(logits, targets, {weights = mx.array({1, 2, 1, 2}), reduction = "none"}),
    {0.747215, 1.62186, 0.262365, 0.672944})
  reduced("binary_cross_entropy", {0.693147, 0.916291, 0.356675, 0.223144}, nil, mx.array({0.5, 0.6, 0.7, 0.8}), targets,
    {with_logits = false})
  local tiny = 1e-59
  reduced("binary_cross_entropy", {0, tiny, tiny, 0}, nil, mx.array({0, tiny, 1 - tiny, 1}), targets, {with_logits = false})
end

function t.test_l1_loss()
  local x = mx.array({0.5, 0.2, 0.9, 0})
  reduced("l1_loss", {0, 0, 0, 0}, 0, x, x, {})
end

function t.test_mse_loss()
  reduced("mse_loss", {0.04, 0.01, 0.01, 0.04}, nil, mx.array({0.5, 0.2, 0.9, 0}), mx.array({0.7, 0.1, 0.8, 0.2}), {})
end

function t.test_smooth_l1_loss()
  reduced("smooth_l1_loss", {0.125, 0.125, 0, 0.5}, 0, mx.array({1.5, 2.5, 0.5, 3.5}), mx.array({1, 2, 0.5, 2.5}),
    {beta = 1})
end

function t.test_nll_loss()
  local ids = mx.array({0, 1}, mx.int32)
  reduced("nll_loss", {0, 0}, 0, mx.array({{0, -mx.inf}, {-mx.inf, 0}}), ids, {})
  local logs = mx.log(mx.softmax(mx.random.normal({4, 8}), -1))
  ids = mx.array({1, 2, 3, 0}, mx.int32)
  near(losses.nll_loss(logs.T, ids, {axis = 0}), losses.nll_loss(logs, ids, {axis = -1}))
  logs = mx.log(mx.softmax(mx.random.normal({2, 5, 3}), 1))
  local picked = {{1, 4, 0}, {2, 3, 1}}
  local got = losses.nll_loss(logs, mx.array(picked, mx.int32), {axis = 1})
  shape(got, 2, 3)
  for b = 0, 1 do
    for k = 0, 2 do near(got:index(b, k), -logs:index(b, picked[b + 1][k + 1], k)) end
  end
end

function t.test_gaussian_nll_loss()
  local inputs, vars = mx.array({{0.1, 0.2}, {0.3, 0.4}}), mx.array({{0.1, 0.2}, {0.3, 0.4}})
  local targets = mx.array({{0.2, 0.1}, {0.1, 0.2}})
  local want = {{-1.101293, -0.779719}, {-0.535320, -0.408145}}
  reduced("gaussian_nll_loss", want, nil, inputs, targets, vars, {})
  reduced("gaussian_nll_loss", {{-0.182354, 0.139220}, {0.383619, 0.510793}}, nil, inputs, targets, vars, {full = true})
  near(losses.gaussian_nll_loss(inputs, targets, vars), mx.mean(mx.array(want)))
end

function t.test_kl_div_loss()
  local p, q = mx.log(mx.array({{0.5, 0.5}, {0.8, 0.2}})), mx.log(mx.array({{0.5, 0.5}, {0.2, 0.8}}))
  reduced("kl_div_loss", {0, 0.831777}, 1e-7, p, q, {})
  near(losses.kl_div_loss(p, q, none), (mx.exp(q) * (q - p)):sum(-1))
end

function t.test_triplet_loss()
  reduced("triplet_loss", {0, 2.31662}, nil, mx.array({{1, 2, 3}, {1, 2, 3}}), mx.array({{4, 5, 6}, {0, -1, 2}}),
    mx.array({{7, 8, 9}, {3, 2, 3}}), {})
  for _, p in ipairs({1, 3}) do
    near(losses.triplet_loss(mx.array({{0, 0}}), mx.array({{2, 0}}), mx.array({{0, 3}}), {p = p, reduction = "none"}), {0})
  end
end

-- of_ones makes a test of the mean loss of ones and zeros.
local function of_ones(name, want)
  return function()
    near(losses[name](mx.ones({2, 4}), mx.zeros({2, 4}), {reduction = "mean"}), want, 1e-6)
  end
end

t.test_hinge_loss = of_ones("hinge_loss", 1)
t.test_huber_loss = of_ones("huber_loss", 0.5)
t.test_log_cosh_loss = of_ones("log_cosh_loss", 0.433781)

function t.test_cosine_similarity_loss()
  reduced("cosine_similarity_loss", {0.985344, 0.961074}, nil, mx.array({{0.5, 0.5, 0.2, 0.9}, {0.1, 0.3, 0.5, 0.5}}),
    mx.array({{0.6, 0.4, 0.3, 0.8}, {0.2, 0.5, 0.6, 0.4}}), {})
end

function t.test_margin_ranking_loss()
  local a, b = mx.array({-0.573409, -0.765166, -0.0638}), mx.array({0.75596, 0.225763, 0.256995})
  local targets = mx.array({1, 1, -1})
  near(losses.margin_ranking_loss(a, b, targets, none), {1.329369, 0.990929, 0})
  near(losses.margin_ranking_loss(a, b, targets, {margin = 0.5, reduction = "none"}), {1.829369, 1.490929, 0.179205})
end

return t
