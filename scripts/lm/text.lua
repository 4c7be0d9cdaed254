-- A model with its tokenizer: from conversations and prompts to text.
local mx, host = require("mx"), require("lm.host")
local generate, sample = require("lm.generate"), require("lm.sample")
local keywords, numbers, stops = require("lm.keywords"), require("lm.numbers"), require("lm.stops")

local Session = {}
Session.__index = Session

local function fail(text, ...) error(("lm: " .. text):format(...), 0) end

-- generation is what a model's generation_config.json says, nothing where there is none.
local function generation(model)
  local path = model.directory and model.directory .. "/generation_config.json"
  if not path or not host.kind(path) then return {} end
  local text, why = host.read(path)
  local json
  if text then json, why = host.decode(text) end
  if type(json) ~= "table" then fail("%s: %s", path, why or "want a JSON object") end
  return json
end

-- ends are the tokens that end an answer: those of generation_config.json and config.json, and the tokenizer's.
local function ends(model, tokenizer)
  local out = {}
  local function add(v)
    if type(v) == "number" then out[v] = true end
    if type(v) == "table" then
      for _, id in ipairs(v) do out[id] = true end
    end
  end
  add(generation(model).eos_token_id)
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

-- mark stands behind the text to go on with while a template renders it, as in transformers: a template that drops the
-- spaces at a message's end drops the one of the mark.
local mark = "GO-ON-FROM-HERE "

local function copied(t)
  local out = setmetatable({}, getmetatable(t) == getmetatable(host.list{}) and host.array or nil)
  for k, v in pairs(t) do out[k] = v end
  return out
end

-- marked is a list of messages with the mark in the last one, behind its text or the last of its parts that is one, and
-- that text.
local function marked(messages)
  local out = copied(messages)
  local n = #out
  if n == 0 then fail("continue: there is no message to go on with") end
  if type(out[n]) ~= "table" then fail("continue: the last message is %s, want a table", type(out[n])) end
  out[n] = copied(out[n])
  local owner, key = out[n], "content"
  if type(owner.content) == "table" then
    local parts = copied(owner.content)
    owner.content = parts
    for i, part in ipairs(parts) do
      if type(part) == "table" and part.text ~= nil then
        parts[i] = copied(part)
        owner, key = parts[i], "text"
      end
    end
  end
  local text = owner[key]
  if type(text) ~= "string" then
    fail("continue: the last message has no text to go on with: its %s is %s", key, type(text))
  end
  owner[key] = text .. mark
  return out, text
end

local function trimmed(text) return text:match("^%s*(.-)%s*$") end

-- opened is what a template made of a message's text up to its end, which the mark shows.
local function opened(rendered, text)
  local at, kept = nil, trimmed(text)
  local found = rendered:find(trimmed(mark), 1, true)
  while found do
    at, found = found, rendered:find(trimmed(mark), found + 1, true)
  end
  if not at or not rendered:find(kept, 1, true) then
    fail("continue: the chat template has changed the last message, %q: no place to go on from", text)
  end
  local before = rendered:sub(1, at - 1)
  if kept == "" or rendered:sub(at, at + #mark - 1) == mark then return before end
  return (before:gsub("%s+$", ""))
end

-- read is a conversation of its JSON.
local function read(messages)
  local list, why = host.decode(messages)
  if type(list) ~= "table" then fail("the messages are no list: %s", why or type(list)) end
  return list
end

-- rendered is a conversation, a list of {role = ..., content = ...} or its JSON, as a text by the chat template.
-- options.arguments are further variables of the template; options.tools is a list of tools, or its JSON, which keeps
-- the order of keys; options.continue leaves the last message open, for the model to go on with: without the spaces at
-- its end where the template drops them.
function Session:rendered(messages, options)
  options = keywords.check("lm.Session.rendered", options)
  local template = options.template or self:template()
  if not template then fail("%s has no chat template", self.model.directory or "the model") end
  local last, raw
  if type(messages) == "string" and options.continue then messages = read(messages) end
  if options.continue then messages, last = marked(messages) end
  if type(messages) == "string" then raw = messages end
  local values = {messages = not raw and host.list(messages) or nil, bos_token = self.tokenizer.bos,
    eos_token = self.tokenizer.eos,
    pad_token = self.tokenizer.pad, unk_token = self.tokenizer.unk}
  for k, v in pairs(options.arguments or {}) do values[k] = v end
  local tools = options.tools or ""
  if type(tools) == "table" then tools = host.encode(host.list(tools)) end
  local text, why = host.render(template, host.encode(values), not options.continue, tools, raw or "")
  if not text then fail("chat template: %s", why) end
  return last and opened(text, last) or text
end

-- tokens are a text's numbers; special says whether the tokenizer adds its own at the ends.
function Session:tokens(text, special)
  local ids, why = self.tokenizer.encode(text, special ~= false)
  if not ids then fail("%s", why) end
  return ids
end

-- conversation is the prompt of a conversation, as tokens: options are those of session:rendered.
function Session:conversation(messages, options)
  require("lm.parts")(type(messages) == "string" and read(messages) or messages)
  return self:tokens(self:rendered(messages, keywords.check("lm.Session.conversation", options)), false)
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
  local same = math.min(shared(seen, prompt), #prompt - 1, caches.offset)
  if not caches:trim(caches.offset - same) then
    caches, same = require("lm").caches(self.model, options), 0
  end
  local rest = {}
  for i = same + 1, #prompt do rest[i - same] = prompt[i] end
  return caches, rest
end

-- spared are the tokens, of those that there are, that XTC does not drop, as in mlx-lm: line ends, and what ends the
-- answer.
local function spared(self, ends, size)
  local out = {}
  local function add(id)
    if id < size then out[#out + 1] = id end
  end
  for _, id in ipairs(self:tokens("\n", false)) do add(id) end
  for id in pairs(self.ends) do add(id) end
  for id in pairs(ends) do add(id) end
  return out
end

-- check fails for numbers of tokens that the model does not have, in a prompt or an answer's options.
local function check(prompt, options, size)
  if #prompt == 0 then fail("the prompt is empty") end
  numbers.list("lm.Session.answer", "the prompt", prompt, size)
  numbers.set("lm.Session.answer", "ends", options.ends or {}, size)
  numbers.list("lm.Session.answer", "xtc_special_tokens", options.xtc_special_tokens or {}, size)
end

-- answer is an iterator over the pieces of text that the model says after a prompt, a list of tokens. Options: those of
-- lm.sampler, where xtc_special_tokens are line ends and what ends an answer unless they are given, and lm.processors;
-- max_tokens (256); stop, a text or a list of them; ends, a table {[token] = true} of further tokens that end the
-- answer; interrupted(), which ends it when it is true; progress(done, all) of the prompt; caches and seen, from an
-- answer before, of whose tokens none is read again; chunk; kv_bits, kv_group_size, quantized_kv_start and max_kv, as
-- lm.caches has them. It fills options.figures: prompt_tokens, prompt_seconds, tokens, seconds, reason; and
-- options.caches and options.seen for the next answer, which begins anew after an error.
function Session:answer(prompt, options)
  local o, size = keywords.check("lm.Session.answer", options), numbers.size(self.model)
  check(prompt, o, size)
  local caches, rest = resume(self, prompt, o)
  local list, figures = stops.list(o.stop), {prompt_tokens = #rest, tokens = 0, seconds = 0, prompt_seconds = 0}
  local seen, said = {unpack(prompt)}, {}
  o.caches, o.seen, o.figures, o.said = caches, seen, figures, said
  local stream = self.tokenizer.stream(true)
  local interrupted = o.interrupted or function() return false end
  local started, first = mx.clock(), nil
  local special = o.xtc_special_tokens or spared(self, o.ends or {}, size)
  local drawing = setmetatable({xtc_special_tokens = special}, {__index = o})
  local next_token = generate.stream(self.model, rest, {caches = caches, max_tokens = o.max_tokens,
    sampler = sample.sampler(drawing), processors = sample.processors(o), chunk = o.chunk, context = prompt,
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
        o.caches, o.seen = nil, nil
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
      local at = stops.cut(text, list)
      if at then
        text = text:sub(1, at - 1)
        finish("stop")
      end
      local keep = over and 0 or stops.held(text, list)
      local piece = text:sub(1, #text - keep)
      text = text:sub(#text - keep + 1)
      if piece ~= "" then return piece end
    end
    return nil
  end
end

return Session
