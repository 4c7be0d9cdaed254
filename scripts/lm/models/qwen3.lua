-- Qwen3 and Qwen3-MoE: as Qwen2, with norms of queries and keys and no biases; in the second, most layers choose among
-- experts.
local nn = require("mx.nn")
local Decoder, moe = require("lm.decoder"), require("lm.moe")
local Llama, Qwen2 = require("lm.models.llama"), require("lm.models.qwen2")

local Model = nn.class("Model", Decoder)

function Model:init(w, config)
  local c = Llama.settings(config)
  c.Attention = Llama.NormedAttention
  config:only("use_qk_norm", true)
  if config.model_type == "qwen3_moe" then
    local asked, window = config:get("use_sliding_window", false), config:get("sliding_window")
    c.layout = Decoder.same_windows(config, c.layers, asked and window)
    c.moe, c.sparse = moe.settings(config)
  else
    c.layout = Decoder.asked_windows(config, c.layers, function(i, most) return i > most end)
  end
  Decoder.init(self, w, c, Qwen2.Layer)
end

function Model.sanitize(arrays, config)
  if config.model_type == "qwen3_moe" then return moe.stack(arrays, config) end
  return arrays
end

Model.pack_more, Model.portable = moe.pack_more, moe.portable

return Model
