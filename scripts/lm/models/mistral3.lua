-- Mistral 3 and Ministral 3: Mistral, the text of a model for text and pictures, or by itself; in Ministral 3 queries
-- grow with the logarithm of their position beyond the original length.
local mx, nn = require("mx"), require("mx.nn")
local Decoder, Llama = require("lm.decoder"), require("lm.models.llama")

local Attention = nn.class("Attention", Llama.Attention)

function Attention:init(w, c, i)
  Llama.Attention.init(self, w, c, i)
  self.beta, self.original = c.rope.llama_4_scaling_beta, c.rope.original_max_position_embeddings
end

function Attention:forward(x, caches, cache)
  local q, k, v = self:project(x)
  local beyond = 1 + self.beta * mx.log(1 + mx.floor(Decoder.places(caches) / self.original))
  q = q * beyond:swapaxes(1, 2):astype(q.dtype)
  return self.o_proj(Decoder.attend(caches, cache, q, k, v, self.rope, self.options))
end

local Model = nn.class("Model", Decoder)

function Model:init(w, config)
  local c = Llama.settings(config, {windows = true})
  c.tied = c.tied or c.whole and config.raw.tie_word_embeddings == nil -- as its class has it
  if config.model_type == "ministral3" then
    if not c.rope.llama_4_scaling_beta then
      error("lm: config.json: rope_parameters.llama_4_scaling_beta is missing", 0)
    end
    c.Attention = Attention
  elseif config.model_type ~= "mistral" then
    error(("lm: config.json: text_config.model_type = %s is not built; these are: mistral, ministral3"):format(
      config.model_type), 0)
  end
  Decoder.init(self, w, c, Llama.Layer)
end

Model.names = Decoder.text_names

return Model
