-- Answers to many at once: texts come and go, each step goes on with all that are there. A prompt is read a chunk at a
-- time, between two steps; then its text is a row of lm.rows. What a text becomes depends on its own options and random
-- numbers only. One goroutine, or script, calls add, cancel and turn.
local mx = require("mx")
local host, Rows, Prefixes = require("lm.host"), require("lm.rows"), require("lm.prefixes")
local numbers, stops, asked = require("lm.numbers"), require("lm.stops"), require("lm.asked")
local refuse = asked.refuse

local Engine = {}
Engine.__index = Engine

-- new serves a Session of lm.open. Options: most, how many texts are gone on with at once (16); waiting, how many more
-- may wait (256); chunk, how many tokens of a prompt are read between two steps (512); bytes, what the rooms of all
-- texts may take (2^31), and prefixes, what is kept of earlier texts (2^29); context, the most tokens of a text, unless
-- the model has fewer; kv_bits and kv_group_size; invariant, for answers that do not depend on what is beside them to
-- the last bit: it needs mx.set_batch_invariant(true) before the model is used.
function Engine.new(session, options)
  local o = options or {}
  local model = session.model
  local self = setmetatable({session = session, model = model, most = o.most or 16, waiting_most = o.waiting or 256,
    chunk = o.chunk or 512, bytes = o.bytes or 2 ^ 31, options = o, rows = {}, waiting = {}, reading = {}, by = {},
    count = 0, steps = 0, stepped = 0, read = 0}, Engine)
  local layout = model:layout()
  self.switch = layout.switch
  local config = model.config
  self.context = math.min(o.context or math.huge, config:get("max_position_embeddings", math.huge, "size"),
    layout.longest or math.huge, layout.most or math.huge)
  self.words = numbers.size(model)
  if self.words == math.huge then self.words = session.tokenizer.size end
  if (o.prefixes or 2 ^ 29) > 0 and not layout.switch and not layout.longest then
    self.prefixes = Prefixes.new(o.prefixes or 2 ^ 29, o.invariant and self.chunk or nil)
  end
  local one = self:batch(false)
  if self.bytes < one:bytes(1, 1) then
    error(("lm: one text takes %d bytes at least, and there are %d"):format(one:bytes(1, 1), self.bytes), 0)
  end
  while self.context == math.huge or one:bytes(1, self.context) > self.bytes do
    self.context = self.context == math.huge and 2 ^ 20 or math.floor(self.context * 0.9)
  end
  if o.invariant and self:by_hand() then -- sums over a room are those of its size
    one.options.fixed = math.ceil(self.context / 256) * 256
  end
  return self
end

-- by_hand says whether attention is computed in plain operations: see lm.memory.
function Engine:by_hand()
  if self.options.kv_bits then return true end
  for _, kind in ipairs(self.model:layout()) do
    if kind.kind == "packed" or kind.kind == "packed_latent" then return true end
  end
  return self.model.config:get("attn_logit_softcapping", nil) ~= nil
end

-- batch is the Rows of texts beyond the layout's switch, or of the others.
function Engine:batch(long)
  self.rows[long] = self.rows[long] or Rows(self.model, self.most, {kv_bits = self.options.kv_bits, long = long,
    kv_group_size = self.options.kv_group_size})
  return self.rows[long]
end

-- add takes a request, a table: prompt, a text or a list of tokens, or messages, a conversation as
-- session:conversation has it, with tools, arguments and continue; max_tokens; what lm.host's drawer takes; stop, a
-- list of texts; ranked, of how many of the best tokens the probabilities are told; ignore_end, to go on past what ends
-- an answer; shown, special tokens whose texts are told; grammar, the form that the answer has to have. It gives the
-- request's number, how many tokens its prompt has, and how a conversation's prompt ends. What cannot be served is an
-- error, a table with status, param and message.
function Engine:add(r)
  if self.count >= self.most + self.waiting_most then
    refuse(429, nil, "%d requests are being answered or waiting, and no more may", self.count)
  end
  local prompt, ending = asked.prompt(self, r)
  if #prompt >= self.context then
    refuse(400, r.messages and "messages" or "prompt", "the prompt has %d tokens, and a text has %d at most", #prompt,
      self.context)
  end
  local most = r.max_tokens
  if most and #prompt + most > self.context then
    refuse(400, "max_tokens", "the prompt has %d tokens and the answer %d: a text has %d at most", #prompt, most,
      self.context)
  end
  most = most or math.min(self.options.max_tokens or 512, self.context - #prompt)
  r.logit_bias = r.logit_bias or {}
  for i, id in ipairs(r.bias_ids or {}) do r.logit_bias[id] = r.bias_values[i] end
  r.form = asked.grammar(self, r, ending)
  local drawer, why = host.drawer(r, prompt, self.words)
  if not drawer then refuse(400, why:match("^%S+"), "%s", why) end
  self.last = (self.last or 0) + 1
  local text = {id = self.last, tokens = prompt, prompt = #prompt, most = most, drawer = drawer,
    plain = asked.plain(r), ranked = r.ranked, stops = stops.list(r.stop), held = "", said = 0,
    ends = r.ignore_end and {} or self.session.ends,
    stream = self.session.tokenizer.stream(true), shown = asked.shown(self, r), cached = 0, since = mx.clock()}
  self.by[text.id], self.count = text, self.count + 1
  table.insert(self.waiting, text)
  return text.id, #prompt, ending
end

-- unplace takes a text out of where it is.
local function unplace(self, text)
  if text.row then
    local rows = text.rows
    local moved = rows:leave(text.row)
    rows.texts[text.row] = moved and rows.texts[moved] or nil
    if moved then rows.texts[moved].row, rows.texts[moved] = text.row, nil end
    text.row, text.rows = nil, nil
    return
  end
  for _, list in ipairs{self.waiting, self.reading} do
    for i, other in ipairs(list) do
      if other == text then table.remove(list, i) end
    end
  end
end

-- forget ends a text.
local function forget(self, text)
  unplace(self, text)
  self.by[text.id], self.count = nil, self.count - 1
end

-- cancel ends a request at once: nothing more is told of it.
function Engine:cancel(id)
  local text = self.by[id]
  if text then forget(self, text) end
end

-- fits says whether rooms for one text more, up to its longest, are within bounds, and has them made.
local function fits(self, text)
  local count, rows = 1, self:batch(self.switch ~= nil and text.prompt > self.switch)
  local longest, sum = text.prompt + text.most, 0
  for _, other in pairs(self.by) do
    if other.row or other.admitted then
      if other.batch == rows then
        count, longest = count + 1, math.max(longest, other.prompt + other.most)
      end
    end
  end
  for _, batch in pairs(self.rows) do
    if batch ~= rows then sum = sum + batch:bytes(batch.places, batch.size) end
  end
  if count > self.most then return false end
  local need = math.max(rows:bytes(math.max(count, rows.places), math.max(longest, rows.size)))
  if sum + need > self.bytes then
    if sum + rows:bytes(count, longest) > self.bytes and not (count == 1 and sum == 0) then return false end
    rows:fit(count, longest, true)
  end
  text.batch, text.admitted = rows, true
  return true
end

-- admit begins to read the prompts whose texts have room, first come, first served.
local function admit(self)
  while #self.waiting > 0 and #self.reading == 0 do
    local text = self.waiting[1]
    if not fits(self, text) then return end
    table.remove(self.waiting, 1)
    local known = self.prefixes and self.prefixes:find(text.tokens)
    text.caches = known or text.batch:fresh()
    text.cached = known and known.offset or 0
    text.caches.expected = #text.tokens
    table.insert(self.reading, text)
  end
end

-- read reads a chunk of a prompt: all of it but the last token. Chunks end at multiples of their size, whatever is
-- known already.
local function read(self, text)
  local caches, last = text.caches, #text.tokens - 1
  local from = caches.offset
  if from < last then
    local to = math.min(from - from % self.chunk + self.chunk, last)
    if self.switch and #text.tokens > self.switch then to = last end
    self.model(mx.array({numbers.part(text.tokens, from + 1, to)}, mx.int32), caches)
    mx.eval(caches:arrays())
    mx.clear_cache()
    self.read = self.read + to - from
    local mark = self.prefixes and (to == last or to % self.chunk == 0)
    if mark and (to == last or not caches:copied():trim(1)) then
      self.prefixes:keep(numbers.part(text.tokens, 1, to), caches:copied(), to)
    end
    if to < last then return end
  end
  caches.expected = nil
  table.remove(self.reading, 1)
  local rows = text.batch
  rows.texts = rows.texts or {}
  text.row = rows:join(caches, text.prompt + text.most)
  rows.texts[text.row], text.rows, text.caches = text, rows, nil
end

-- told is what is said of a token beside its text.
local function told(self, text, drawn)
  if not text.ranked then return nil end
  local tokenizer, best = self.session.tokenizer, {}
  for i, pair in ipairs(drawn.best) do best[i] = {tokenizer.bytes(pair[1]), pair[2]} end
  return {tokenizer.bytes(drawn.token), drawn.logprob, best}
end

-- go_on takes the next token of a text, and gives what is to be told: a table with id, text, token and at the end
-- reason ("stop", "length" or "error"), and the figures prompt, said and cached.
local function go_on(self, text, drawn)
  local event = {id = text.id, text = ""}
  local reason
  if drawn.why then
    reason, event.why = "error", drawn.why
  elseif text.ends[drawn.token] then
    reason = "stop"
    text.held = text.held .. text.stream.finish()
  else
    text.said = text.said + 1
    text.tokens[#text.tokens + 1] = drawn.token
    event.token = told(self, text, drawn)
    text.held = text.held .. (text.shown[drawn.token] or text.stream.push(drawn.token))
    if text.said >= text.most then
      reason = "length"
      text.held = text.held .. text.stream.finish()
    end
  end
  local at, stop = stops.cut(text.held, text.stops)
  if at then
    text.held = text.held:sub(1, at - 1)
    reason, event.stop = "stop", stop
  end
  local keep = reason and 0 or stops.held(text.held, text.stops)
  event.text = text.held:sub(1, #text.held - keep)
  text.held = text.held:sub(#text.held - keep + 1)
  if reason then
    event.reason, event.prompt, event.said, event.cached = reason, text.prompt, text.said, text.cached
    if self.prefixes and reason ~= "error" then
      local n = text.rows.offsets[text.row]
      if text.rows:bytes(1, n) <= self.prefixes.most then
        self.prefixes:keep(numbers.part(text.tokens, 1, n), text.rows:taken(text.row), text.prompt - 1)
      end
    end
    forget(self, text)
  end
  return event
end

-- drawn is the next token of each row: see lm.host's draw.
local function drawn(rows, scores, best)
  local drawers, ranks, plain = {}, {}, true
  for i, text in ipairs(rows.texts) do
    drawers[i], ranks[i] = text.drawer, text.ranked or false
    plain = plain and not text.ranked and text.plain
  end
  local out = {}
  if plain then
    for i, id in ipairs(best:tolist()) do out[i] = {token = id} end
    return out
  end
  local list, why = host.draw(scores, drawers, ranks)
  return list or error("lm: " .. why, 0)
end

-- again has texts that have grown past the layout's switch read anew, as the longer text that they are.
local function again(self, rows)
  for i = rows.count, 1, -1 do
    local text = rows.texts[i]
    if self.switch and not rows.long and #text.tokens > self.switch then
      unplace(self, text)
      text.batch, text.caches = self:batch(true), rows:fresh()
      text.caches.expected = #text.tokens
      table.insert(self.reading, text)
    end
  end
end

-- turn reads a chunk of a prompt and makes a step of all texts, and gives a list of what is to be told: see go_on; and
-- whether there is nothing more to do.
function Engine:turn()
  local events = {}
  admit(self)
  if self.reading[1] then read(self, self.reading[1]) end
  for _, rows in pairs(self.rows) do
    again(self, rows)
    if rows.count > 0 then
      local tokens = {}
      for i, text in ipairs(rows.texts) do tokens[i] = text.tokens[#text.tokens] end
      local chosen = drawn(rows, rows:step(tokens))
      self.steps, self.stepped = self.steps + 1, self.stepped + #tokens
      for i, text in ipairs({unpack(rows.texts)}) do events[#events + 1] = go_on(self, text, chosen[i]) end
    end
  end
  return events, self.count == 0
end

-- figures are numbers of now: texts that are gone on with, are being read and are waiting, bytes of rooms and of
-- prefixes.
function Engine:figures()
  local count, bytes = 0, 0
  for _, rows in pairs(self.rows) do
    count, bytes = count + rows.count, bytes + rows:bytes(rows.places, rows.size)
  end
  return {running = count, reading = #self.reading, waiting = #self.waiting, bytes = bytes, steps = self.steps,
    stepped = self.stepped, read = self.read, prefixes = self.prefixes and self.prefixes.bytes or 0}
end

return Engine
