-- How a token is chosen of scores, as in mlx-lm: filters of the less probable ones, and a draw; and what changes scores
-- before.
local mx = require("mx")
local keywords, numbers = require("lm.keywords"), require("lm.numbers")

local sample = {}

local function fail(op, text, ...) error((op .. ": " .. text):format(...), 0) end

local function within(o, name, low, high, default)
  local v = o[name] == nil and default or o[name]
  if type(v) ~= "number" or not (v >= low and v <= high) then
    fail("lm.sampler", "%s = %s, want a number from %g to %g", name, tostring(v), low, high)
  end
  return v
end

-- top_p keeps the most probable tokens that have the probability p together, at least one.
local function top_p(x, p)
  local sorted = mx.sort(x, -1)
  local above = mx.cumsum(mx.exp(sorted), -1, {reverse = true, inclusive = false})
  local dropped = mx.greater_equal(above, p):sum(-1, true)
  return mx.where(mx.less(x, mx.take_along_axis(sorted, dropped, -1)), -mx.inf, x)
end

-- min_p keeps tokens that are at least p times as probable as the best one, and the best `keep` ones.
local function min_p(x, p, keep)
  local limit = x:max(-1, true) + math.log(p)
  if keep > 1 then
    local sorted = mx.sort(x, -1)
    limit = mx.minimum(limit, sorted:index("...", ("-%d:"):format(keep)):min(-1, true))
  end
  return mx.where(mx.less(x, limit), -mx.inf, x)
end

local function top_k(x, k)
  local size = x:dim(-1)
  if k >= size then fail("lm.sampler", "top_k = %d, want less than the %d tokens there are", k, size) end
  return mx.where(mx.less(x, mx.topk(x, k, -1):min(-1, true)), -mx.inf, x)
end

-- xtc drops, with a probability, all tokens above a threshold but the least probable of them; special ones stay.
local function xtc(x, probability, threshold, special)
  local p = mx.softmax(x, -1)
  local least = mx.where(mx.greater(p, threshold), p, mx.inf):min(-1, true)
  local out = mx.greater(p, least)
  if #special > 0 then
    numbers.list("lm.sampler", "xtc_special_tokens", special, x:dim(-1))
    local ids, all = mx.array(special, mx.int32), mx.arange(x:dim(-1))
    local named = mx.any(mx.equal(mx.expand_dims(all, 1), ids), -1)
    out = mx.logical_and(out, mx.logical_not(named))
  end
  local rows = mx.random.uniform(0, 1, {x:dim(0), 1})
  return mx.where(mx.logical_and(mx.less_equal(rows, probability), out), -mx.inf, x)
end

-- sampler gives a function from scores (batch, vocabulary) to tokens (batch). Options: temp (0, the default: the best
-- token), top_p, min_p, min_tokens_to_keep, xtc_probability, xtc_threshold, xtc_special_tokens, top_k. Filters apply in
-- this order, before the temperature. The options of session:answer may be given whole.
function sample.sampler(options)
  local o = keywords.check("lm.sampler", options)
  local temp = within(o, "temp", 0, math.huge, 0)
  local p, low, k = within(o, "top_p", 0, 1, 0), within(o, "min_p", 0, 1, 0), within(o, "top_k", 0, 2 ^ 31, 0)
  local keep = within(o, "min_tokens_to_keep", 1, 2 ^ 31, 1)
  local chance, threshold = within(o, "xtc_probability", 0, 1, 0), within(o, "xtc_threshold", 0, 0.5, 0.1)
  local special = o.xtc_special_tokens or {}
  numbers.list("lm.sampler", "xtc_special_tokens", special, math.huge)
  if temp == 0 then return function(scores) return mx.argmax(scores, -1) end end
  return function(scores)
    local x = scores:astype(mx.float32)
    x = x - mx.logsumexp(x, -1, true)
    if p > 0 and p < 1 then x = top_p(x, p) end
    if low > 0 then x = min_p(x, low, keep) end
    if chance > 0 then x = xtc(x, chance, threshold, special) end
    if k > 0 then x = top_k(x, k) end
    return mx.random.categorical(x * (1 / temp))
  end
end

-- last are the last n tokens of (batch, length), and f of the scores at them in their place.
local function at_last(tokens, scores, n, f)
  local from = math.max(tokens:dim(1) - n, 0)
  local ids = tokens:index(":", from .. ":"):astype(mx.int32)
  return mx.put_along_axis(scores, ids, f(mx.take_along_axis(scores, ids, -1)), -1)
end

-- processors are functions (tokens so far, scores) that give other scores. Options: logit_bias, a table {[token] =
-- number}; repetition_penalty, presence_penalty, frequency_penalty, each for what is in the last
-- <name>_context_size tokens, 20 unless it is given: repetition_context_size and so on. The options of session:answer
-- may be given whole.
function sample.processors(options)
  local o = keywords.check("lm.processors", options)
  local out = {}
  if o.logit_bias and next(o.logit_bias) then
    local ids, values, most = {}, {}, 0
    for id, v in pairs(o.logit_bias) do
      numbers.check("lm.processors", "logit_bias", id, math.huge)
      if type(v) ~= "number" then
        fail("lm.processors", "logit_bias has %s for the token %d, want a number", tostring(v), id)
      end
      ids[#ids + 1], values[#values + 1], most = id, v, math.max(most, id)
    end
    ids, values = mx.array(ids, mx.int32), mx.array(values)
    out[#out + 1] = function(_, scores)
      numbers.check("lm.processors", "logit_bias", most, scores:dim(-1))
      return scores:at(":", ids):add(values:astype(scores.dtype))
    end
  end
  local penalty, n = o.repetition_penalty, o.repetition_context_size or 20
  if penalty and penalty ~= 0 then
    if penalty < 0 then
      fail("lm.processors", "repetition_penalty = %g, want a number that is not negative", penalty)
    end
    out[#out + 1] = function(tokens, scores)
      return at_last(tokens, scores, n, function(x) return mx.where(mx.less(x, 0), x * penalty, x / penalty) end)
    end
  end
  local presence, m = o.presence_penalty, o.presence_context_size or 20
  if presence and presence ~= 0 then
    out[#out + 1] = function(tokens, scores) return at_last(tokens, scores, m, function(x) return x - presence end) end
  end
  local frequency, l = o.frequency_penalty, o.frequency_context_size or 20
  if frequency and frequency ~= 0 then
    out[#out + 1] = function(tokens, scores)
      local ids = tokens:index(":", math.max(tokens:dim(1) - l, 0) .. ":")
      local counts = mx.equal(mx.expand_dims(ids, -1), mx.arange(scores:dim(-1))):sum(1)
      return scores - counts:astype(scores.dtype) * frequency
    end
  end
  return out
end

return sample
