-- Language models: a directory as transformers or mlx-lm write it becomes text. See docs/lm.md.
local mx = require("mx")
local sample, measure = require("lm.sample"), require("lm.measure")
local host, Config, Weights = require("lm.host"), require("lm.config"), require("lm.weights")
local cache, generate, quantize = require("lm.cache"), require("lm.generate"), require("lm.quantize")
local keywords = require("lm.keywords")

local lm = {}

-- models are the scripts of the families, by config.json's model_type: names of modules, or what those return.
lm.models = {}
for file, types in pairs{
  cohere = "cohere cohere2", deepseek_v3 = "deepseek_v3 deepseek_v2 kimi_k2 glm4_moe_lite",
  ernie4_5 = "ernie4_5", gemma = "gemma gemma2",
  gemma3 = "gemma3 gemma3_text", gemma3n = "gemma3n gemma3n_text", gemma4 = "gemma4 gemma4_text", glm4 = "glm glm4",
  gpt2 = "gpt2", gpt_neox = "gpt_neox", granitemoehybrid = "granitemoehybrid", lfm2 = "lfm2 lfm2_moe",
  mamba2 = "mamba2", minimax_m2 = "minimax_m2", nemotron_h = "nemotron_h", olmoe = "olmoe", phi = "phi",
  exaone4 = "exaone4", ernie4_5_moe = "ernie4_5_moe",
  glm4_moe = "glm4_moe", llama4 = "llama4 llama4_text", mistral3 = "mistral3 ministral3",
  qwen_vl = "qwen2_vl qwen2_vl_text qwen2_5_vl qwen2_5_vl_text qwen3_vl qwen3_vl_text qwen3_vl_moe qwen3_vl_moe_text",
  gpt_oss = "gpt_oss", granite = "granite",
  llama = "llama mistral seed_oss smollm3", mixtral = "mixtral", olmo2 = "olmo2 olmo3", phi3 = "phi3",
  qwen2 = "qwen2 qwen2_moe", qwen3 = "qwen3 qwen3_moe",
  stablelm = "stablelm", starcoder2 = "starcoder2",
  qwen3_next = "qwen3_next qwen3_5 qwen3_5_text qwen3_5_moe qwen3_5_moe_text",
} do
  for model_type in types:gmatch("%S+") do lm.models[model_type] = "lm.models." .. file end
end

-- register enters a model script of one's own, or replaces one: a module's name, or a class with a constructor (w,
-- config), forward(tokens, caches) and layout().
function lm.register(model_type, model) lm.models[model_type] = model end

-- script is the class for a Config: that of its family.
local function script(config)
  local model = lm.models[config.family]
  if type(model) == "string" then model = require(model) end
  if model then return model end
  local known = {}
  for name in pairs(lm.models) do known[#known + 1] = name end
  table.sort(known)
  error(("lm: config.json: model_type = %s is not built; these are: %s"):format(config.family,
    table.concat(known, ", ")), 0)
end

-- found is the directory or .gguf file that a name stands for: itself, or a repository in the cache of the model hub.
-- Nothing is downloaded: of what is not there it is an error.
local function found(name)
  if name:match("%.gguf$") or host.kind(name) == "directory" then return name end
  local path, why = host.cached(name)
  return path or error("lm: " .. why, 0)
end
lm.find = found

-- build makes a model of its weights, a table of arrays by name, and its Config. Options: ignore, as lm.load has it.
function lm.build(arrays, config, options)
  options = keywords.check("lm.build", options)
  local class = script(config)
  local packing = config:quantization()
  if class.names then
    arrays, packing = Weights.rename(arrays, packing, function(name) return class.names(name, config) end)
  end
  arrays = Weights.from_fp8(arrays)
  if class.sanitize then arrays = class.sanitize(arrays, config) end
  local w = Weights.new(arrays, packing, config)
  local model = class(w, config)
  config:ignore(options.ignore)
  config:check()
  w:check()
  model.config = config
  model:eval()
  return model
end

-- load is the model of a directory, of a .gguf file, or of a repository in the cache: see lm.find. Options:
-- progress(done, all) is called as files are opened, ignore lists keys of config.json to leave out of account, dtype
-- converts the weights that are floats. The blocks of a .gguf file stay what they are; with blocks = false they become
-- what mlx-lm knows, too, or float16. What is computed of weights, such as experts in one array, is computed now,
-- unless lazy says later; all others stay in their files' pages until they are used.
function lm.load(name, options)
  options = keywords.check("lm.load", options)
  if options.dtype then quantize.check_dtype("lm.load", options.dtype) end
  local path, arrays, config = found(name), nil, nil
  if path:match("%.gguf$") then
    local settings
    arrays, settings = require("lm.gguf").load(path, options.blocks)
    config = Config.new(settings)
  else
    config = Config.read(path)
    arrays = Weights.load(path, options.progress)
  end
  local model = lm.build(arrays, config, {ignore = options.ignore})
  if options.dtype then quantize.cast(model, options.dtype) end
  model.directory = path
  if not options.lazy then mx.eval(model:parameters()) end
  return model
end

-- caches is a Caches for a model. Options: padding, for a batch of prompts of several lengths; kv_bits, in which keys
-- and values are kept, in groups of kv_group_size (64), once quantized_kv_start tokens (0) were seen; max_kv, the
-- number of tokens that are remembered; file, one that caches:save wrote, to begin with. The options of session:answer
-- may be given whole.
function lm.caches(model, options)
  options = keywords.check("lm.caches", options)
  local most = options.max_kv
  if most ~= nil and not (type(most) == "number" and most >= 2 and most % 1 == 0) then
    error(("lm: max_kv = %s, want at least 2, an integer"):format(tostring(most)), 0)
  end
  local layout = model:layout()
  for _, kind in ipairs(layout) do
    if kind.kind == "kv" or kind.kind == "latent" then
      if most and (kind.window or math.huge) > most then kind.window, kind.keep = most, math.min(4, most - 2) end
    end
  end
  local packing = options.kv_bits and {bits = options.kv_bits, group_size = options.kv_group_size or 64,
    start = options.quantized_kv_start or 0}
  if options.file then return cache.load(layout, options.file, packing) end
  return cache.Caches(layout, options.padding, packing)
end

-- save writes a model as a directory that lm.load and mlx-lm read, which is not there yet, whole or not at all.
-- Options: progress(done, all), in bytes, is called after each array; consume frees each, so that a model that is
-- packed or converted on the way needs no memory of its own; the model is of no use after that; tokenizer is a
-- directory or a .gguf file whose tokenizer is written instead of the model's.
function lm.save(model, dir, options)
  require("lm.save").directory(model, dir, keywords.check("lm.save", options))
end

-- open is a Session: a model, or the one that lm.load makes of a directory or file, with its tokenizer, or that of
-- another directory. A session has conversations and answers.
function lm.open(model, directory)
  if type(model) == "string" then model = lm.load(model) end
  return require("lm.text").open(model, directory)
end

-- packing is config.json's quantization of a model, nil if no layer is packed.
function lm.packing(model) return require("lm.quantize").settings(model) end

-- weights is a table of a model's arrays by their names, as they are saved.
function lm.weights(model) return require("lm.save").weights(model) end

lm.size, lm.perplexity = measure.size, measure.perplexity
lm.sampler, lm.processors = sample.sampler, sample.processors
lm.quantize, lm.dequantize, lm.cast = quantize.model, quantize.unpack, quantize.cast
lm.Config, lm.Weights, lm.padded = Config, Weights, generate.padded
lm.step, lm.stream, lm.generate, lm.prefill = generate.step, generate.stream, generate.generate, generate.prefill

return lm
