-- What a model weighs, and how well it foretells a text.
local mx, nn = require("mx"), require("mx.nn")
local keywords, numbers = require("lm.keywords"), require("lm.numbers")

local measure = {}

-- size is a model's bytes and its number of weights, in which a packed one counts as one.
function measure.size(model)
  local bytes, count = 0, 0
  for name, x in pairs(require("lm.save").weights(model)) do
    bytes = bytes + x.nbytes
    local packed = name:match("%.scales$") or name:match("%.biases$")
    if not packed and mx.issubdtype(x.dtype, mx.floating) then count = count + x.size end
  end
  require("lm.quantize").replace(model, "", function(_, layer)
    local elements, block = mx.block_size(layer.mode or "")
    if elements then
      count = count + layer.weight.size / block * elements
    elseif layer.to_plain then
      count = count + layer.weight.size * 32 / layer.bits
    end
  end)
  return bytes, count
end

local function fail(text, ...) error(("lm.perplexity: " .. text):format(...), 0) end

-- integer is an option that is an integer of at least `least`.
local function integer(o, name, least, default)
  local v = o[name] == nil and default or o[name]
  if type(v) ~= "number" or not (v >= least and v % 1 == 0) then
    fail("%s = %s, want an integer from %d", name, tostring(v), least)
  end
  return v
end

-- perplexity is exp of the mean negative log-probability of a list of tokens, cut into sequences of options.length
-- (512), of which each begins anew: {perplexity, error, tokens, seconds}. error is the standard error, nil for one
-- token. options.batch sequences (8) are computed at once; options.samples are the most that are read, all unless it
-- is given.
function measure.perplexity(model, tokens, options)
  local o = keywords.check("lm.perplexity", options)
  local length, batch = integer(o, "length", 2, 512), integer(o, "batch", 1, 8)
  local count = math.floor(#tokens / length)
  if count == 0 then fail("%d tokens are less than a sequence of %d", #tokens, length) end
  numbers.list("lm.perplexity", "tokens", tokens, numbers.size(model))
  count = math.min(count, integer(o, "samples", 1, count))
  local rows = {}
  for i = 1, count do
    local row = {}
    for j = 1, length do row[j] = tokens[(i - 1) * length + j] end
    rows[i] = row
  end
  local all = mx.array(rows, mx.int32)
  local started, losses = mx.clock(), {}
  for from = 0, count - 1, batch do
    local part = all[("%d:%d"):format(from, math.min(from + batch, count))]
    local scores = model(part:index(":", ":-1"), require("lm").caches(model)):astype(mx.float32)
    local loss = nn.losses.cross_entropy(scores, part:index(":", "1:"))
    mx.eval(loss)
    losses[#losses + 1] = loss:flatten()
    if o.progress then o.progress(math.min(from + batch, count), count) end
    if o.interrupted and o.interrupted() then break end
  end
  losses = mx.concatenate(losses, 0)
  local n, mean = losses.size, losses:mean():item()
  local deviation = n > 1 and mx.sqrt(mx.var(losses, {ddof = 1})):item()
  return {perplexity = math.exp(mean), error = deviation and math.exp(mean) * deviation / math.sqrt(n) or nil,
    tokens = n, seconds = mx.clock() - started}
end

return measure
