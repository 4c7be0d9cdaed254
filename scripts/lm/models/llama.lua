-- Llama, Mistral and SmolLM3: the plain decoder model. Scripts of families that are near to it take its parts.
local nn = require("mx.nn")
local Decoder, layers, rope = require("lm.decoder"), require("lm.layers"), require("lm.rope")

local Attention = nn.class("Attention")

function Attention:init(w, c, i)
  local dims = c.hidden_size
  self.heads, self.kv_heads = c.heads, c.kv_heads
  self.options = {scale = c.scale or c.head_dim ^ -0.5, softcap = c.softcap}
  self.q_proj = w:linear("q_proj", dims, c.heads * c.head_dim, c.attention_bias)
  self.k_proj = w:linear("k_proj", dims, c.kv_heads * c.head_dim, c.attention_bias)
  self.v_proj = w:linear("v_proj", dims, c.kv_heads * c.head_dim, c.attention_bias)
  self.output = c.output_name
  self[self.output or "o_proj"] = w:linear(self.output or "o_proj", c.heads * c.head_dim, dims, c.output_bias)
  if not c.turned or c.turned[i] then self.rope = rope.RoPE(c.head_dim, c.rope, c.interleaved) end
end

-- project gives queries, keys and values (batch, tokens, heads, size).
function Attention:project(x)
  return self.q_proj(x):unflatten(-1, {self.heads, -1}), self.k_proj(x):unflatten(-1, {self.kv_heads, -1}),
    self.v_proj(x):unflatten(-1, {self.kv_heads, -1})
end

function Attention:forward(x, caches, cache)
  local q, k, v = self:project(x)
  return self[self.output or "o_proj"](Decoder.attend(caches, cache, q, k, v, self.rope, self.options))
end

-- NormedAttention is Attention with norms of each head's queries and keys.
local NormedAttention = nn.class("Attention", Attention)

function NormedAttention:init(w, c, i)
  Attention.init(self, w, c, i)
  local norm = w[c.norm or "norm"]
  self.q_norm, self.k_norm = norm(w, "q_norm", c.head_dim, c.eps), norm(w, "k_norm", c.head_dim, c.eps)
end

function NormedAttention:project(x)
  local q, k, v = Attention.project(self, x)
  return self.q_norm(q), self.k_norm(k), v
end

local Layer = nn.class("Layer")

function Layer:init(w, c, i)
  self.self_attn = (c.Attention or Attention)(w:at("self_attn"), c, i)
  self:feed(w, c, i)
  for _, name in ipairs(c.norms or {"input_layernorm", "post_attention_layernorm"}) do
    self[name] = w[c.norm or "norm"](w, name, c.hidden_size, c.eps, c.norm_bias)
  end
end

-- feed makes the feed-forward part.
function Layer:feed(w, c)
  self.mlp = (c.MLP or layers.GLU)(w:at("mlp"), c.hidden_size, c.intermediate_size, c.act, c.mlp_bias)
end

function Layer:forward(x, caches, cache)
  x = x + self.self_attn(self.input_layernorm(x), caches, cache)
  return x + self.mlp(self.post_attention_layernorm(x))
end

-- Parallel is a Layer with attention and the feed-forward part beside each other, after one norm.
local Parallel = nn.class("Layer", Layer)

function Parallel:forward(x, caches, cache)
  local y = self.input_layernorm(x)
  return x + self.self_attn(y, caches, cache) + self.mlp(y)
end

local Model = nn.class("Model", Decoder)

-- settings are what the parts above take. A family changes them: scale and softcap of attention, Attention and MLP
-- (classes), norms (their names in a layer), norm (which method of weights makes them: "norm", "layer_norm" or
-- "gemma_norm") and norm_bias, output_name (what attention's last matrix is called), turned (which layers have rotary
-- embeddings) and interleaved (neighbours are turned, not halves). Of o, eps and act are the keys of what norms add and
-- of the activation, if they are others than rms_norm_eps and hidden_act; windows says that all layers have the window
-- of sliding_window; types(turned, i) is the type of a layer, with or without rotary embeddings, unless it is listed,
-- chunk the size of its chunks, and layer_type the type of layers that c.rope is for, where it differs by type.
function Model.settings(config, o)
  o = o or {}
  local c = Decoder.settings(config, o.eps)
  c.intermediate_size, c.act = config:need("intermediate_size", "size"), config:act(o.act or "hidden_act")
  c.output_bias = config:get("attention_out_bias", c.attention_bias)
  c.mlp_bias, c.interleaved = config:get("mlp_bias", false), config:get("rope_traditional", false)
  c.rope = config:rope(o.layer_type or nil)
  config:only("activation", "swiglu") -- beside hidden_act
  local every = config:get("no_rope_layer_interval", nil, "size")
  local listed = config:by_layer("no_rope_layers", "counts", c.layers)
  c.turned = {}
  for i = 1, c.layers do
    c.turned[i] = true
    if every then c.turned[i] = i % every ~= 0 end
    if listed then c.turned[i] = listed[i] ~= 0 end
  end
  if o.windows then
    c.layout = Decoder.same_windows(config, c.layers, config:get("sliding_window"))
  else
    local types = config:layer_types(c.layers, function(i)
      return o.types and o.types(c.turned[i], i) or "full_attention"
    end)
    c.layout = Decoder.layout_of(types, (o.types or config:said("layer_types")) and
      config:get("sliding_window"), o.chunk)
  end
  return c
end

function Model:init(w, config)
  local c = Model.settings(config, {windows = config.model_type == "mistral"})
  if config.model_type == "smollm3" then
    c.layout = Decoder.asked_windows(config, c.layers, function(i) return not c.turned[i] end)
  end
  Decoder.init(self, w, c, Layer)
end

Model.Attention, Model.NormedAttention, Model.Layer, Model.Parallel = Attention, NormedAttention, Layer, Parallel
return Model
