-- GLM and GLM-4: Llama with rotary embeddings of a part of each head, whose neighbours make pairs; GLM-4 has norms
-- after attention and the feed-forward part, too.
local nn = require("mx.nn")
local Decoder, layers, Llama = require("lm.decoder"), require("lm.layers"), require("lm.models.llama")

local Layer = nn.class("Layer", Llama.Layer)

function Layer:forward(x, caches, cache)
  local function after(name, y) return self[name] and self[name](y) or y end
  x = x + after("post_self_attn_layernorm", self.self_attn(self.input_layernorm(x), caches, cache))
  return x + after("post_mlp_layernorm", self.mlp(self.post_attention_layernorm(x)))
end

local Model = nn.class("Model", Decoder)

function Model:init(w, config)
  local c = Llama.settings(config)
  c.output_bias, c.interleaved, c.MLP = false, config:get("rope_traditional", true), layers.FusedGLU
  if config.model_type == "glm4" then
    c.norms = {"input_layernorm", "post_attention_layernorm", "post_self_attn_layernorm", "post_mlp_layernorm"}
  end
  Decoder.init(self, w, c, Layer)
end

return Model
