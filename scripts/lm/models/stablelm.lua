-- StableLM: Llama with norms around the mean and rotary embeddings of a part of each head; in some, attention and the
-- feed-forward part are beside each other, after one norm.
local nn = require("mx.nn")
local Decoder, Llama = require("lm.decoder"), require("lm.models.llama")

local Model = nn.class("Model", Decoder)

function Model:init(w, config)
  local c = Llama.settings(config)
  c.attention_bias, c.output_bias = config:get("use_qkv_bias", false), false
  c.norm, c.norm_bias, c.eps = "layer_norm", true, config:get("layer_norm_eps", 1e-5)
  c.rope.partial_rotary_factor = c.rope.partial_rotary_factor or 0.25
  config:only("qk_layernorm", false)
  local parallel = config:get("use_parallel_residual", false)
  if parallel then c.norms = {"input_layernorm"} end
  Decoder.init(self, w, c, parallel and Llama.Parallel or Llama.Layer)
end

return Model
