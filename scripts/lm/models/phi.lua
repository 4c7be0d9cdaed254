-- Phi 1, 1.5 and 2: attention and the feed-forward part beside each other, after one norm around the mean; biases
-- everywhere, and rotary embeddings of a part of each head.
local nn = require("mx.nn")
local Decoder, layers, Llama = require("lm.decoder"), require("lm.layers"), require("lm.models.llama")

local Attention = nn.class("Attention", Llama.Attention)

function Attention:init(w, c, i)
  Llama.Attention.init(self, w, c, i)
  if c.head_norms then
    self.q_layernorm = w:layer_norm("q_layernorm", c.head_dim, c.eps, true)
    self.k_layernorm = w:layer_norm("k_layernorm", c.head_dim, c.eps, true)
  end
end

function Attention:project(x)
  local q, k, v = Llama.Attention.project(self, x)
  if self.q_layernorm then return self.q_layernorm(q), self.k_layernorm(k), v end
  return q, k, v
end

local Layer = nn.class("Layer", Llama.Parallel)

function Layer:feed(w, c)
  self.mlp = layers.MLP(w:at("mlp"), "fc1", "fc2", c.hidden_size, c.intermediate_size, c.act, true)
end

local Model = nn.class("Model", Decoder)

function Model:init(w, config)
  local c = Llama.settings(config, {eps = "layer_norm_eps"})
  c.attention_bias, c.output_bias, c.head_bias, c.norm, c.norm_bias = true, true, true, "layer_norm", true
  c.Attention, c.norms, c.head_norms = Attention, {"input_layernorm"}, config:get("qk_layernorm", false)
  c.output_name = "dense"
  config:only("tie_word_embeddings", false)
  Decoder.init(self, w, c, Layer)
end

Decoder.called(Model, {{"model.norm", "model.final_layernorm"}})
return Model
