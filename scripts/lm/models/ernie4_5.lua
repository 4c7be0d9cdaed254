-- ERNIE 4.5: Llama whose rotary embeddings take neighbours as pairs, with or without biases.
local nn = require("mx.nn")
local Decoder, Llama = require("lm.decoder"), require("lm.models.llama")

local Model = nn.class("Model", Decoder)

function Model:init(w, config)
  local c, bias = Llama.settings(config), config:get("use_bias", false)
  c.attention_bias, c.output_bias, c.mlp_bias, c.interleaved = bias, bias, bias, true
  Decoder.init(self, w, c, Llama.Layer)
end

return Model
