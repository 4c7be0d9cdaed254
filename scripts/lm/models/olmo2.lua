-- OLMo 2 and 3: norms after attention and the feed-forward part, not before, and norms over all queries and all keys.
-- In OLMo 3 three of four layers have a window, whose rotary embeddings nothing scales.
local nn = require("mx.nn")
local Decoder, Llama, rope = require("lm.decoder"), require("lm.models.llama"), require("lm.rope")

local Attention = nn.class("Attention", Llama.Attention)

function Attention:init(w, c, i)
  Llama.Attention.init(self, w, c, i)
  self.q_norm = w:norm("q_norm", c.heads * c.head_dim, c.eps)
  self.k_norm = w:norm("k_norm", c.kv_heads * c.head_dim, c.eps)
  if c.rope_window and c.layout[i].window then self.rope = rope.RoPE(c.head_dim, c.rope_window) end
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
  local third = config.model_type == "olmo3"
  local c = Llama.settings(config, {layer_type = third and "full_attention", types = third and function(_, i)
    return i % 4 == 0 and "full_attention" or "sliding_attention"
  end})
  if third then c.rope_window = config:rope("sliding_attention", "rope_theta") end
  c.Attention, c.norms = Attention, {"post_attention_layernorm", "post_feedforward_layernorm"}
  Decoder.init(self, w, c, Layer)
end

Model.Attention, Model.Layer = Attention, Layer
return Model
