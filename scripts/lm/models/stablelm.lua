-- StableLM: Llama with norms around the mean and rotary embeddings of a part of each head; in some, attention and the
-- feed-forward part are beside each other, after one norm.
local nn = require("mx.nn")
local Decoder, Llama = require("lm.decoder"), require("lm.models.llama")

local Model = nn.class("Model", Decoder)

function Model:init(w, config)
  local c = Llama.settings(config, {eps = "layer_norm_eps"})
  c.attention_bias, c.output_bias = config:get("use_qkv_bias", false), false
  c.norm, c.norm_bias = "layer_norm", true
  config:only("qk_layernorm", false)
  config:ignore{"use_norm_bias"} -- transformers does not read it: the norms have biases
  local parallel = config:get("use_parallel_residual", false)
  if parallel then c.norms = {"input_layernorm"} end
  Decoder.init(self, w, c, parallel and Llama.Parallel or Llama.Layer)
end

return Model
