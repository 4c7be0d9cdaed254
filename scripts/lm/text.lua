-- A model with its tokenizer: from conversations and prompts to text.
local mx, host = require("mx"), require("lm.host")
local generate, sample = require("lm.generate"), require("lm.sample")

local Session = {}
Session.__index = Session

local function fail(text, ...) error(("lm: " .. text):format(...), 0) end

-- ends are the tokens that end an answer: those of generation_config.json and config.json, and the tokenizer's.
local function ends(model, tokenizer)
  local out = {}
  local function add(v)
    if type(v) == "number" then out[v] = true end
    if type(v) == "table" then
      for _, id in ipairs(v) do out[id] = true end
    end
  end
  local text = model.directory and host.read(model.directory .. "/generation_config.json")
  local json = text and host.decode(text)
  if json then add(json.eos_token_id) end
  add(model.config:get("eos_token_id"))
  if tokenizer and tokenizer.eos then add(tokenizer.id(tokenizer.eos)) end
  return out
end

-- open is a Session of a model, with the tokenizer of its directory or .gguf file, or of another one.
function Session.open(model, directory)
  directory = directory or model.directory
  if not directory then fail("the model is of no directory: name one that has a tokenizer") end
  local tokenizer, why = host.tokenizer(directory)
  if not tokenizer then fail("%s: %s", directory, why) end
  local self = setmetatable({model = model, tokenizer = tokenizer}, Session)
  self.ends = ends(model, tokenizer)
  return self
end

-- template is the chat template that there is, or nil; with a name that one of several, or an error.
function Session:template(name)
  local t = self.tokenizer
  if name then return t.templates[name] or fail("there is no chat template %s", name) end
  return t.chat_template or t.templates.default
end

-- rendered is a conversation, a list of {role = ..., content = ...}, as a text by the chat template. options.arguments
-- are further variables of the template; options.tools is a list of tools, or its JSON, which keeps the order of keys;
-- options.continue leaves the last message open, for the model to go on with.
function Session:rendered(messages, options)
  options = options or {}
  local template = options.template or self:template()
  if not template then fail("%s has no chat template", self.model.directory or "the model") end
  local values = {messages = host.list(messages), bos_token = self.tokenizer.bos, eos_token = self.tokenizer.eos,
    pad_token = self.tokenizer.pad, unk_token = self.tokenizer.unk}
  for k, v in pairs(options.arguments or {}) do values[k] = v end
  local tools = options.tools or ""
  if type(tools) == "table" then tools = host.encode(host.list(tools)) end
  local text, why = host.render(template, host.encode(values), not options.continue, tools)
  if not text then fail("chat template: %s", why) end
  if options.continue then
    local last = messages[#messages].content
    local _, to = text:find(last, 1, true)
    while to do -- the last place
      local _, later = text:find(last, to + 1, true)
      if not later then break end
      to = later
    end
    if to then text = text:sub(1, to) end
  end
  return text
end

-- tokens are a text's numbers; special says whether the tokenizer adds its own at the ends.
function Session:tokens(text, special)
  local ids, why = self.tokenizer.encode(text, special ~= false)
  if not ids then fail("%s", why) end
  return ids
end

-- conversation is the prompt of a conversation, as tokens.
function Session:conversation(messages, options) return self:tokens(self:rendered(messages, options), false) end

-- held is how much of the end of a text could be the beginning of one of the stops.
local function held(text, stops)
  local most = 0
  for _, stop in ipairs(stops) do
    for n = math.min(#stop - 1, #text), most + 1, -1 do
      if text:sub(-n) == stop:sub(1, n) then
        most = n
        break
      end
    end
  end
  return most
end

-- cut is the place where a text has the first of the stops, or nil.
local function cut(text, stops)
  local first
  for _, stop in ipairs(stops) do
    local at = text:find(stop, 1, true)
    if at and not (first and first <= at) then first = at end
  end
  return first
end

-- shared is how many tokens two lists begin with alike.
local function shared(a, b)
  local n = 0
  while n < #a and n < #b and a[n + 1] == b[n + 1] do n = n + 1 end
  return n
end

-- resume is what of a prompt is still to be read, by options.caches and what they have seen, options.seen. Where they
-- have seen something else, they forget it, or begin anew.
local function resume(self, prompt, options)
  local caches, seen = options.caches, options.seen or {}
  if not caches then return require("lm").caches(self.model, options), prompt end
  local same = math.min(shared(seen, prompt), #prompt - 1)
  if not caches:trim(caches.offset - same) then
    caches, same = require("lm").caches(self.model, options), 0
  end
  local rest = {}
  for i = same + 1, #prompt do rest[i - same] = prompt[i] end
  return caches, rest
end

-- answer is an iterator over the pieces of text that the model says after a prompt, a list of tokens. Options: those of
-- lm.sampler and lm.processors; max_tokens; stop, a list of texts; ends, further tokens that end the answer;
-- interrupted(), which ends it when it is true; progress(done, all) of the prompt; caches and seen, from an answer
-- before, of whose tokens none is read again; chunk, kv_bits, kv_group_size, max_kv. It fills options.figures:
-- prompt_tokens, prompt_seconds, tokens, seconds, reason; and options.caches and options.seen for the next answer.
function Session:answer(prompt, options)
  local o = options
  if #prompt == 0 then fail("the prompt is empty") end
  local caches, rest = resume(self, prompt, o)
  local stops, figures = o.stop or {}, {prompt_tokens = #rest, tokens = 0, seconds = 0, prompt_seconds = 0}
  local seen, said = {unpack(prompt)}, {}
  o.caches, o.seen, o.figures, o.said = caches, seen, figures, said
  local stream = self.tokenizer.stream(true)
  local interrupted = o.interrupted or function() return false end
  local started, first = mx.clock(), nil
  local next_token = generate.stream(self.model, rest, {caches = caches, max_tokens = o.max_tokens or 100,
    sampler = sample.sampler(o), processors = sample.processors(o), chunk = o.chunk, context = prompt,
    progress = function(done, all)
      if o.progress then o.progress(done, all) end
      if interrupted() then error({interrupted = true}, 0) end
    end})
  local text, over = "", false
  local function finish(reason)
    figures.reason, over = reason, true
    figures.seconds = first and mx.clock() - first or 0
  end
  return function()
    while not over do
      local ok, token = pcall(next_token)
      if not ok then
        if type(token) == "table" and token.interrupted then
          finish("interrupted")
          break
        end
        error(token, 0)
      end
      if not first then
        first = mx.clock()
        figures.prompt_seconds = first - started
      end
      if token == nil then
        text = text .. stream.finish()
        finish("length")
      elseif self.ends[token] or o.ends and o.ends[token] then
        seen[#seen + 1] = token
        text = text .. stream.finish()
        finish("stop")
      else
        figures.tokens = figures.tokens + 1
        said[#said + 1], seen[#seen + 1] = token, token
        text = text .. stream.push(token)
        if interrupted() then finish("interrupted") end
      end
      local at = cut(text, stops)
      if at then
        text = text:sub(1, at - 1)
        finish("stop")
      end
      local keep = over and 0 or held(text, stops)
      local piece = text:sub(1, #text - keep)
      text = text:sub(#text - keep + 1)
      if piece ~= "" then return piece end
    end
    while #seen > caches.offset do table.remove(seen) end
    return nil
  end
end

return Session
