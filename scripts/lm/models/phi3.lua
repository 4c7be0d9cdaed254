-- Phi-3: Llama whose queries, keys and values are one matrix, and gate and up of the feed-forward part another.
local mx, nn = require("mx"), require("mx.nn")
local Decoder, layers, rope = require("lm.decoder"), require("lm.layers"), require("lm.rope")
local Llama = require("lm.models.llama")

local Attention = nn.class("Attention", Llama.Attention)

function Attention:init(w, c)
  self.heads, self.kv_heads, self.options = c.heads, c.kv_heads, {scale = c.head_dim ^ -0.5}
  self.ends = {c.heads * c.head_dim, (c.heads + c.kv_heads) * c.head_dim} -- of queries, of keys
  self.qkv_proj = w:linear("qkv_proj", c.hidden_size, (c.heads + 2 * c.kv_heads) * c.head_dim)
  self.o_proj = w:linear("o_proj", c.heads * c.head_dim, c.hidden_size)
  self.rope = rope.RoPE(c.head_dim, c.rope)
end

function Attention:project(x)
  local q, k, v = unpack(mx.split(self.qkv_proj(x), self.ends, -1))
  return q:unflatten(-1, {self.heads, -1}), k:unflatten(-1, {self.kv_heads, -1}), v:unflatten(-1, {self.kv_heads, -1})
end

local Model = nn.class("Model", Decoder)

function Model:init(w, config)
  local c = Llama.settings(config, {windows = true})
  if c.rope.rope_type == "yarn" then c.rope.rope_type = "longrope" end -- as older files call it
  c.Attention, c.MLP = Attention, layers.FusedGLU
  Decoder.init(self, w, c, Llama.Layer)
end

return Model
