-- What config.json says, in both dialects of transformers (4 and 5), by one set of names. A model takes what it needs
-- by need, get and only; check then finds what nobody took: a setting that is not built is an error that names its key.
-- What is left out is what transformers takes for granted in that family; where that is not known it is an error, too.
local host, keys = require("lm.host"), require("lm.keys")
local defaults, rotary = require("lm.defaults"), require("lm.rotary")

local Config = {}
Config.__index = Config

local function fail(text, ...) error(("lm: config.json: " .. text):format(...), 0) end

-- kinds are what a setting can be asked to be: in words, whether a value is that, and of lists the kind of elements.
local kinds = {}
for _, name in ipairs{"number", "string", "boolean"} do
  kinds[name] = {({string = "text", boolean = "true or false"})[name] or "a number",
    function(v) return type(v) == name end}
end
kinds.count = {"an integer that is not negative", function(v) return type(v) == "number" and v >= 0 and v % 1 == 0 end}
kinds.size = {"a positive integer", function(v) return kinds.count[2](v) and v > 0 end}
-- a file that asks for more layers is damaged: what is made of each would fill the memory before a weight is missed
Config.most_layers = 10000
kinds.layers = {"a positive integer of at most " .. Config.most_layers,
  function(v) return kinds.size[2](v) and v <= Config.most_layers end}
kinds.positive = {"a positive number", function(v) return type(v) == "number" and v > 0 end}
kinds.object = {"an object", function(v) return type(v) == "table" and getmetatable(v) ~= "list" end}
for name, of in pairs{numbers = "number", counts = "count", strings = "string"} do
  kinds[name] = {"a list", function(v)
    if type(v) ~= "table" then return false end
    for k in pairs(v) do
      if type(k) ~= "number" then return false end
    end
    return true
  end, of}
end

-- want fails if a value that config.json has under a name is not of a kind.
function Config.want(name, v, kind)
  local wanted, fits, of = unpack(kinds[kind])
  if not fits(v) then
    local is = type(v) == "string" and ("is the text %q"):format(v) or "= " .. tostring(v)
    if v == host.null then is = "is null" end
    if type(v) == "table" then is = getmetatable(v) == "list" and "is a list" or "is an object" end
    if type(v) == "number" and (of or kind == "object") then is = "is a number" end
    fail("%s %s, want %s", name, is, wanted)
  end
  for i, e in ipairs(of and v or {}) do Config.want(("%s[%d]"):format(name, i - 1), e, of) end
end

-- new is a Config of a decoded config.json. Models for text and pictures have the settings of the text in text_config.
function Config.new(raw)
  Config.want("it", raw, "object")
  local self = setmetatable({raw = raw, taken = {}}, Config)
  local text = raw.text_config
  if text == host.null then text = nil end
  if text ~= nil then Config.want("text_config", text, "object") end
  self.settings = {}
  for k, v in pairs(raw) do
    if k ~= "text_config" then self.settings[k] = v end
  end
  for k, v in pairs(text or {}) do self.settings[k] = v end
  if raw.tie_word_embeddings ~= nil then self.settings.tie_word_embeddings = raw.tie_word_embeddings end
  self.own = text or raw -- what is beside a text's settings belongs to pictures and sound
  self.defaults, self.assumed = {}, {}
  self.model_type = self:need("model_type", "string")
  -- the family is that of the whole: a model for text and pictures is not built where its text is
  self.family = raw.model_type ~= host.null and raw.model_type or self.model_type
  Config.want("model_type", self.family, "string")
  self.defaults = defaults[self.model_type] or {}
  return self
end

-- read decodes the config.json of a directory.
function Config.read(dir)
  local path = dir .. "/config.json"
  local text, why = host.read(path)
  if not text then error(("lm: %s is no model directory: %s"):format(dir, why), 0) end
  local raw, wrong = host.decode(text)
  if raw == nil then error(("lm: %s: %s"):format(path, wrong), 0) end
  return Config.new(raw)
end

-- said is what config.json says of a key, nil where it says nothing or null.
function Config:said(key, kind)
  self.taken[key] = true
  local v = self.settings[key]
  if v == nil or v == host.null then return nil end
  if type(v) == "string" and tonumber(v) then fail("%s is the text %q, want a number", key, v) end
  if kind then Config.want(key, v, kind) end
  return v
end

-- get is a setting. Where there is none it is what transformers takes for granted in the family; if that is nothing, or
-- the setting is null, it is the default. It is of a kind: "size" (a positive integer), "count" (an integer from 0 on),
-- "layers" (a size of at most most_layers), "number", "positive", "boolean", "string", "object", or a list, "counts",
-- "numbers" or "strings"; unless it is said, that of the default.
function Config:get(key, default, kind)
  local v = self:said(key, kind or default ~= nil and type(default) or nil)
  if v ~= nil then return v end
  local known = self.defaults[key]
  if known == nil or self.settings[key] == host.null then return default end
  if kind == "size" or kind == "count" then self.assumed[key] = known end
  return known
end

-- need is a setting that must be there, of a kind, under one of the names, or what the family takes for granted.
function Config:need(key, kind, ...)
  local v
  for _, name in ipairs{key, ...} do
    local found = self:said(name, kind)
    if v == nil then v = found end
  end
  if v == nil then v = self:get(key, nil, kind) end
  if v == nil then fail("%s is missing", key) end
  return v
end

-- assumptions are the sizes that config.json leaves out, in words, "" for none.
function Config:assumptions()
  local out = {}
  for key, value in pairs(self.assumed) do out[#out + 1] = ("%s = %s"):format(key, tostring(value)) end
  table.sort(out)
  return #out == 0 and "" or "; it leaves out what is taken as " .. table.concat(out, ", ")
end

-- only is a setting of which the given values are built; the first is the default.
function Config:only(key, ...)
  local v, known = self:get(key), {...}
  if v == nil then return known[1] end
  for _, k in ipairs(known) do
    if v == k then return v end
    known[_] = tostring(k)
  end
  fail("%s = %s is not built; these are: %s", key, tostring(v), table.concat(known, ", "))
end

-- act is the activation function that a key names.
function Config:act(key, default)
  local mx, nn = require("mx"), require("mx.nn")
  local v = self:get(key, default)
  if v == nil then fail("%s is missing", key) end
  local known = {silu = nn.silu, swish = nn.silu, gelu = nn.gelu, gelu_pytorch_tanh = nn.gelu_approx,
    gelu_new = nn.gelu_approx, relu = nn.relu, relu2 = function(x) return mx.square(nn.relu(x)) end}
  if not known[v] then fail("%s = %s is not built; these are: silu, gelu, gelu_pytorch_tanh, relu, relu2", key, v) end
  return known[v]
end

-- by_layer is a list with an entry for each layer, or nil.
function Config:by_layer(key, kind, count)
  local list = self:get(key, nil, kind)
  if list and #list < count then fail("%s has %d entries for %d layers", key, #list, count) end
  return list
end

-- layer_types is the type of each layer: as listed, or by every(i), i from 1.
function Config:layer_types(count, every)
  local list, out = self:by_layer("layer_types", "strings", count), {}
  for i = 1, count do out[i] = list and list[i] or every(i) end
  return out
end

-- rope is what config says of rotary embeddings, {rope_type, rope_theta, ...}, for layers of a type where it differs by
-- type, which can have the key of a base of their own: see lm.rotary.
function Config:rope(layer_type, own_base) return rotary(self, layer_type, own_base) end

-- quantization is what config.json says of packed weights: see Weights.new.
function Config:quantization()
  local q = self:get("quantization", nil, "object")
  local foreign = self:get("quantization_config", nil, "object")
  if q or not foreign then return q end
  local method = foreign.quant_method
  if method == nil and foreign.group_size then return foreign end
  if method == "mxfp4" then return {mode = "mxfp4"} end
  if method == "fp8" then
    local block = foreign.weight_block_size or {}
    Config.want("quantization_config.weight_block_size", block, "counts")
    if block[1] == 128 and block[2] == 128 then return nil end
    fail("quantization_config.weight_block_size is built for blocks of 128 by 128 only")
  end
  fail("quantization_config.quant_method = %s is not built; these are: mxfp4, fp8", tostring(method))
end

-- portable is config.json with the keys of both dialects, for programs that know one of them, and with what they take
-- for granted in different ways: tied says whether the scores come from the embedding. more(settings, whole, config), a
-- model's portable, adds what a family has of its own: whole is all of config.json, settings the part of the text; it
-- may give another table for that part.
function Config:portable(tied, more)
  local out = {}
  for k, v in pairs(self.raw) do out[k] = v end
  local into = out
  if type(out.text_config) == "table" then -- null is none
    into = {}
    for k, v in pairs(out.text_config) do into[k] = v end
    out.text_config = into
    into.tie_word_embeddings, out.tie_word_embeddings = tied, tied -- which may be said of the whole, or of its text
  end
  if more then into = more(into, out, self) or into end
  local function set(key, value)
    if into[key] == nil and value ~= nil and value ~= host.null then into[key] = value end
  end
  set("tie_word_embeddings", tied)
  local rope = type(into.rope_parameters) == "table" and into.rope_parameters
  rope = rope and rope.full_attention or rope
  if rope and rope.rope_type == "proportional" then rope = nil end -- of layers of one type; both dialects have it so
  if rope then
    set("rope_theta", rope.rope_theta)
    set("partial_rotary_factor", rope.partial_rotary_factor)
  end
  if rope and (rope.rope_type or "default") == "default" and into.rope_scaling == nil then
    into.rope_scaling = host.null -- which some want to be there
  end
  if rope and (rope.rope_type or "default") ~= "default" then
    local scaling = {type = rope.rope_type} -- its older name
    for k, v in pairs(rope) do scaling[k] = v end
    set("rope_scaling", scaling)
    set("original_max_position_embeddings", rope.original_max_position_embeddings)
  end
  set("sliding_window_pattern", into._sliding_window_pattern)
  return out
end

-- check fails for settings that nobody took and that ask for something.
function Config:check()
  local out = {}
  for k, v in pairs(self.own) do
    if not self.taken[k] and keys.asks(k, v) then out[#out + 1] = k end
  end
  table.sort(out)
  if #out > 0 then
    fail('%s asks for something that %s models do not have here; to go past what does not matter: %s',
      table.concat(out, ", "), self.model_type, ('--ignore-key %s, or lm.load(dir, {ignore = {"%s"}})'):format(out[1],
        out[1]))
  end
end

-- ignore takes keys out of account.
function Config:ignore(keys)
  for _, k in ipairs(keys or {}) do self.taken[k] = true end
end

return Config
