-- A model written as a directory, by the names of its layers, as mlx-lm reads it.
local mx, host, quantize = require("mx"), require("lm.host"), require("lm.quantize")

local save = {}

local function fail(text, ...) error(("lm: " .. text):format(...), 0) end

local function try(ok, why, ...)
  if not ok then fail("%s", why) end
  return ok, why, ...
end

-- weights are a model's arrays by their names.
function save.weights(model)
  local out = {}
  local function walk(t, path)
    for k, v in pairs(t) do
      local name = path .. tostring(type(k) == "number" and k - 1 or k)
      if mx.type(v) == "array" then
        out[model.saved_as and model:saved_as(name) or name] = v
      elseif type(v) == "table" then
        walk(v, name .. ".")
      end
    end
  end
  walk(model:parameters(), "")
  return out
end

local shard = 5 * 2 ^ 30 -- bytes of a file, at most, unless one array is larger

-- shards distributes arrays over files.
local function shards(arrays)
  local names, out, size, total = {}, {{}}, 0, 0
  for name in pairs(arrays) do names[#names + 1] = name end
  table.sort(names)
  for _, name in ipairs(names) do
    local n = arrays[name].nbytes
    if size + n > shard and size > 0 then
      out[#out + 1], size = {}, 0
    end
    out[#out][name], size, total = arrays[name], size + n, total + n
  end
  return out, total
end

-- What belongs to a model's directory and is not its weights: words are the files of a tokenizer.
local beside = {"generation_config.json", "preprocessor_config.json"}
local words = {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
  "chat_template.jinja", "chat_template.json", "vocab.json", "merges.txt"}

local function copy(from, names, dir)
  for _, name in ipairs(names) do
    local file = from .. "/" .. name
    if host.kind(file) then try(host.copy(file, dir .. "/" .. name)) end
  end
end

-- write_tokenizer writes what a .gguf file has of a tokenizer; it may have none.
local function write_tokenizer(file, dir)
  local _, about = mx.load(file, {format = "gguf", return_metadata = true})
  local any = false
  for key in pairs(about) do any = any or key:match("^tokenizer%.ggml%.") ~= nil end
  if not any then return end
  local tokenizer = try(host.tokenizer(file))
  local config = {tokenizer_class = "PreTrainedTokenizerFast", bos_token = tokenizer.bos, eos_token = tokenizer.eos,
    pad_token = tokenizer.pad, unk_token = tokenizer.unk, chat_template = tokenizer.chat_template}
  try(host.write(dir .. "/tokenizer.json", try(host.gguf_tokenizer(file))))
  try(host.write(dir .. "/tokenizer_config.json", try(host.encode(config, "  "))))
end

-- uses counts under how many names each array is saved.
local function uses(arrays)
  local out = {}
  for _, x in pairs(arrays) do out[x] = (out[x] or 0) + 1 end
  return out
end

-- write_beside writes what is not the weights of a model, with the tokenizer of another directory or file, if one is
-- named.
local function write_beside(model, dir, tokenizer)
  if model.directory then copy(model.directory, beside, dir) end
  if tokenizer then try(host.tokenizer(tokenizer)) end
  local from = tokenizer or model.directory or ""
  if from:match("%.gguf$") then
    write_tokenizer(from, dir)
  elseif from ~= "" then
    copy(from, words, dir)
  end
end

-- directory is lm.save: it writes array by array, each computed when it is its turn.
function save.directory(model, dir, options)
  if host.kind(dir) then fail("%s is there already", dir) end
  local begun = try(host.beside(dir))
  local ok, why = pcall(function()
    write_beside(model, begun, options.tokenizer)
    local all = save.weights(model)
    local files, total = shards(all)
    local map, done, left = {}, 0, uses(all)
    for i, arrays in ipairs(files) do
      local name = #files == 1 and "model.safetensors" or ("model-%05d-of-%05d.safetensors"):format(i, #files)
      try(host.save(begun .. "/" .. name, arrays, {format = "mlx"}, function(key)
        local x = arrays[key]
        map[key], done, left[x] = name, done + x.nbytes, left[x] - 1
        if options.progress then options.progress(done, total) end
        if options.consume and left[x] == 0 then x:free() end
      end))
    end
    local index = {metadata = {total_size = total}, weight_map = map}
    try(host.write(begun .. "/model.safetensors.index.json", try(host.encode(index, "    "))))
    local config = model.config:portable(model.lm_head == nil, model.portable)
    config.quantization = quantize.settings(model)
    config.quantization_config = config.quantization
    try(host.write(begun .. "/config.json", try(host.encode(config, "    "))))
    try(host.rename(begun, dir))
  end)
  if not ok then
    host.remove(begun)
    error(why, 0)
  end
end

return save
