-- Llama, and Mistral, which is Llama with a window of attention.
local nn = require("mx.nn")
local layers, rope = require("lm.layers"), require("lm.rope")

local Attention = nn.class("Attention")

function Attention:init(w, c)
  local dims, bias = c.hidden_size, c.attention_bias
  self.heads, self.kv_heads, self.scale = c.heads, c.kv_heads, c.head_dim ^ -0.5
  self.q_proj = w:linear("q_proj", dims, c.heads * c.head_dim, bias)
  self.k_proj = w:linear("k_proj", dims, c.kv_heads * c.head_dim, bias)
  self.v_proj = w:linear("v_proj", dims, c.kv_heads * c.head_dim, bias)
  self.o_proj = w:linear("o_proj", c.heads * c.head_dim, dims, bias)
  self.rope = rope.RoPE(c.head_dim, c.rope, c.rope_traditional)
end

function Attention:forward(x, caches, i)
  local position = caches:position()
  local q = self.rope(layers.heads(self.q_proj(x), self.heads), position)
  local k = self.rope(layers.heads(self.k_proj(x), self.kv_heads), position)
  local v = layers.heads(self.v_proj(x), self.kv_heads)
  return self.o_proj(layers.joined(caches.layers[i]:attend(caches, q, k, v, {scale = self.scale})))
end

local Layer = nn.class("Layer")

function Layer:init(w, c)
  self.self_attn = Attention(w:at("self_attn"), c)
  self.mlp = layers.GLU(w:at("mlp"), c.hidden_size, c.intermediate_size, c.act, c.mlp_bias)
  self.input_layernorm = w:norm("input_layernorm", c.hidden_size, c.eps)
  self.post_attention_layernorm = w:norm("post_attention_layernorm", c.hidden_size, c.eps)
end

function Layer:forward(x, caches, i)
  x = x + self.self_attn(self.input_layernorm(x), caches, i)
  return x + self.mlp(self.post_attention_layernorm(x))
end

local Model = nn.class("Model")

-- settings are what the layers need of config.json.
local function settings(config)
  local c = {
    hidden_size = config:need("hidden_size"), intermediate_size = config:need("intermediate_size"),
    heads = config:need("num_attention_heads"), layers = config:need("num_hidden_layers"),
    vocab_size = config:need("vocab_size"), eps = config:get("rms_norm_eps", 1e-6), act = config:act("hidden_act"),
    attention_bias = config:get("attention_bias", false), mlp_bias = config:get("mlp_bias", false),
    rope_traditional = config:get("rope_traditional", false), rope = config:rope(),
    tied = config:get("tie_word_embeddings", false), window = config:get("sliding_window"),
  }
  c.kv_heads = config:get("num_key_value_heads", c.heads)
  c.head_dim = config:get("head_dim", c.hidden_size / c.heads)
  return c
end

function Model:init(w, config)
  local c = settings(config)
  self.model = {embed_tokens = w:embedding("model.embed_tokens", c.vocab_size, c.hidden_size), layers = {}}
  for i = 1, c.layers do self.model.layers[i] = Layer(w:at("model.layers." .. i - 1), c) end
  self.model.norm = w:norm("model.norm", c.hidden_size, c.eps)
  if not c.tied then self.lm_head = w:linear("lm_head", c.hidden_size, c.vocab_size) end
  self.types = config:layer_types(c.layers, function() return c.window and "sliding_attention" or "full_attention" end)
  self.window = c.window
end

-- layout is what each layer's cache is like: see lm.cache.
function Model:layout()
  local out = {}
  for i, kind in ipairs(self.types) do
    out[i] = {kind = "kv", window = kind == "sliding_attention" and self.window or nil}
  end
  return out
end

-- forward gives the scores of the next token after each of tokens (batch, length).
function Model:forward(tokens, caches)
  caches:start(tokens)
  local x = self.model.embed_tokens(tokens)
  for i, layer in ipairs(self.model.layers) do x = layer(x, caches, i) end
  caches:done()
  x = self.model.norm(x)
  if self.lm_head then return self.lm_head(x) end
  return self.model.embed_tokens:as_linear(x)
end

-- names gives a weight the name that the layers have, or nil if it is of no use.
function Model.names(name, config)
  if name:match("rotary_emb%.inv_freq$") then return nil end
  if name:match("^lm_head%.") and config:get("tie_word_embeddings") then return nil end
  return name
end

return Model
