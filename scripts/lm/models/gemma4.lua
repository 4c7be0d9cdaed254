-- Gemma 4: as Gemma 3, with norms of values, larger heads in layers without a window, and beside the embedding a small
-- one for each layer. The last layers can ask the keys and values of earlier ones; in some models each layer has
-- experts beside its feed-forward part.
local mx, nn = require("mx"), require("mx.nn")
local Decoder, layers, rope = require("lm.decoder"), require("lm.layers"), require("lm.rope")
local Gemma, moe, Weights = require("lm.models.gemma"), require("lm.moe"), require("lm.weights")

local Attention = nn.class("Attention")

function Attention:init(w, c, i)
  local dims, size, kv_heads = c.hidden_size, c.sizes[i].head_dim, c.sizes[i].kv_heads
  self.heads, self.kv_heads, self.eps, self.options = c.heads, kv_heads, c.eps, {scale = 1}
  self.q_proj = w:linear("q_proj", dims, c.heads * size, c.attention_bias)
  self.q_norm = w:norm("q_norm", size, c.eps)
  self.borrows = c.layout[i].kind == "borrowed"
  if not self.borrows or w:has("k_proj.weight") then -- older files have those that nothing uses
    self.k_proj = w:linear("k_proj", dims, kv_heads * size, c.attention_bias)
    self.k_norm = w:norm("k_norm", size, c.eps)
    if not c.sizes[i].same then self.v_proj = w:linear("v_proj", dims, kv_heads * size, c.attention_bias) end
  end
  self.o_proj = w:linear("o_proj", c.heads * size, dims, c.attention_bias)
  self.rope = rope.RoPE(size, c.types[i] == "sliding_attention" and c.rope_window or c.rope_full)
end

function Attention:forward(x, caches, cache)
  local q, k, v = self.q_norm(self.q_proj(x):unflatten(-1, {self.heads, -1})), nil, nil
  if not self.borrows then
    local keys = self.k_proj(x):unflatten(-1, {self.kv_heads, -1})
    k = self.k_norm(keys)
    v = mx.fast.rms_norm(self.v_proj and self.v_proj(x):unflatten(-1, {self.kv_heads, -1}) or keys, nil, self.eps)
  end
  return self.o_proj(Decoder.attend(caches, cache, q, k, v, self.rope, self.options))
end

-- Router gives the experts of each token and their shares.
local Router = nn.class("Router")

function Router:init(w, c)
  self.proj = w:linear("proj", c.hidden_size, c.experts)
  self.scale, self.per_expert_scale = w:array("scale", {c.hidden_size}), w:array("per_expert_scale", {c.experts})
  self.root, self.eps, self.chosen = c.hidden_size ^ -0.5, c.eps, c.chosen
end

function Router:forward(x)
  local scores = self.proj(mx.fast.rms_norm(x, self.scale * self.root, self.eps))
  local which, shares = moe.softmax_best(scores, self.chosen)
  return which, shares * self.per_expert_scale[which]
end

local Layer = nn.class("Layer")
Layer.norms = Gemma.Layer.norms

function Layer:init(w, c, i)
  local dims = c.hidden_size
  self.self_attn = Attention(w:at("self_attn"), c, i)
  self.mlp = layers.GLU(w:at("mlp"), dims, c.intermediate_size * (c.wide and c.layout[i].kind == "borrowed" and 2 or 1),
    c.act)
  for _, name in ipairs(self.norms) do self[name] = w:norm(name, dims, c.eps) end
  if c.experts then
    self.router = Router(w:at("router"), c)
    self.experts = {switch_glu = layers.SwitchGLU(w:at("experts.switch_glu"), c.experts, dims, c.hidden,
      layers.gated(c.act))}
    for _, name in ipairs{"post_feedforward_layernorm_1", "post_feedforward_layernorm_2",
      "pre_feedforward_layernorm_2"} do self[name] = w:norm(name, dims, c.eps) end
  end
  self:small(w, c)
  self.layer_scalar = w:array("layer_scalar", {1})
end

-- small makes what adds the layer's small embedding.
function Layer:small(w, c)
  if c.small == 0 then return end
  self.per_layer_input_gate = w:linear("per_layer_input_gate", c.hidden_size, c.small)
  self.per_layer_projection = w:linear("per_layer_projection", c.small, c.hidden_size)
  self.post_per_layer_input_norm = w:norm("post_per_layer_input_norm", c.hidden_size, c.eps)
  self.act = c.act
end

-- gated is what a layer's small embedding adds to x.
function Layer:gated(x, small)
  return self.post_per_layer_input_norm(self.per_layer_projection(self.act(self.per_layer_input_gate(x)) * small))
end

function Layer:forward(x, caches, cache, small)
  x = x + self.post_attention_layernorm(self.self_attn(self.input_layernorm(x), caches, cache))
  local y = self.mlp(self.pre_feedforward_layernorm(x))
  if self.router then
    local which, shares = self.router(x)
    local mixed = moe.weighed(self.pre_feedforward_layernorm_2(x), which, shares, self.experts.switch_glu)
    y = self.post_feedforward_layernorm_1(y) + self.post_feedforward_layernorm_2(mixed)
  end
  x = x + self.post_feedforward_layernorm(y)
  if small then x = x + self:gated(x, small) end
  return x * self.layer_scalar
end

local Model = nn.class("Model", Decoder)

-- settings are what Gemma 4 and Gemma 3n have in common; every is how many layers have one without a window.
function Model.settings(config, every)
  local c = Decoder.settings(config)
  c.act = config:act("hidden_activation")
  c.small = config:get("hidden_size_per_layer_input", 0, "count")
  c.small_words = config:need("vocab_size_per_layer_input", "size")
  c.softcap = config:get("final_logit_softcapping", nil, "number")
  c.types = config:layer_types(c.layers, function(i)
    return i % every == 0 and "full_attention" or "sliding_attention"
  end)
  return c
end

-- lend has the last layers ask the keys and values of the last layer of their type before them.
function Model.lend(c, config)
  c.layout = Decoder.layout_of(c.types, config:get("sliding_window"))
  local own, last = c.layers - config:get("num_kv_shared_layers", 0, "count"), {}
  for i = 1, c.layers do
    if i <= own then
      last[c.types[i]] = i
    else
      local of = last[c.types[i]]
      if not of then
        error(("lm: config.json: num_kv_shared_layers leaves no layer of the type %s of its own"):format(c.types[i]), 0)
      end
      local lender = {lent = true}
      for k, v in pairs(c.layout[of]) do lender[k] = v end
      c.layout[of], c.layout[i] = lender, {kind = "borrowed", of = of}
    end
  end
end

-- add_small makes the small embeddings of all layers.
function Model:add_small(w, c)
  self.softcap, self.embed_scale, self.small, self.small_words = c.softcap, c.hidden_size ^ 0.5, c.small, c.small_words
  if c.small == 0 then return end
  local m, all = self.model, c.layers * c.small
  m.embed_tokens_per_layer = w:embedding("model.embed_tokens_per_layer", c.small_words, all)
  m.per_layer_model_projection = w:linear("model.per_layer_model_projection", c.hidden_size, all)
  m.per_layer_projection_norm = w:norm("model.per_layer_projection_norm", c.small, c.eps)
end

-- small_embeddings are those of all layers, (batch, length, layers, size), nil if there are none.
function Model:small_embeddings(x, tokens)
  local m = self.model
  if not m.embed_tokens_per_layer then return nil end
  local count = #m.layers
  local known = mx.where(mx.less(tokens, self.small_words), tokens, mx.zeros(tokens, tokens.dtype))
  local own = m.embed_tokens_per_layer(known):unflatten(-1, {count, -1})
  own = own * mx.array(self.small ^ 0.5, own.dtype)
  local made = (m.per_layer_model_projection(x) * x:dim(-1) ^ -0.5):unflatten(-1, {count, -1})
  return (m.per_layer_projection_norm(made) + own) * 2 ^ -0.5
end

function Model:init(w, config)
  local c = Model.settings(config, 6)
  c.types[c.layers] = "full_attention" -- whatever layer_types says
  c.intermediate_size, c.wide = config:need("intermediate_size", "size"), config:get("use_double_wide_mlp", false)
  for short, long in pairs{full = "full_attention", window = "sliding_attention"} do
    c["rope_" .. short] = config:rope(long, ("rope_parameters.%s.rope_theta"):format(long)) -- there is no older key
  end
  config:only("use_bidirectional_attention", "vision", false)
  local same, own = config:get("attention_k_eq_v", false), config:get("per_layer_config", nil, "object")
  local large, few = config:get("global_head_dim", 512, "size"), config:get("num_global_key_value_heads", nil, "size")
  c.sizes = {}
  for i, name in ipairs(c.types) do
    local full = name == "full_attention"
    local said = own and own[tostring(i - 1)] or {}
    c.sizes[i] = {same = same and full,
      head_dim = own and (said.head_dim or c.head_dim) or full and large or c.head_dim,
      kv_heads = own and (said.num_key_value_heads or c.kv_heads) or full and same and few or c.kv_heads}
  end
  if config:get("enable_moe_block", false) then
    c.experts, c.hidden = config:need("num_experts", "size"), config:need("moe_intermediate_size", "size")
    c.chosen = moe.chosen(config, c.experts, "top_k_experts")
  end
  Model.lend(c, config)
  Decoder.init(self, w, c, Layer)
  self:add_small(w, c)
end

Model.embed, Model.forward = Gemma.embed, Gemma.forward

function Model:through(x, caches, tokens)
  local small = self:small_embeddings(x, tokens)
  for i, layer in ipairs(self.model.layers) do
    x = layer(x, caches, caches.layers[i], small and small:index("...", i - 1, ":"))
  end
  return x
end

Model.names = Decoder.text_names

function Model.sanitize(arrays, config)
  return Weights.stack_experts(arrays, config:get("num_experts", 0, "count"), "experts.switch_glu")
end

function Model.pack_more(path)
  if path:match("router%.proj$") then return {group_size = 64, bits = 8} end
  return true
end

-- portable says the sizes of layers without a window as mlx-lm reads them: see Config:portable.
function Model.portable(settings)
  for _, own in pairs(type(settings.per_layer_config) == "table" and settings.per_layer_config or {}) do
    settings.global_head_dim, settings.num_global_key_value_heads = own.head_dim, own.num_key_value_heads
  end
  settings.per_layer_config = nil
end

Model.Layer, Model.Attention = Layer, Attention
return Model
