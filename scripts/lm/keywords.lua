-- The keywords of the tables of options that the package's functions take, and the error for others.
local mx = require("mx")

local keywords = {}

local drawing = [[temp top_p min_p min_tokens_to_keep xtc_probability xtc_threshold xtc_special_tokens top_k]]
local scoring = [[logit_bias repetition_penalty repetition_context_size presence_penalty presence_context_size
  frequency_penalty frequency_context_size]]
local keeping = "kv_bits kv_group_size quantized_kv_start max_kv"
local streaming = "caches max_tokens sampler processors context chunk progress"
local rendering = "template arguments tools continue"

local own = {
  ["lm.build"] = "ignore",
  ["lm.caches"] = keeping .. " padding file",
  ["lm.generate"] = streaming .. " stop",
  ["lm.load"] = "progress ignore dtype lazy blocks",
  ["lm.perplexity"] = "length batch samples progress interrupted",
  ["lm.processors"] = scoring,
  ["lm.quantize"] = "bits group_size mode recipe predicate",
  ["lm.quantize.predicate"] = "bits group_size mode",
  ["lm.sampler"] = drawing,
  ["lm.save"] = "progress consume tokenizer",
  ["lm.stream"] = streaming,
  ["lm.Session.answer"] = table.concat({"max_tokens stop ends interrupted progress caches seen chunk", keeping, drawing,
    scoring}, " "),
  ["lm.Session.conversation"] = rendering,
  ["lm.Session.rendered"] = rendering,
  ["lm: cache:attend"] = "scale softcap sinks",
}

local names, known = {}, {} -- by functions: a list, a set
for op, text in pairs(own) do
  names[op], known[op] = {}, {}
  for name in text:gmatch("%S+") do
    table.insert(names[op], name)
    known[op][name] = true
  end
end

-- An answer's table comes back filled, and these functions take all of it.
local answer = known["lm.Session.answer"]
answer.figures, answer.said = true, true
for _, op in ipairs{"lm.caches", "lm.processors", "lm.sampler"} do
  for name in pairs(answer) do known[op][name] = true end
end

-- check is the options that a function was given, {} for nil. What is no table, or has a keyword that the function does
-- not know, is an error that names those that it knows.
function keywords.check(op, options)
  if options == nil then return {} end
  local takes = table.concat(names[op], ", ")
  if mx.type(options) ~= "table" then
    error(("%s: options is a %s, want a table of %s"):format(op, mx.type(options), takes), 0)
  end
  for k in pairs(options) do
    if not known[op][k] then error(("%s: unknown keyword %q; it takes %s"):format(op, tostring(k), takes), 0) end
  end
  return options
end

return keywords
