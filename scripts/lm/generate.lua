-- From a model to tokens: prefill in chunks, steps under mx.compile, the next step built while one runs.
local mx = require("mx")
local cache, keywords, numbers = require("lm.cache"), require("lm.keywords"), require("lm.numbers")

local generate = {}

local function fail(text, ...) error(("lm: " .. text):format(...), 0) end

-- padded is a batch of lists of tokens as an array (batch, longest), filled at the left with 0, and a list of how much
-- of each row that is.
function generate.padded(lists)
  local longest, rows, padding = 0, {}, {}
  for _, list in ipairs(lists) do longest = math.max(longest, #list) end
  for i, list in ipairs(lists) do
    local row, pad = {}, longest - #list
    for j = 1, longest do row[j] = j > pad and list[j - pad] or 0 end
    rows[i], padding[i] = row, pad
  end
  return mx.array(rows, mx.int32), padding
end

-- read is generate.prefill of tokens that were checked.
local function read(model, tokens, caches, chunk, progress)
  chunk = chunk or 2048
  if type(chunk) ~= "number" or not (chunk >= 1 and chunk % 1 == 0) then
    fail("a prompt is read in chunks of %s tokens, want a positive integer", tostring(chunk))
  end
  local length = tokens:dim(1)
  local from = 0
  caches:resting()
  caches.expected = caches.offset + length - caches.least -- a text in parts is one text: see Caches.ready
  local longest = caches.first[1].longest
  local whole = longest and caches.expected > longest
  while length - from > 1 and not whole do
    local to = math.min(from + chunk, length - 1)
    model(tokens:index(":", ("%d:%d"):format(from, to)), caches)
    mx.eval(caches:arrays())
    mx.clear_cache()
    from = to
    if progress then progress(from, length) end
  end
  local scores = model(tokens:index(":", ("%d:%d"):format(from, length)), caches):index(":", -1)
  caches.expected = nil
  if progress then progress(length, length) end
  return scores
end

-- prefill runs tokens (batch, length) through a model in chunks and gives the scores (batch, vocabulary) after the
-- last; chunk is 2048 tokens unless it is given. progress(done, all) is called after each chunk.
function generate.prefill(model, tokens, caches, chunk, progress)
  numbers.array("lm.prefill", "the prompt", tokens, numbers.size(model))
  return read(model, tokens, caches, chunk, progress)
end

-- step is a model's decoding step, compiled: step(tokens (batch), caches) gives the scores (batch, vocabulary) after
-- them. One trace serves all positions, sizes of batches and sizes of caches of one layout.
function generate.step(model)
  if model._step then return model._step end
  local steps = {}
  local function make(layout, long)
    return mx.compile(function(tokens, tree)
      local view = cache.traced(layout, tree, long)
      local scores = model(mx.expand_dims(tokens, 1), view)
      return mx.squeeze(scores, 1), view:tree()
    end, {shapeless = true})
  end
  model._step = function(tokens, caches)
    caches:ready(model, 1)
    local before = caches:decoding()
    local key = caches:key() .. (caches.long and ", long" or "")
    steps[key] = steps[key] or make(caches.layout, caches.long)
    local scores, tree = steps[key](tokens, before)
    caches:advance(tree, tokens)
    return scores, tree, steps[key]
  end
  return model._step
end

local function greedy(scores) return mx.argmax(scores, -1) end

-- prompted is a prompt as an array (batch, length), with the padding of a batch of lists, and whether it is a batch. op
-- is the function whose caller gave it.
local function prompted(op, model, prompt)
  local size, padding = numbers.size(model), nil
  if type(prompt) == "table" then
    for _, list in ipairs(type(prompt[1]) == "table" and prompt or {prompt}) do
      if #list == 0 then fail("the prompt is empty") end
      numbers.list(op, "the prompt", list, size)
    end
    if type(prompt[1]) == "table" then
      prompt, padding = generate.padded(prompt)
    else
      prompt = mx.array(prompt, mx.int32)
    end
  else
    if prompt.size == 0 then fail("the prompt is empty") end
    numbers.array(op, "the prompt", prompt, size)
  end
  if prompt.ndim == 2 then return prompt, padding, true end
  return mx.expand_dims(prompt, 0), nil, false
end

-- streamed is generate.stream with options that were checked.
local function streamed(op, model, prompt, o)
  local padding, batched
  prompt, padding, batched = prompted(op, model, prompt)
  if o.context then numbers.list(op, "context", o.context, numbers.size(model)) end
  local caches = o.caches or require("lm").caches(model, {padding = padding})
  local step, sampler = generate.step(model), o.sampler or greedy
  local history
  local function choose(scores)
    for _, f in ipairs(o.processors or {}) do scores = f(history, scores) end
    return sampler(scores), scores
  end
  if o.processors and #o.processors > 0 then
    history = o.context and mx.array({o.context}, mx.int32) or prompt
  end
  local left, token, scores, next_token, next_scores = o.max_tokens or 256, nil, nil, nil, nil
  if type(left) ~= "number" then fail("max_tokens = %s, want a number", tostring(left)) end
  local function follow(y)
    if history then history = mx.concatenate({history, mx.expand_dims(y, 1)}, 1) end
    local next_y, s = choose((step(y, caches)))
    mx.async_eval(next_y, caches:arrays())
    return next_y, s
  end
  local count = 0
  return function()
    if left <= 0 then return nil end
    if not token then
      token, scores = choose(read(model, prompt, caches, o.chunk, o.progress))
      mx.async_eval(token)
    else
      token, scores = next_token, next_scores
    end
    left, count = left - 1, count + 1
    if left > 0 then next_token, next_scores = follow(token) end
    if count % 256 == 0 then mx.clear_cache() end
    if batched then return token:tolist(), scores end
    return token:item(), scores
  end, caches
end

-- stream is an iterator over the tokens that a model says after a prompt: tokens (length) or (batch, length), or a
-- list. It gives the token's number (of a batch a table of them) and the scores. Options: caches, max_tokens (256),
-- sampler(scores) that gives tokens, processors: functions (tokens so far, scores) that give other scores; context, the
-- list of tokens that these see before the answer, unless it is the prompt; chunk, progress.
function generate.stream(model, prompt, options)
  return streamed("lm.stream", model, prompt, keywords.check("lm.stream", options))
end

-- generate is the list of tokens that a model says after a prompt, up to one of options.stop, a table
-- {[token] = true}. The other options are those of lm.stream.
function generate.generate(model, prompt, options)
  local out, o = {}, keywords.check("lm.generate", options)
  if o.stop then numbers.set("lm.generate", "stop", o.stop, numbers.size(model)) end
  for token in streamed("lm.generate", model, prompt, o) do
    if o.stop and o.stop[token] then break end
    out[#out + 1] = token
  end
  return out
end

return generate
