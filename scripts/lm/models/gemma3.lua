-- Gemma 3: five layers of attention in a window to one in full, each with its own rotary base; four norms a layer.
local mx, nn = require("mx"), require("mx.nn")
local Decoder, layers, rope = require("lm.decoder"), require("lm.layers"), require("lm.rope")

local Attention = nn.class("Attention")

function Attention:init(w, c, i)
  local dims, bias = c.hidden_size, c.attention_bias
  self.heads, self.kv_heads, self.scale = c.heads, c.kv_heads, c.query_scale ^ -0.5
  self.q_proj = w:linear("q_proj", dims, c.heads * c.head_dim, bias)
  self.k_proj = w:linear("k_proj", dims, c.kv_heads * c.head_dim, bias)
  self.v_proj = w:linear("v_proj", dims, c.kv_heads * c.head_dim, bias)
  self.o_proj = w:linear("o_proj", c.heads * c.head_dim, dims, bias)
  self.q_norm, self.k_norm = w:gemma_norm("q_norm", c.head_dim, c.eps), w:gemma_norm("k_norm", c.head_dim, c.eps)
  self.rope = rope.RoPE(c.head_dim, c.layout[i].window and c.rope_window or c.rope_full)
end

function Attention:forward(x, caches, cache)
  local q = self.q_norm(self.q_proj(x):unflatten(-1, {self.heads, -1}))
  local k = self.k_norm(self.k_proj(x):unflatten(-1, {self.kv_heads, -1}))
  local v = self.v_proj(x):unflatten(-1, {self.kv_heads, -1})
  return self.o_proj(Decoder.attend(caches, cache, q, k, v, self.rope, {scale = self.scale}))
end

local Layer = nn.class("Layer")

local norms = {"input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm", "post_feedforward_layernorm"}

function Layer:init(w, c, i)
  self.self_attn = Attention(w:at("self_attn"), c, i)
  self.mlp = layers.GLU(w:at("mlp"), c.hidden_size, c.intermediate_size, c.act)
  for _, name in ipairs(norms) do self[name] = w:gemma_norm(name, c.hidden_size, c.eps) end
end

function Layer:forward(x, caches, cache)
  x = x + self.post_attention_layernorm(self.self_attn(self.input_layernorm(x), caches, cache))
  return x + self.post_feedforward_layernorm(self.mlp(self.pre_feedforward_layernorm(x)))
end

local Model = nn.class("Model", Decoder)

function Model:init(w, config)
  local c = { -- the defaults are those that published files leave out
    hidden_size = config:get("hidden_size", 2304), heads = config:get("num_attention_heads", 8),
    kv_heads = config:get("num_key_value_heads", 4), head_dim = config:get("head_dim", 256),
    layers = config:get("num_hidden_layers", 26), vocab_size = config:get("vocab_size", 262208),
    intermediate_size = config:get("intermediate_size", 9216), eps = config:get("rms_norm_eps", 1e-6),
    attention_bias = config:get("attention_bias", false), tied = not w:has("lm_head.weight"),
    query_scale = config:get("query_pre_attn_scalar", 256), norm = "gemma_norm",
  }
  config:get("tie_word_embeddings")
  c.act = config:act(config:get("hidden_activation") and "hidden_activation" or "hidden_act", "gelu_pytorch_tanh")
  config:get("hidden_act")
  c.rope_full = config:rope("full_attention", "rope_theta", 1000000)
  c.rope_window = config:rope("sliding_attention", "rope_local_base_freq", 10000)
  local every = config:get("sliding_window_pattern") or config:get("_sliding_window_pattern", 6)
  local types = config:layer_types(c.layers, function(i)
    return i % every == 0 and "full_attention" or "sliding_attention"
  end)
  c.layout = Decoder.layout_of(types, config:get("sliding_window", 4096))
  Decoder.init(self, w, c, Layer)
  self.embed_scale = c.hidden_size ^ 0.5
end

-- embed: the scale is rounded to the weights' dtype, as in training.
function Model:embed(tokens)
  local x = self.model.embed_tokens(tokens)
  return x * mx.array(self.embed_scale, x.dtype)
end

function Model.names(name, config)
  if name:match("^vision_tower") or name:match("^model%.vision_tower") or name:match("multi_modal_projector") then
    return nil
  end
  name = name:gsub("^model%.language_model%.", "model."):gsub("^language_model%.model%.", "model.")
  name = name:gsub("^language_model%.lm_head", "lm_head")
  return Decoder.names(name, config)
end

return Model
