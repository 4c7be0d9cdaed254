-- Granite: Llama with factors of the embedding, of attention, of what each part adds, and of the scores.
local nn = require("mx.nn")
local Decoder, Llama = require("lm.decoder"), require("lm.models.llama")

local Layer = nn.class("Layer", Llama.Layer)

function Layer:init(w, c, i)
  Llama.Layer.init(self, w, c, i)
  self.factor = c.factor
end

function Layer:forward(x, caches, cache)
  x = x + self.self_attn(self.input_layernorm(x), caches, cache) * self.factor
  return x + self.mlp(self.post_attention_layernorm(x)) * self.factor
end

local Model = nn.class("Model", Decoder)

function Model:init(w, config)
  local c = Llama.settings(config)
  c.scale, c.factor = config:need("attention_multiplier", "number"), config:need("residual_multiplier", "number")
  Decoder.init(self, w, c, Layer)
  self.embedding, self.logits = config:need("embedding_multiplier", "number"), config:need("logits_scaling", "number")
end

function Model:embed(tokens) return self.model.embed_tokens(tokens) * self.embedding end
function Model:forward(tokens, caches) return Decoder.forward(self, tokens, caches) / self.logits end

return Model
