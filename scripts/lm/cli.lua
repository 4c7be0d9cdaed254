-- The commands of `mlxlua lm`. run(arguments, host) is one of them; what it needs of the program around it is in the
-- table host, of which all is optional: write(text), note(text) for what is not the answer, terminal (whether notes go
-- to one), interrupted(), which is true once after Ctrl-C, and ask(prompt), a line of the user's, or nil at the end.
local mx, lm = require("mx"), require("lm")
local options, files = require("lm.options"), require("lm.host")

local commands, order = {}, {"generate", "chat", "convert", "quantize", "perplexity", "show"}

local function fail(text, ...) error({usage = text:format(...)}, 0) end

-- bar gives a function (done, all) that shows progress in one line, and takes the line away when all is done. unit says
-- what is counted, and how many make one.
local function bar(host, label, unit, size)
  if not host.terminal then return nil end
  return function(done, all)
    if done >= all then return host.note("\r\27[K") end
    local n, of = math.floor(30 * done / all), size or 1
    host.note(("\r%s [%s%s] %d/%d%s"):format(label, ("#"):rep(n), (" "):rep(30 - n), done / of, all / of, unit or ""))
  end
end

local model_rows = {
  {"model", "text", "a model directory, a .gguf file, or a repository in Hugging Face's cache"},
  {"tokenizer", "text", "a directory or a .gguf file with another tokenizer"},
  {"ignore-key", "text", "a key of config.json to leave out of account; may be repeated", many = true},
}
local sampling_rows = {
  {"max-tokens", "count", "most tokens of an answer", short = "-m"},
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
  {"prefill-step-size", "count", "tokens of a prompt that are read at once", default = 2048},
}

local function with(...)
  local out = {}
  for _, rows in ipairs{...} do
    for _, row in ipairs(rows) do out[#out + 1] = row end
  end
  return out
end

local function read(path)
  local f, why = io.open(path, "rb")
  if not f then fail("%s", why) end
  local text = f:read("*a")
  f:close()
  return text
end

local function load(host, o)
  if not o.model then fail("--model is needed") end
  return lm.load(o.model, {progress = bar(host, "loading"), ignore = o.ignore_key, lazy = o.mlx_path ~= nil})
end

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
  }
end

local function figures(f)
  local function rate(n, seconds) return seconds > 0 and n / seconds or 0 end
  return ("Prompt: %d tokens, %.3f tokens-per-sec\nGeneration: %d tokens, %.3f tokens-per-sec\nPeak memory: %.3f GB\n")
    :format(f.prompt_tokens, rate(f.prompt_tokens, f.prompt_seconds), f.tokens, rate(f.tokens, f.seconds),
      mx.get_peak_memory() / 1e9)
end

local function rendering(o)
  return {template = o.chat_template and read(o.chat_template), arguments = o.chat_template_config}
end

-- generate ---------------------------------------------------------------------------------------------------------

commands.generate = {
  about = "Answers a prompt. Without --prompt or --prompt-file the prompt is standard input.",
  rows = with(model_rows, {
    {"prompt", "text", "the prompt; - is standard input", short = "-p"},
    {"prompt-file", "text", "a file with the prompt"},
    {"prefill-response", "text", "what the answer begins with"},
    {"ignore-chat-template", "flag", "takes the prompt as it is"},
    {"prompt-cache-file", "text", "keeps what was made of the prompt, for prompts that begin alike"},
    {"verbose", "boolean", "figures after the answer", default = true},
  }, sampling_rows),
}

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
local function remembered(session, file, prompt, a)
  if files.kind(file) then
    local caches, about = lm.caches(session.model, {file = file, kv_bits = a.kv_bits, kv_group_size = a.kv_group_size,
      max_kv = a.max_kv})
    local seen = {}
    for id in (about.tokens or ""):gmatch("%d+") do seen[#seen + 1] = tonumber(id) end
    for i, id in ipairs(seen) do
      if prompt[i] ~= id then fail("%s is of a prompt that differs at token %d", file, i) end
    end
    a.caches, a.seen = caches, seen
    return
  end
  if #prompt < 2 then return end
  local caches, seen = lm.caches(session.model, a), {unpack(prompt, 1, #prompt - 1)}
  lm.prefill(session.model, mx.array({seen}, mx.int32), caches, a.chunk, a.progress)
  caches:save(file, {tokens = table.concat(seen, " ")})
  a.caches, a.seen = caches, seen
end

function commands.generate.run(host, o)
  local session = lm.open(load(host, o), o.tokenizer)
  local prompt = prompted(host, session, o)
  local a = answering(host, session, o)
  if o.prompt_cache_file then remembered(session, o.prompt_cache_file, prompt, a) end
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
  rows = with(model_rows, sampling_rows),
}

function commands.chat.run(host, o)
  local session = lm.open(load(host, o), o.tokenizer)
  o.max_tokens = o.max_tokens or 256
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

-- convert, quantize ------------------------------------------------------------------------------------------------

local convert_rows = {
  {"model", "text", "the model to convert: a directory or a .gguf file", also = "hf-path"},
  {"mlx-path", "text", "the directory to write", default = "mlx_model"},
  {"quantize", "flag", "packs the weights", short = "-q"},
  {"q-bits", "count", "bits of a packed element"},
  {"q-group-size", "count", "elements that share a scale"},
  {"q-mode", "text", "affine, mxfp4, nvfp4 or mxfp8", default = "affine"},
  {"quant-predicate", "text", "a recipe: mixed_2_6, mixed_3_4, mixed_3_6 or mixed_4_6"},
  {"dtype", "text", "float16, bfloat16 or float32, of what is not packed"},
  {"dequantize", "flag", "unpacks the weights", short = "-d"},
  {"ignore-key", "text", "a key of config.json to leave out of account; may be repeated", many = true},
}

local function convert(host, o)
  local dtypes = {float16 = mx.float16, bfloat16 = mx.bfloat16, float32 = mx.float32}
  if o.dtype and not dtypes[o.dtype] then fail("--dtype %s: want float16, bfloat16 or float32", o.dtype) end
  if o.quantize and o.dequantize then fail("--quantize and --dequantize exclude each other") end
  if files.kind(o.mlx_path) then fail("%s is there already", o.mlx_path) end
  local model = load(host, o)
  if o.dequantize and lm.dequantize(model) == 0 then fail("%s is not packed", o.model) end
  if o.dtype then lm.cast(model, dtypes[o.dtype]) end
  if o.quantize then
    local count = lm.quantize(model, {bits = o.q_bits, group_size = o.q_group_size, mode = o.q_mode,
      recipe = o.quant_predicate})
    if count == 0 then fail("%s is packed already", o.model) end
  end
  local bytes, count = lm.size(model)
  lm.save(model, o.mlx_path, {progress = bar(host, "writing", " MB", 1e6), consume = true})
  host.write(("%s: %.2f GB, %.3f bits per weight\n"):format(o.mlx_path, bytes / 1e9, 8 * bytes / count))
  return 0
end

commands.convert = {about = "Writes a model as mlx-lm reads it, packed or not.", rows = convert_rows, run = convert}
commands.quantize = {about = "Writes a model packed: convert --quantize.", rows = convert_rows,
  run = function(host, o)
    o.quantize = true
    return convert(host, o)
  end}

-- perplexity -------------------------------------------------------------------------------------------------------

commands.perplexity = {
  about = "How well a model foretells a text: exp of the mean negative log-probability of its tokens.",
  rows = with(model_rows, {
    {"data-path", "text", "the text file"},
    {"sequence-length", "count", "tokens that are read together", default = 512},
    {"batch-size", "count", "sequences that are computed at once", default = 8},
    {"num-samples", "count", "most sequences; 0: all", default = 0},
  }),
}

function commands.perplexity.run(host, o)
  if not o.data_path then fail("--data-path is needed") end
  if o.sequence_length < 2 then fail("--sequence-length %d: want at least 2", o.sequence_length) end
  local session = lm.open(load(host, o), o.tokenizer)
  local tokens = session:tokens(read(o.data_path))
  local result = lm.perplexity(session.model, tokens, {
    length = o.sequence_length, batch = math.max(o.batch_size, 1), samples = o.num_samples > 0 and o.num_samples or nil,
    progress = bar(host, "reading"), interrupted = host.interrupted,
  })
  host.write(("Perplexity: %.4f +- %.4f\nTokens: %d, %.1f tokens-per-sec\nPeak memory: %.3f GB\n"):format(
    result.perplexity, result.error, result.tokens, result.tokens / result.seconds, mx.get_peak_memory() / 1e9))
  return 0
end

-- show -------------------------------------------------------------------------------------------------------------

commands.show = {
  about = "What a model is made of.",
  rows = with(model_rows, {{"tensors", "flag", "each array"}, {"template", "flag", "the chat template"}}),
}

function commands.show.run(host, o)
  local model = load(host, o)
  if o.template then
    host.write((lm.open(model, o.tokenizer):template() or fail("%s has no chat template", o.model)) .. "\n")
    return 0
  end
  local bytes, count = lm.size(model)
  host.write(("%s: %s, %d layers, %.3f billion weights, %.3f GB, %.2f bits per weight\n"):format(o.model,
    model.config.model_type, #model.model.layers, count / 1e9, bytes / 1e9, 8 * bytes / count))
  local q = lm.packing(model)
  if q then host.write(("packed: %d bits in groups of %d, %s\n"):format(q.bits, q.group_size, q.mode)) end
  local arrays, names = lm.weights(model), {}
  for name in pairs(arrays) do names[#names + 1] = name end
  table.sort(names)
  for _, name in ipairs(o.tensors and names or {}) do
    local x = arrays[name]
    host.write(("%-64s %-10s (%s)\n"):format(name, tostring(x.dtype), table.concat(x.shape, ", ")))
  end
  return 0
end

-- All --------------------------------------------------------------------------------------------------------------

local function usage()
  local out = {"usage: mlxlua lm COMMAND [options]"}
  for _, name in ipairs(order) do out[#out + 1] = ("  %-12s %s"):format(name, commands[name].about) end
  out[#out + 1] = "mlxlua lm COMMAND --help lists a command's options.\n"
  return table.concat(out, "\n")
end

local function run(arguments, host)
  host = host or {}
  host.write = host.write or function(text) io.write(text) io.flush() end
  host.note = host.note or function(text) io.stderr:write(text) end
  host.ask = host.ask or function(prompt)
    host.note(prompt)
    return io.read("*l")
  end
  local name = arguments[1]
  if name == nil or name == "--help" or name == "-h" or name == "help" then
    host.write(usage())
    return name == nil and 1 or 0
  end
  local command = commands[name]
  local ok, status = pcall(function()
    if not command then fail("there is no command %s: %s", name, table.concat(order, ", ")) end
    local rest = {unpack(arguments, 2)}
    for _, a in ipairs(rest) do
      if a == "--help" or a == "-h" then
        host.write(options.usage(name, command.about, command.rows))
        return 0
      end
    end
    return command.run(host, options.parse(command.rows, rest))
  end)
  if ok then return status end
  local text = type(status) == "string" and status:match("^lm[:.].*$")
  if text then status = {usage = text:gsub("^lm: ", "")} end
  if type(status) ~= "table" or not status.usage then error(status, 0) end
  host.note(("mlxlua lm: %s\n"):format(status.usage))
  return 1
end

return {run = run, commands = commands}
