-- StarCoder 2: Llama with biases everywhere, norms around the mean, and two matrices in the feed-forward part.
local nn = require("mx.nn")
local Decoder, layers, Llama = require("lm.decoder"), require("lm.layers"), require("lm.models.llama")

local function MLP(w, ...) return layers.MLP(w, "c_fc", "c_proj", ...) end

local Model = nn.class("Model", Decoder)

function Model:init(w, config)
  local c, bias = Llama.settings(config, {windows = true, eps = "norm_epsilon"}), config:get("use_bias", false)
  c.attention_bias, c.output_bias, c.mlp_bias = bias, bias, bias
  c.MLP, c.norm, c.norm_bias = MLP, "layer_norm", true
  config:only("mlp_type", "default")
  config:only("norm_type", "layer_norm")
  -- published files have these keys of the family before, which transformers does not read here
  config:ignore{"scale_attn_weights", "attention_softmax_in_fp32", "scale_attention_softmax_in_fp32",
    "layer_norm_epsilon"}
  Decoder.init(self, w, c, Llama.Layer)
end

return Model
