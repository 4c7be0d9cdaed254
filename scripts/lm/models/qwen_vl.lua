-- The texts of Qwen's models for text and pictures: Qwen2 and Qwen3. Of a text the three positions that they have for
-- pictures are one.
local nn = require("mx.nn")
local Decoder, Llama, moe = require("lm.decoder"), require("lm.models.llama"), require("lm.moe")
local Qwen2, Weights = require("lm.models.qwen2"), require("lm.weights")

local Model = nn.class("Model", Decoder)

local function mixed(config) return config.model_type:match("moe") end

function Model:init(w, config)
  local c = Llama.settings(config)
  c.rope.text_only, c.whole = true, true
  if c.rope.rope_type == "mrope" then c.rope.rope_type = "default" end
  if config.model_type:match("^qwen2") then
    if not c.rope.mrope_section then error("lm: config.json: rope_parameters.mrope_section is missing", 0) end
    c.attention_bias, c.output_bias = true, false
    c.layout = Decoder.asked_windows(config, c.layers, function(i, most) return i > most end)
  else
    c.Attention = Llama.NormedAttention
    if mixed(config) then
      c.moe, c.sparse = moe.settings(config)
      c.moe.norm = true
    end
  end
  Decoder.init(self, w, c, Qwen2.Layer)
end

Model.names = Decoder.text_names

-- sanitize: published files have each expert's matrices transposed.
function Model.sanitize(arrays, config)
  if not mixed(config) then return arrays end
  local hidden, found = config:need("moe_intermediate_size", "size"), {}
  for name, x in pairs(arrays) do
    local prefix = name:match("^(.*%.experts%.)down_proj$")
    if prefix and x:dim(-1) ~= hidden then found[#found + 1] = prefix end
  end
  for _, prefix in ipairs(found) do
    for _, name in ipairs{"gate_up_proj", "down_proj"} do
      arrays[prefix .. name] = Weights.new(arrays):array(prefix .. name):swapaxes(-1, -2)
    end
  end
  return moe.stack(arrays, config)
end

-- portable says what transformers takes for granted and mlx-lm does not: see Config:portable.
function Model.portable(settings)
  moe.portable(settings)
  if settings.model_type:match("moe") then settings.norm_topk_prob = true end
end

Model.pack_more = moe.pack_more
return Model
