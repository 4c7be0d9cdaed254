-- OLMo 2: norms after attention and the feed-forward part, not before, and norms over all queries and all keys.
local nn = require("mx.nn")
local Decoder, Llama = require("lm.decoder"), require("lm.models.llama")

local Attention = nn.class("Attention", Llama.Attention)

function Attention:init(w, c, i)
  Llama.Attention.init(self, w, c, i)
  self.q_norm = w:norm("q_norm", c.heads * c.head_dim, c.eps)
  self.k_norm = w:norm("k_norm", c.kv_heads * c.head_dim, c.eps)
end

function Attention:project(x)
  return self.q_norm(self.q_proj(x)):unflatten(-1, {self.heads, -1}),
    self.k_norm(self.k_proj(x)):unflatten(-1, {self.kv_heads, -1}), self.v_proj(x):unflatten(-1, {self.kv_heads, -1})
end

local Layer = nn.class("Layer", Llama.Layer)

function Layer:forward(x, caches, cache)
  x = x + self.post_attention_layernorm(self.self_attn(x, caches, cache))
  return x + self.post_feedforward_layernorm(self.mlp(x))
end

local Model = nn.class("Model", Decoder)

function Model:init(w, config)
  local c = Llama.settings(config)
  c.Attention, c.norms = Attention, {"post_attention_layernorm", "post_feedforward_layernorm"}
  Decoder.init(self, w, c, Layer)
end

return Model
