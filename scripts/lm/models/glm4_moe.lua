-- GLM-4.5 and later: Llama's attention, turned in a part of each head, and DeepSeek's experts.
local nn = require("mx.nn")
local Decoder, Llama, grouped = require("lm.decoder"), require("lm.models.llama"), require("lm.grouped")
local DeepSeek, Weights = require("lm.models.deepseek_v3"), require("lm.weights")

local Model = nn.class("Model", Decoder)

function Model:init(w, config)
  local c = Llama.settings(config)
  c.output_bias = false
  if config:get("use_qk_norm", false) then c.Attention = Llama.NormedAttention end
  grouped.settings(c, config)
  Decoder.init(self, w, c, DeepSeek.Layer)
end

function Model.sanitize(arrays, config)
  return Weights.stack_experts(arrays, config:get("n_routed_experts", 0, "count"))
end

Model.names = grouped.names
return Model
