-- LFM2 of Liquid AI: most layers are short convolutions between two gates, the others attention with norms of each
-- head's queries and keys; in LFM2-MoE most have experts.
local mx, nn = require("mx"), require("mx.nn")
local Decoder, layers, rope = require("lm.decoder"), require("lm.layers"), require("lm.rope")
local moe, recurrent, Weights = require("lm.moe"), require("lm.recurrent"), require("lm.weights")

local Attention = nn.class("Attention")

function Attention:init(w, c)
  local dims, size = c.hidden_size, c.head_dim
  self.heads, self.kv_heads, self.options = c.heads, c.kv_heads, {scale = size ^ -0.5}
  self.q_proj, self.k_proj = w:linear("q_proj", dims, c.heads * size), w:linear("k_proj", dims, c.kv_heads * size)
  self.v_proj, self.out_proj = w:linear("v_proj", dims, c.kv_heads * size), w:linear("out_proj", c.heads * size, dims)
  self.q_layernorm, self.k_layernorm = w:norm("q_layernorm", size, c.eps), w:norm("k_layernorm", size, c.eps)
  self.rope = rope.RoPE(size, c.rope)
end

function Attention:forward(x, caches, cache)
  local q = self.q_layernorm(self.q_proj(x):unflatten(-1, {self.heads, -1}))
  local k = self.k_layernorm(self.k_proj(x):unflatten(-1, {self.kv_heads, -1}))
  local v = self.v_proj(x):unflatten(-1, {self.kv_heads, -1})
  return self.out_proj(Decoder.attend(caches, cache, q, k, v, self.rope, self.options))
end

local ShortConv = nn.class("ShortConv")

function ShortConv:init(w, c)
  local dims = c.hidden_size
  self.in_proj = w:linear("in_proj", dims, 3 * dims, c.conv_bias)
  self.out_proj = w:linear("out_proj", dims, dims, c.conv_bias)
  self.conv = recurrent.Conv(w:at("conv"), dims, c.width, c.conv_bias)
end

function ShortConv:forward(x, caches, cache)
  local before, after, y = unpack(mx.split(self.in_proj(x), 3, -1))
  local convolved, seen = self.conv(before * y, cache:get(1), caches:real())
  cache:set(seen)
  return self.out_proj(after * convolved)
end

local Experts = nn.class("Experts")

function Experts:init(w, c)
  self.chosen, self.norm, self.factor = c.chosen, c.norm_shares, c.factor
  self.gate = w:linear("gate", c.hidden_size, c.experts)
  if c.biased then self.expert_bias = w:array("expert_bias", {c.experts}) end
  self.switch_mlp = layers.SwitchGLU(w:at("switch_mlp"), c.experts, c.hidden_size, c.hidden)
end

function Experts:forward(x)
  local scores = mx.sigmoid(self.gate(x))
  local bias = self.expert_bias and self.expert_bias:astype(mx.float32)
  local which, shares = moe.scored_best(scores, self.chosen, bias)
  if self.norm then shares = shares / (shares:sum(-1, true) + 1e-6) end
  return moe.weighed(x, which, shares * self.factor, self.switch_mlp):astype(x.dtype)
end

local Layer = nn.class("Layer")

function Layer:init(w, c, i)
  if c.layout[i].kind == "state" then
    self.conv = ShortConv(w:at("conv"), c)
  else
    self.self_attn = Attention(w:at("self_attn"), c)
  end
  if c.experts and i > c.dense then
    self.feed_forward = Experts(w:at("feed_forward"), c)
  else
    self.feed_forward = layers.GLU(w:at("feed_forward"), c.hidden_size, c.intermediate_size)
  end
  self.operator_norm = w:norm("operator_norm", c.hidden_size, c.eps)
  self.ffn_norm = w:norm("ffn_norm", c.hidden_size, c.eps)
end

function Layer:forward(x, caches, cache)
  x = x + (self.conv or self.self_attn)(self.operator_norm(x), caches, cache)
  return x + self.feed_forward(self.ffn_norm(x))
end

local Model = nn.class("Model", Decoder)

-- hidden is the size of feed-forward parts, which older files give before it is adjusted.
local function hidden(config)
  local size = config:get("block_ff_dim", nil, "size") or config:need("intermediate_size", "size")
  local several = config:get("block_multiple_of", 256, "size")
  local factor = config:get("block_ffn_dim_multiplier", nil, "number")
  if not config:get("block_auto_adjust_ff_dim", false) then return size end
  size = math.floor(2 * size / 3)
  if not factor then return size end
  return several * math.ceil(math.floor(factor * size) / several)
end

function Model:init(w, config)
  local c = Decoder.settings(config, "norm_eps")
  local tied = config:said("tie_embedding") -- of older files
  if tied ~= nil then c.tied = tied end
  c.rope, c.width, c.conv_bias = config:rope(), config:need("conv_L_cache", "size"), config:get("conv_bias", false)
  local full = {}
  local listed = config:get("full_attn_idxs", nil, "counts")
  for _, i in ipairs(listed or {}) do full[i + 1] = true end
  c.layout = Decoder.layout_of(config:layer_types(c.layers, function(i)
    return (not listed or full[i]) and "full_attention" or "conv"
  end))
  if config.model_type == "lfm2_moe" then
    c.intermediate_size = config:need("intermediate_size", "size")
    c.experts, c.hidden = config:need("num_experts", "size"), config:need("moe_intermediate_size", "size")
    c.chosen, c.dense = moe.chosen(config, c.experts), config:need("num_dense_layers", "count")
    c.norm_shares, c.factor = config:get("norm_topk_prob", false), config:need("routed_scaling_factor", "number")
    c.biased = config:get("use_expert_bias", false)
    if not config:said("layer_types") then error("lm: config.json: layer_types is missing", 0) end
  else
    c.intermediate_size = hidden(config)
  end
  config:ignore{"block_dim", "block_mlp_init_scale", "block_norm_eps", "block_out_init_scale", "block_use_swiglu",
    "block_use_xavier_init", "conv_dim", "conv_dim_out", "conv_use_xavier_init", "use_pos_enc", "theta"}
  Decoder.init(self, w, c, Layer)
end

local parts = {w1 = "gate_proj", w2 = "down_proj", w3 = "up_proj"}
function Model.names(name, config)
  name = name:gsub("(feed_forward%..*)(w[123])%.weight$", function(a, p) return a .. parts[p] .. ".weight" end)
  return Decoder.names(name:gsub("(feed_forward%.)(w[123])%.", function(a, p) return a .. parts[p] .. "." end), config)
end

function Model.sanitize(arrays, config)
  recurrent.turn(arrays, "%.conv%.weight$")
  return Weights.stack_experts(arrays, config:get("num_experts", 0, "count"))
end

function Model.portable(settings)
  settings.block_dim = settings.block_dim or settings.hidden_size
  if settings.intermediate_size == nil then settings.intermediate_size = settings.block_ff_dim end
end

Decoder.called(Model, {{"model.norm", "model.embedding_norm"}})

-- saved_as: mlx-lm calls the matrices of LFM2 by their numbers, of LFM2-MoE by their names.
local named = Model.saved_as
function Model:saved_as(name)
  name = named(self, name)
  if self.config and self.config.model_type == "lfm2_moe" then return name end
  for number, part in pairs(parts) do name = name:gsub("(feed_forward%.)" .. part, "%1" .. number) end
  return name
end

return Model
