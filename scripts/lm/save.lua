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
        out[name] = v
      elseif type(v) == "table" then
        walk(v, name .. ".")
      end
    end
  end
  walk(model:parameters(), model.saved_below or "")
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

-- beside are the files of a directory that belong to a model and are not its weights.
local beside = {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
  "generation_config.json", "chat_template.jinja", "chat_template.json", "vocab.json", "merges.txt",
  "preprocessor_config.json"}

-- write_tokenizer writes what a .gguf file has of a tokenizer; it may have none.
local function write_tokenizer(file, dir)
  local tokenizer = host.tokenizer(file)
  if not tokenizer then return end
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

-- directory is lm.save: it writes array by array, each computed when it is its turn.
function save.directory(model, dir, options)
  if host.kind(dir) then fail("%s is there already", dir) end
  local begun = dir .. ".begun"
  host.remove(begun)
  try(host.mkdir(begun))
  local ok, why = pcall(function()
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
    config.quantization = quantize.settings(model, model.saved_below)
    config.quantization_config = config.quantization
    try(host.write(begun .. "/config.json", try(host.encode(config, "    "))))
    for _, name in ipairs(beside) do
      local from = (model.directory or "") .. "/" .. name
      if model.directory and host.kind(from) then try(host.copy(from, begun .. "/" .. name)) end
    end
    if (model.directory or ""):match("%.gguf$") then write_tokenizer(model.directory, begun) end
    try(host.rename(begun, dir))
  end)
  if not ok then
    host.remove(begun)
    error(why, 0)
  end
end

return save
