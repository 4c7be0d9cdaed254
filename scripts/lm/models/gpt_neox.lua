-- GPT-NeoX and Pythia: queries, keys and values of each head in one matrix, rotary embeddings of a part of each head,
-- norms around the mean; in most, attention and the feed-forward part are beside each other, each after a norm.
local mx, nn = require("mx"), require("mx.nn")
local Decoder, layers, rope = require("lm.decoder"), require("lm.layers"), require("lm.rope")

local Attention = nn.class("Attention")

function Attention:init(w, c)
  self.heads, self.options = c.heads, {scale = c.head_dim ^ -0.5}
  self.query_key_value = w:linear("query_key_value", c.hidden_size, 3 * c.hidden_size, c.attention_bias)
  self.dense = w:linear("dense", c.hidden_size, c.hidden_size, c.attention_bias)
  self.rope = rope.RoPE(c.head_dim, c.rope)
end

function Attention:forward(x, caches, cache)
  local q, k, v = unpack(mx.split(self.query_key_value(x):unflatten(-1, {self.heads, -1}), 3, -1))
  return self.dense(Decoder.attend(caches, cache, q, k, v, self.rope, self.options))
end

local Layer = nn.class("Layer")

function Layer:init(w, c)
  self.attention, self.parallel = Attention(w:at("attention"), c), c.parallel
  self.mlp = layers.MLP(w:at("mlp"), "dense_h_to_4h", "dense_4h_to_h", c.hidden_size, c.intermediate_size, c.act, true)
  self.input_layernorm = w:layer_norm("input_layernorm", c.hidden_size, c.eps, true)
  self.post_attention_layernorm = w:layer_norm("post_attention_layernorm", c.hidden_size, c.eps, true)
end

function Layer:forward(x, caches, cache)
  local attended = x + self.attention(self.input_layernorm(x), caches, cache)
  return attended + self.mlp(self.post_attention_layernorm(self.parallel and x or attended))
end

local Model = nn.class("Model", Decoder)

function Model:init(w, config)
  local c = Decoder.settings(config, "layer_norm_eps")
  c.act, c.intermediate_size = config:act("hidden_act"), config:need("intermediate_size", "size")
  c.attention_bias, c.norm, c.norm_bias = config:get("attention_bias", true), "layer_norm", true
  c.parallel, c.layout = config:get("use_parallel_residual", true), {}
  local share, base = config:said("rotary_pct", "number"), config:said("rotary_emb_base", "positive") -- older names
  config.settings.partial_rotary_factor = share -- what counts is this, or rope_parameters
  if c.head_dim % 1 ~= 0 or c.head_dim < 4 then
    error(("lm: config.json: num_attention_heads = %d for hidden_size = %d is not built"):format(c.heads,
      c.hidden_size), 0)
  end
  if base then config.settings.rope_theta = config:said("rope_theta") or base end
  c.rope = config:rope()
  for i = 1, c.layers do c.layout[i] = {kind = "kv"} end
  Decoder.init(self, w, c, Layer)
end

-- names leaves out the masks of older files.
function Model.names(name, config)
  if name:match("%.attention%.bias$") or name:match("attention%.masked_bias$") then return nil end
  return Decoder.names(name, config)
end

-- mlx-lm's names, and transformers'.
Decoder.called(Model, {{"model.embed_tokens", "model.embed_in", "gpt_neox.embed_in"},
  {"model.norm", "model.final_layer_norm", "gpt_neox.final_layer_norm"}, {"model.layers", "model.h", "gpt_neox.layers"},
  {"lm_head", "model.embed_out", "embed_out"}})

-- portable adds the names that mlx-lm knows: see Config:portable.
function Model.portable(settings, _, config)
  local rope = config:rope()
  settings.rotary_pct, settings.rotary_emb_base = rope.partial_rotary_factor or 1, rope.rope_theta
end

return Model
