-- Qwen3 and Qwen3-MoE: as Llama, with norms of queries and keys; in the second, most layers choose among experts.
local nn = require("mx.nn")
local Decoder, layers, rope = require("lm.decoder"), require("lm.layers"), require("lm.rope")
local moe = require("lm.moe")

local Attention = nn.class("Attention")

function Attention:init(w, c)
  local dims, bias = c.hidden_size, c.attention_bias
  self.heads, self.kv_heads, self.scale = c.heads, c.kv_heads, c.head_dim ^ -0.5
  self.q_proj = w:linear("q_proj", dims, c.heads * c.head_dim, bias)
  self.k_proj = w:linear("k_proj", dims, c.kv_heads * c.head_dim, bias)
  self.v_proj = w:linear("v_proj", dims, c.kv_heads * c.head_dim, bias)
  self.o_proj = w:linear("o_proj", c.heads * c.head_dim, dims, bias)
  self.q_norm, self.k_norm = w:norm("q_norm", c.head_dim, c.eps), w:norm("k_norm", c.head_dim, c.eps)
  self.rope = rope.RoPE(c.head_dim, c.rope)
end

function Attention:forward(x, caches, cache)
  local q = self.q_norm(self.q_proj(x):unflatten(-1, {self.heads, -1}))
  local k = self.k_norm(self.k_proj(x):unflatten(-1, {self.kv_heads, -1}))
  local v = self.v_proj(x):unflatten(-1, {self.kv_heads, -1})
  return self.o_proj(Decoder.attend(caches, cache, q, k, v, self.rope, {scale = self.scale}))
end

local Layer = nn.class("Layer")

function Layer:init(w, c, i)
  self.self_attn = Attention(w:at("self_attn"), c)
  if c.sparse and c.sparse(i) then
    self.mlp = moe.SparseMoE(w:at("mlp"), c.hidden_size, c.moe)
  else
    self.mlp = layers.GLU(w:at("mlp"), c.hidden_size, c.intermediate_size, c.act)
  end
  self.input_layernorm = w:norm("input_layernorm", c.hidden_size, c.eps)
  self.post_attention_layernorm = w:norm("post_attention_layernorm", c.hidden_size, c.eps)
end

function Layer:forward(x, caches, cache)
  x = x + self.self_attn(self.input_layernorm(x), caches, cache)
  return x + self.mlp(self.post_attention_layernorm(x))
end

local Model = nn.class("Model", Decoder)

function Model:init(w, config)
  local c = Decoder.settings(config)
  c.intermediate_size, c.act, c.rope = config:need("intermediate_size"), config:act("hidden_act"), config:rope()
  if config.model_type == "qwen3_moe" then c.moe, c.sparse = moe.settings(config) end
  c.layout = Decoder.late_windows(config, c.layers)
  Decoder.init(self, w, c, Layer)
end

function Model.sanitize(arrays, config)
  if config.model_type == "qwen3_moe" then return moe.stack(arrays, config) end
  return arrays
end

Model.pack_more = moe.pack_more

return Model
