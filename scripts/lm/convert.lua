-- The commands of `mlxlua lm` that read and write whole models: convert, quantize, perplexity and show.
local mx, lm = require("mx"), require("lm")
local command, files = require("lm.command"), require("lm.host")
local fail, bar, read, load, with = command.fail, command.bar, command.read, command.load, command.with

local commands = {}

-- convert, quantize ------------------------------------------------------------------------------------------------

local convert_rows = {
  {"model", "text", "the model to convert: a directory or a .gguf file", also = "hf-path"},
  {"mlx-path", "text", "the directory to write", default = "mlx_model"},
  {"quantize", "flag", "packs the weights", short = "-q"},
  {"q-bits", "count", "bits of a packed element"},
  {"q-group-size", "count", "elements that share a scale"},
  {"q-mode", "text", "affine (unless it is said), mxfp4, nvfp4 or mxfp8"},
  {"quant-predicate", "text", "a recipe: mixed_2_6, mixed_3_4, mixed_3_6 or mixed_4_6"},
  {"dtype", "text", "float16, bfloat16 or float32, of what is not packed"},
  {"dequantize", "flag", "unpacks the weights", short = "-d"},
  {"tokenizer", "text", "a directory or a .gguf file with another tokenizer to write"},
  command.ignore_key,
}

-- check refuses options that would be of no use, where others are not there or are.
local function check(o)
  if o.quantize and o.dequantize then fail("--quantize and --dequantize exclude each other") end
  for _, name in ipairs{"q_bits", "q_group_size", "q_mode", "quant_predicate"} do
    if o[name] and not o.quantize then fail("--%s is of no use without --quantize", (name:gsub("_", "-"))) end
  end
  if o.quant_predicate and o.q_bits then
    fail("--q-bits and --quant-predicate, which says the bits, exclude each other")
  end
  if o.quant_predicate and (o.q_mode or "affine") ~= "affine" then
    fail("--q-mode %s and --quant-predicate, which packs affine, exclude each other", o.q_mode)
  end
end

local function convert(host, o)
  local dtypes = {float16 = mx.float16, bfloat16 = mx.bfloat16, float32 = mx.float32}
  if o.dtype and not dtypes[o.dtype] then fail("--dtype %s: want float16, bfloat16 or float32", o.dtype) end
  check(o)
  if files.kind(o.mlx_path) then fail("%s is there already", o.mlx_path) end
  local model = load(host, o, {lazy = true, blocks = false}) -- mlx-lm knows no blocks
  if o.dequantize and lm.dequantize(model) == 0 then fail("%s is not packed", o.model) end
  if o.dtype then lm.cast(model, dtypes[o.dtype]) end
  local whole = {}
  if o.quantize then
    local count
    count, whole = lm.quantize(model, {bits = o.q_bits, group_size = o.q_group_size, mode = o.q_mode,
      recipe = o.quant_predicate})
    if count == 0 then
      fail(#whole == 0 and "%s is packed already" or "no layer of %s has rows that are a multiple of a group", o.model)
    end
  end
  local bytes, count = lm.size(model)
  lm.save(model, o.mlx_path, {progress = bar(host, "writing", " MB", 1e6), consume = true,
    tokenizer = o.tokenizer})
  host.write(("%s: %.2f GB, %.3f bits per weight\n"):format(o.mlx_path, bytes / 1e9, 8 * bytes / count))
  if #whole > 0 then
    host.write(("left whole, since their rows are no multiple of a group: %d layers, %s%s\n"):format(#whole,
      table.concat(whole, ", ", 1, math.min(#whole, 8)), #whole > 8 and ", ..." or ""))
  end
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
  rows = with(command.model, {
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
  local slack = result.error and (" +- %.4f"):format(result.error) or ""
  host.write(("Perplexity: %.4f%s\nTokens: %d, %.1f tokens-per-sec\n"):format(
    result.perplexity, slack, result.tokens, result.tokens / result.seconds) .. command.peak())
  return 0
end

-- show -------------------------------------------------------------------------------------------------------------

commands.show = {
  about = "What a model is made of.",
  rows = with(command.model, {{"tensors", "flag", "each array"}, {"template", "flag", "the chat template"}}),
}

function commands.show.run(host, o)
  local model = load(host, o, {lazy = true})
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

return commands
