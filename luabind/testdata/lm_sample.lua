-- What is drawn of scores: 8192 draws of one distribution against its probabilities, computed by hand.
local sample = require("lm.sample")
mx.random.seed(11)

local p = {0.4, 0.3, 0.15, 0.1, 0.05}
local n = 8192
local scores = mx.broadcast_to(mx.log(mx.array(p)) + 3, {n, 5}) -- scores are not normalised

local function drawn(options, want)
  local tokens = sample.sampler(options)(scores)
  assert(tokens.shape[1] == n)
  local total = 0
  for _, v in ipairs(want) do total = total + v end
  for i, v in ipairs(want) do
    local share, expect = mx.equal(tokens, i - 1):sum():item() / n, v / total
    local slack = 4.5 * math.sqrt(expect * (1 - expect) / n)
    assert(math.abs(share - expect) <= slack, ("token %d: %g, want %g"):format(i - 1, share, expect))
  end
end

drawn({temp = 1}, p)
drawn({temp = 0.5}, {0.16, 0.09, 0.0225, 0.01, 0.0025})
drawn({temp = 0}, {1, 0, 0, 0, 0})
drawn({temp = 1, top_k = 2}, {0.4, 0.3, 0, 0, 0})
drawn({temp = 1, top_p = 0.6}, {0.4, 0.3, 0, 0, 0})
drawn({temp = 1, top_p = 0.75}, {0.4, 0.3, 0.15, 0, 0})
drawn({temp = 1, top_p = 0.01}, {1, 0, 0, 0, 0})
drawn({temp = 1, min_p = 0.3}, {0.4, 0.3, 0.15, 0, 0})
drawn({temp = 1, min_p = 0.9, min_tokens_to_keep = 2}, {0.4, 0.3, 0, 0, 0})
drawn({temp = 1, top_p = 0.95, min_p = 0.3, top_k = 2}, {0.4, 0.3, 0, 0, 0})
drawn({temp = 1, xtc_probability = 1, xtc_threshold = 0.12}, {0, 0, 0.15, 0.1, 0.05})
drawn({temp = 1, xtc_probability = 1, xtc_threshold = 0.12, xtc_special_tokens = {0}}, {0.4, 0, 0.15, 0.1, 0.05})
local kept = {0.4 * 0.75, 0.3 * 0.75, 0.15, 0.1, 0.05} -- one draw in four drops the first two
local rest = 0.25 / 0.3
drawn({temp = 1, xtc_probability = 0.25, xtc_threshold = 0.12},
  {kept[1], kept[2], 0.15 * (0.75 + rest), 0.1 * (0.75 + rest), 0.05 * (0.75 + rest)})

-- The same seed draws the same tokens.
local draw = sample.sampler{temp = 0.8, top_p = 0.9}
mx.random.seed(5)
local first = draw(scores)
mx.random.seed(5)
assert(mx.array_equal(first, draw(scores)):item())
assert(not mx.array_equal(first, draw(scores)):item())

-- Penalties and biases, against numbers by hand.
local x = mx.array({{1, -2, 3, 4}, {1, 2, -3, 4}})
local history = mx.array({{0, 1, 1}, {3, 2, 3}}, mx.int32)
local function changed(options, want)
  local y = x
  for _, f in ipairs(sample.processors(options)) do y = f(history, y) end
  same(y, want)
end
changed({}, {{1, -2, 3, 4}, {1, 2, -3, 4}})
changed({logit_bias = {[2] = 5}}, {{1, -2, 8, 4}, {1, 2, 2, 4}})
changed({repetition_penalty = 2}, {{0.5, -4, 3, 4}, {1, 2, -6, 2}})
changed({repetition_penalty = 2, repetition_context_size = 1}, {{1, -4, 3, 4}, {1, 2, -3, 2}})
changed({presence_penalty = 1}, {{0, -3, 3, 4}, {1, 2, -4, 3}})
changed({frequency_penalty = 1}, {{0, -4, 3, 4}, {1, 2, -4, 2}})
fails("temp = -1, want a number from 0", sample.sampler, {temp = -1})
fails("top_p = 2, want a number from 0 to 1", sample.sampler, {top_p = 2})
fails("top_k = 5, want less than the 5 tokens there are", sample.sampler{temp = 1, top_k = 5}, scores)
