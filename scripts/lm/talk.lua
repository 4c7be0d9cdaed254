-- The commands of `mlxlua lm` that answer: generate and chat.
local mx, lm = require("mx"), require("lm")
local command, files, cache = require("lm.command"), require("lm.host"), require("lm.cache")
local fail, bar, read, load, with = command.fail, command.bar, command.read, command.load, command.with

local commands = {}

-- length is the option of an answer's length.
local function length(default)
  return {{"max-tokens", "count", "most tokens of an answer", short = "-m", default = default}}
end

local sampling_rows = {
  {"temp", "number", "temperature; 0 takes the best token", default = 0},
  {"top-p", "number", "draw from the best tokens of this probability together", default = 1},
  {"min-p", "number", "draw from tokens at least so probable, relative to the best", default = 0},
  {"min-tokens-to-keep", "count", "tokens that min-p leaves in any case", default = 1},
  {"top-k", "count", "draw from so many tokens; 0: from all", default = 0},
  {"xtc-probability", "number", "probability of dropping the best tokens (XTC)", default = 0},
  {"xtc-threshold", "number", "probability from which XTC drops tokens", default = 0.1},
  {"repetition-penalty", "number", "divides scores of tokens that came before"},
  {"repetition-context-size", "count", "how far back penalties look", default = 20},
  {"presence-penalty", "number", "is taken off scores of tokens that came before"},
  {"frequency-penalty", "number", "is taken off for each time that they came"},
  {"logit-bias", "bias", "adds to scores: token=number,..."},
  {"seed", "count", "seed of the random numbers"},
  {"stop", "text", "a text that ends the answer; may be repeated", many = true},
  {"extra-eos-token", "text", "a token that ends the answer; may be repeated", many = true},
  {"system-prompt", "text", "the first message of the conversation"},
  {"chat-template", "text", "a file with another chat template"},
  {"chat-template-config", "json", "variables for the chat template, a JSON object", also = "chat-template-args"},
  {"max-kv-size", "count", "tokens that are remembered; older ones but the first four are forgotten"},
  {"kv-bits", "count", "bits in which keys and values are kept"},
  {"kv-group-size", "count", "group size of kv-bits", default = 64},
  {"quantized-kv-start", "count", "tokens after which kv-bits begins", default = 5000},
  {"prefill-step-size", "count", "tokens of a prompt that are read at once", default = 2048},
}

-- answering is the options of Session.answer by a command's.
local function answering(host, session, o)
  if o.seed then mx.random.seed(o.seed) end
  local ends = {}
  for _, token in ipairs(o.extra_eos_token or {}) do
    ends[session.tokenizer.id(token) or fail("--extra-eos-token %s is no token", token)] = true
  end
  return {
    temp = o.temp, top_p = o.top_p, min_p = o.min_p, min_tokens_to_keep = o.min_tokens_to_keep, top_k = o.top_k,
    xtc_probability = o.xtc_probability, xtc_threshold = o.xtc_threshold, repetition_penalty = o.repetition_penalty,
    presence_penalty = o.presence_penalty, frequency_penalty = o.frequency_penalty, logit_bias = o.logit_bias,
    repetition_context_size = o.repetition_context_size, presence_context_size = o.repetition_context_size,
    frequency_context_size = o.repetition_context_size, max_tokens = o.max_tokens, stop = o.stop, ends = ends,
    interrupted = host.interrupted, progress = bar(host, "reading the prompt"), chunk = o.prefill_step_size,
    max_kv = o.max_kv_size, kv_bits = o.kv_bits, kv_group_size = o.kv_group_size,
    quantized_kv_start = o.quantized_kv_start,
  }
end

local function figures(f)
  local function rate(n, seconds) return seconds > 0 and n / seconds or 0 end
  return ("Prompt: %d tokens, %.3f tokens-per-sec\nGeneration: %d tokens, %.3f tokens-per-sec\n"):format(
    f.prompt_tokens, rate(f.prompt_tokens, f.prompt_seconds), f.tokens, rate(f.tokens, f.seconds)) .. command.peak()
end

local function rendering(o)
  return {template = o.chat_template and read(o.chat_template), arguments = o.chat_template_config}
end

-- generate ---------------------------------------------------------------------------------------------------------

commands.generate = {
  about = "Answers a prompt. Without --prompt or --prompt-file the prompt is standard input.",
  rows = with(command.model, {
    {"prompt", "text", "the prompt; - is standard input", short = "-p"},
    {"prompt-file", "text", "a file with the prompt"},
    {"prefill-response", "text", "what the answer begins with"},
    {"ignore-chat-template", "flag", "takes the prompt as it is"},
    {"prompt-cache-file", "text", "keeps what was made of the prompt, for prompts that begin alike"},
    {"verbose", "boolean", "figures after the answer", default = true},
  }, length(100), sampling_rows),
}

-- written is an option's name as it is written.
local function written(key) return "--" .. key:gsub("_", "-") end

-- exclude fails where an option is there that another one would leave without a use.
local function exclude(o, name, ...)
  for _, other in ipairs{...} do
    if o[name] and o[other] then fail("%s and %s exclude each other", written(name), written(other)) end
  end
end

-- need_template fails where an option is there that only a chat template uses, and there is none.
local function need_template(session, o, name)
  if o[name] and not (o.chat_template or session:template()) then
    fail("%s needs a chat template, and %s has none: see --chat-template", written(name), o.model)
  end
end

-- prompted is a command's prompt, as tokens.
local function prompted(host, session, o)
  local text = o.prompt
  if o.prompt_file then text = read(o.prompt_file) end
  if text == nil or text == "-" then text = (host.input or function() return io.read("*a") end)() end
  if o.ignore_chat_template or not (o.chat_template or session:template()) then
    return session:tokens(text .. (o.prefill_response or ""))
  end
  local messages, how = {}, rendering(o)
  if o.system_prompt then messages[1] = {role = "system", content = o.system_prompt} end
  messages[#messages + 1] = {role = "user", content = text}
  if o.prefill_response then
    messages[#messages + 1], how.continue = {role = "assistant", content = o.prefill_response}, true
  end
  return session:conversation(messages, how)
end

-- remembered begins with what a file keeps of an earlier prompt; without the file it is made of all of the prompt but
-- its last token.
local function remembered(session, o, prompt, a)
  local file = cache.path(o.prompt_cache_file)
  if files.kind(file) then
    local caches, about = lm.caches(session.model, {file = file, kv_bits = a.kv_bits, kv_group_size = a.kv_group_size,
      quantized_kv_start = a.quantized_kv_start, max_kv = a.max_kv})
    if about.model ~= o.model then fail("%s is of the model %s, not of %s", file, tostring(about.model), o.model) end
    local seen = {}
    for id in (about.tokens or ""):gmatch("%d+") do seen[#seen + 1] = tonumber(id) end
    a.caches, a.seen = caches, seen
    return
  end
  if #prompt < 2 then return end
  local caches, seen = lm.caches(session.model, a), {unpack(prompt, 1, #prompt - 1)}
  lm.prefill(session.model, mx.array({seen}, mx.int32), caches, a.chunk, function(done, all)
    if a.progress then a.progress(done, all) end
    if a.interrupted and a.interrupted() then error({usage = "interrupted, nothing is kept", status = 130}, 0) end
  end)
  caches:save(file, {tokens = table.concat(seen, " "), model = o.model})
  a.caches, a.seen = caches, seen
end

function commands.generate.run(host, o)
  exclude(o, "prompt", "prompt_file")
  exclude(o, "ignore_chat_template", "system_prompt", "chat_template", "chat_template_config")
  local session = lm.open(load(host, o), o.tokenizer)
  need_template(session, o, "system_prompt")
  need_template(session, o, "chat_template_config")
  local prompt = prompted(host, session, o)
  local a = answering(host, session, o)
  if o.prompt_cache_file then remembered(session, o, prompt, a) end
  if o.verbose then host.write("==========\n") end
  if o.prefill_response then host.write(o.prefill_response) end
  for piece in session:answer(prompt, a) do host.write(piece) end
  host.write("\n")
  if o.verbose then host.write("==========\n" .. figures(a.figures)) end
  return a.figures.reason == "interrupted" and 130 or 0
end

-- chat -------------------------------------------------------------------------------------------------------------

commands.chat = {
  about = "A conversation: q ends it, r begins anew, h is help. Ctrl-C ends an answer.",
  rows = with(command.model, length(256), sampling_rows),
}

function commands.chat.run(host, o)
  local session = lm.open(load(host, o), o.tokenizer)
  need_template(session, o, "chat_template_config")
  local a, how = answering(host, session, o), rendering(o)
  local messages
  local function anew()
    messages = o.system_prompt and {{role = "system", content = o.system_prompt}} or {}
  end
  anew()
  host.note("q ends the chat, r begins anew, h is help; Ctrl-C ends an answer.\n")
  while true do
    local line = host.ask(">> ")
    if line == nil or line == "q" then return 0 end
    if line == "h" then
      host.note("q ends the chat, r begins anew; all else is said to the model.\n")
    elseif line == "r" then
      anew()
    elseif line ~= "" then
      messages[#messages + 1] = {role = "user", content = line}
      local prompt
      if how.template or session:template() then
        prompt = session:conversation(messages, how)
      else
        local text = {}
        for i, m in ipairs(messages) do text[i] = m.content end
        prompt = session:tokens(table.concat(text, "\n"))
      end
      local said = {}
      for piece in session:answer(prompt, a) do
        said[#said + 1] = piece
        host.write(piece)
      end
      host.write("\n")
      if host.terminal then host.note(figures(a.figures)) end
      messages[#messages + 1] = {role = "assistant", content = table.concat(said)}
    end
  end
end

return commands
