-- StarCoder 2: Llama with biases everywhere, norms around the mean, and two matrices in the feed-forward part.
local nn = require("mx.nn")
local Decoder, Llama = require("lm.decoder"), require("lm.models.llama")

local MLP = nn.class("MLP")

function MLP:init(w, inputs, hidden, act, bias)
  self.c_fc, self.c_proj = w:linear("c_fc", inputs, hidden, bias), w:linear("c_proj", hidden, inputs, bias)
  self.act = act
end

function MLP:forward(x) return self.c_proj(self.act(self.c_fc(x))) end

local Model = nn.class("Model", Decoder)

function Model:init(w, config)
  local c, bias = Llama.settings(config, true), config:get("use_bias", true)
  c.attention_bias, c.output_bias, c.mlp_bias = bias, bias, bias
  c.MLP, c.act, c.tied = MLP, config:act("hidden_act", "gelu_pytorch_tanh"), config:get("tie_word_embeddings", true)
  c.norm, c.norm_bias, c.eps = "layer_norm", true, config:get("norm_epsilon", 1e-5)
  config:only("mlp_type", "default")
  config:only("norm_type", "layer_norm")
  -- published files have these keys of the family before, which transformers does not read here
  config:ignore{"scale_attn_weights", "attention_softmax_in_fp32", "scale_attention_softmax_in_fp32",
    "layer_norm_epsilon"}
  Decoder.init(self, w, c, Llama.Layer)
end

return Model
