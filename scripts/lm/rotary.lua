-- What config.json says of rotary embeddings, in one form: {rope_type, rope_theta, ...}. transformers 5 has all of it
-- in rope_parameters, 4 in rope_scaling, which counts where both are there, and rope_theta. Where layers differ by
-- their type, layer_type names it: rope_parameters has a part for each then. Layers of a type can have the key of a
-- base of their own, own_base, which nothing scales.
local host = require("lm.host")

local function fail(text, ...) error(("lm: config.json: " .. text):format(...), 0) end

-- kinds are what rotary settings can say, and of which kind.
local kinds = {rope_type = "string", type = "string", truncate = "boolean", mrope_interleaved = "boolean",
  finetuned = "boolean", short_factor = "numbers", long_factor = "numbers", factors = "numbers",
  mrope_section = "numbers", rope_theta = "positive", factor = "positive"}
for key in ([[low_freq_factor high_freq_factor original_max_position_embeddings
  max_position_embeddings beta_fast beta_slow attention_factor mscale mscale_all_dim
  partial_rotary_factor llama_4_scaling_beta]]):gmatch("%S+") do
  kinds[key] = "number"
end

-- read copies rotary settings: what they say and kinds do not have is an error.
local function read(config, key, settings)
  config.want(key, settings, "object")
  local out = {}
  for k, v in pairs(settings) do
    if not kinds[k] then fail("%s.%s is not built", key, tostring(k)) end
    if v == host.null then
      if k == "truncate" then out[k] = false end -- to transformers, null is not true
    else
      config.want(key .. "." .. k, v, kinds[k])
      out[k] = v
    end
  end
  return out
end

-- part is the table of a key in rotary settings, {} where there is none.
local function part(settings, key)
  local v = settings[key]
  if v == nil or v == host.null then return {} end
  if type(v) ~= "table" then fail("rope_parameters.%s = %s, want an object", key, tostring(v)) end
  return v
end

return function(config, layer_type, own_base)
  local scaling = config:get("rope_scaling", {}, "object")
  local settings = config:said("rope_parameters", "object") or config.defaults.rope_parameters or {}
  local name = "rope_parameters"
  if layer_type then
    for key in pairs(settings) do
      if not key:match("_attention$") then fail("rope_parameters.%s is not built: want layer types", key) end
    end
    settings, name = part(settings, layer_type), name .. "." .. layer_type
  end
  if next(scaling) ~= nil and not own_base then
    local both = {}
    for k, v in pairs(layer_type and settings or {}) do both[k] = v end
    for k, v in pairs(scaling) do both[k] = v end
    settings, name = both, "rope_scaling"
  end
  local out, base = read(config, name, settings), own_base or "rope_theta"
  local top = config:get(base, nil, "positive")
  out.rope_theta = out.rope_theta or top
  if not out.rope_theta then fail("%s is missing", base) end
  out.rope_type = out.rope_type or out.type or "default"
  local share, known = config:get("partial_rotary_factor", nil, "number"), config.defaults.partial_rotary_factor
  out.partial_rotary_factor = out.partial_rotary_factor or share
  local partial = (out.partial_rotary_factor or 1) ~= 1 and out.rope_type ~= "proportional"
  if next(config.defaults) and not known and partial then
    fail("partial_rotary_factor = %s is not built for %s, rope_type %s", tostring(out.partial_rotary_factor),
      config.model_type, out.rope_type)
  end
  out.max_position_embeddings = config:get("max_position_embeddings", nil, "number")
  local original = config:get("original_max_position_embeddings", nil, "number")
  if original and not layer_type then out.original_max_position_embeddings = original end
  out.original_max_position_embeddings = out.original_max_position_embeddings or out.max_position_embeddings
  return out
end
