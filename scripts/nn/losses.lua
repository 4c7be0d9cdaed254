-- Losses.
local mx, define, fail = ...

-- loss defines a loss: call gives it for each example, and what it gives is reduced as the caller says.
local function loss(d, reduction)
  define{
    name = "losses." .. d.name, sig = d.sig .. " reduction:string=" .. reduction,
    help = d.help .. " reduction is \"none\", \"mean\" or \"sum\".",
    call = function(...)
      local n = select("#", ...)
      local how = select(n, ...)
      if how ~= "none" and how ~= "mean" and how ~= "sum" then
        fail("losses." .. d.name, ("reduction is %q, want none, mean or sum"):format(tostring(how)))
      end
      local y = d.call(...)
      if how == "none" then return y end
      return mx[how](y)
    end,
  }
end

local function size(x) return "(" .. table.concat(x.shape, ", ") .. ")" end

-- same fails for two arrays of different shapes; dropped is an axis that the second has not.
local function same(name, what, a, other, b, dropped)
  local fits = a.ndim == b.ndim + (dropped and 1 or 0)
  local j = 0
  if dropped and dropped < 0 then dropped = dropped + a.ndim end
  for i = 0, a.ndim - 1 do
    if i ~= dropped then
      fits = fits and a:dim(i) == b:dim(j)
      j = j + 1
    end
  end
  if not fits then fail("losses." .. name, ("%s %s do not fit %s %s"):format(other, size(b), what, size(a))) end
end

local function weighted(name, y, weights)
  if not weights then return y end
  same(name, "the loss", y, "weights", weights)
  return y * weights
end

-- picked are the elements of x at the targets along an axis.
local function picked(x, targets, axis)
  return mx.take_along_axis(x, mx.expand_dims(targets, axis), axis):squeeze(axis)
end

loss({
  name = "cross_entropy", sig = "logits targets weights:array? axis:int=-1 label_smoothing:number=0.0",
  help = "logsumexp(logits) less the target's logit, along an axis. targets are the targets' numbers, without the " ..
    "axis, or probabilities, with it, of which label_smoothing spreads that share evenly. The losses are " ..
    "multiplied by weights.",
  call = function(logits, targets, weights, axis, smoothing)
    if smoothing < 0 or smoothing >= 1 then
      fail("losses.cross_entropy", ("label_smoothing is %g, want a number in [0, 1)"):format(smoothing))
    end
    local probabilities = targets.ndim == logits.ndim
    same("cross_entropy", "logits", logits, "targets", targets, not probabilities and axis or nil)
    logits = logits - mx.stop_gradient(mx.max(logits, axis, true))
    local score
    if probabilities then score = mx.sum(logits * targets, axis) else score = picked(logits, targets, axis) end
    local y = mx.logsumexp(logits, axis)
    if smoothing > 0 then
      y = y - (1 - smoothing) * score - mx.mean(logits, axis) * smoothing
    else
      y = y - score
    end
    return weighted("cross_entropy", y, weights)
  end,
}, "none")

loss({
  name = "binary_cross_entropy", sig = "inputs targets weights:array? with_logits:bool=true",
  help = "-(t * log(p) + (1 - t) * log(1 - p)) for targets t, where p is sigmoid(inputs), or with with_logits = " ..
    "false " ..
    "inputs themselves, whose logarithms are at least -100. The losses are multiplied by weights.",
  call = function(inputs, targets, weights, with_logits)
    same("binary_cross_entropy", "inputs", inputs, "targets", targets)
    local y
    if with_logits then
      y = mx.logaddexp(0, inputs) - inputs * targets
    else
      local yes, no = mx.clip(mx.log(inputs), -100), mx.clip(mx.log(1 - inputs), -100)
      y = -(targets * yes + (1 - targets) * no)
    end
    return weighted("binary_cross_entropy", y, weights)
  end,
}, "mean")

loss({
  name = "l1_loss", sig = "predictions targets", help = "|predictions - targets|.",
  call = function(predictions, targets)
    same("l1_loss", "predictions", predictions, "targets", targets)
    return mx.abs(predictions - targets)
  end,
}, "mean")

loss({
  name = "mse_loss", sig = "predictions targets", help = "(predictions - targets)^2.",
  call = function(predictions, targets)
    same("mse_loss", "predictions", predictions, "targets", targets)
    return mx.square(predictions - targets)
  end,
}, "mean")

loss({
  name = "nll_loss", sig = "inputs targets axis:int=-1",
  help = "Less the targets' elements of inputs, log-probabilities along an axis.",
  call = function(inputs, targets, axis) return -picked(inputs, targets, axis) end,
}, "none")

loss({
  name = "gaussian_nll_loss", sig = "inputs targets vars full:bool=false eps:number=1e-6",
  help = "(log(v) + (targets - inputs)^2 / v) / 2, where v is vars, at least eps; with full plus log(2 * pi) / 2.",
  call = function(inputs, targets, vars, full, eps)
    same("gaussian_nll_loss", "inputs", inputs, "targets", targets)
    same("gaussian_nll_loss", "inputs", inputs, "vars", vars)
    vars = mx.maximum(vars, eps)
    local y = 0.5 * (mx.log(vars) + mx.square(targets - inputs) / vars)
    if full then y = y + 0.5 * math.log(2 * math.pi) end
    return y
  end,
}, "mean")

loss({
  name = "kl_div_loss", sig = "inputs targets axis:int=-1",
  help = "The sum of exp(targets) * (targets - inputs) along an axis: both are log-probabilities.",
  call = function(inputs, targets, axis) return mx.sum(mx.exp(targets) * (targets - inputs), axis) end,
}, "none")

loss({
  name = "smooth_l1_loss", sig = "predictions targets beta:number=1.0",
  help = "d^2 / (2 * beta) where d = |predictions - targets| is below beta, d - beta / 2 elsewhere.",
  call = function(predictions, targets, beta)
    same("smooth_l1_loss", "predictions", predictions, "targets", targets)
    local d = mx.abs(predictions - targets)
    return mx.where(mx.less(d, beta), 0.5 * mx.square(d) / beta, d - 0.5 * beta)
  end,
}, "mean")

loss({
  name = "triplet_loss", sig = "anchors positives negatives axis:int=-1 p:number=2 margin:number=1.0 eps:number=1e-6",
  help = "max(d(anchors, positives) - d(anchors, negatives) + margin, 0), where d is the p-norm of the " ..
    "difference along " ..
    "an axis: (the sum of |difference|^p, plus eps) to the power 1 / p.",
  call = function(anchors, positives, negatives, axis, p, margin, eps)
    local function distance(x) return mx.power(mx.power(mx.abs(anchors - x), p):sum(axis) + eps, 1 / p) end
    return mx.maximum(distance(positives) - distance(negatives) + margin, 0)
  end,
}, "none")

loss({
  name = "hinge_loss", sig = "inputs targets", help = "max(1 - inputs * targets, 0): targets are -1 or 1.",
  call = function(inputs, targets) return mx.maximum(1 - inputs * targets, 0) end,
}, "none")

loss({
  name = "huber_loss", sig = "inputs targets delta:number=1.0",
  help = "d^2 / 2 where d = |inputs - targets| is at most delta, delta * (d - delta / 2) elsewhere.",
  call = function(inputs, targets, delta)
    local d = mx.abs(inputs - targets)
    local quadratic = mx.minimum(d, delta)
    return 0.5 * mx.square(quadratic) + delta * (d - quadratic)
  end,
}, "none")

loss({
  name = "log_cosh_loss", sig = "inputs targets", help = "log(cosh(inputs - targets)), without overflow.",
  call = function(inputs, targets)
    local d = inputs - targets
    return mx.logaddexp(d, -d) - math.log(2)
  end,
}, "none")

loss({
  name = "cosine_similarity_loss", sig = "x1 x2 axis:int=1 eps:number=1e-8",
  help = "The cosine of the angle between x1 and x2 along an axis: their product over their norms', at least eps.",
  call = function(x1, x2, axis, eps)
    local norms = mx.linalg.norm(x1, {axis = axis}) * mx.linalg.norm(x2, {axis = axis})
    return mx.sum(x1 * x2, axis) / mx.maximum(norms, eps)
  end,
}, "none")

loss({
  name = "margin_ranking_loss", sig = "inputs1 inputs2 targets margin:number=0.0",
  help = "max(0, -targets * (inputs1 - inputs2) + margin): a target is 1 where the first is to rank higher, else -1.",
  call = function(inputs1, inputs2, targets, margin)
    same("margin_ranking_loss", "inputs1", inputs1, "inputs2", inputs2)
    same("margin_ranking_loss", "inputs1", inputs1, "targets", targets)
    return mx.maximum(0, -targets * (inputs1 - inputs2) + margin)
  end,
}, "none")
