-- Qwen3-Next and Qwen3.5: of four layers three are recurrent, by the delta rule, and one is attention with a gate; most
-- have a mixture of experts. Qwen3.5 keeps apart what Qwen3-Next projects in one matrix.
local mx, nn = require("mx"), require("mx.nn")
local Decoder, layers, rope = require("lm.decoder"), require("lm.layers"), require("lm.rope")
local moe, delta, recurrent = require("lm.moe"), require("lm.delta"), require("lm.recurrent")

local Attention = nn.class("Attention")

function Attention:init(w, c)
  local dims, bias = c.hidden_size, c.attention_bias
  self.heads, self.kv_heads, self.scale = c.heads, c.kv_heads, c.head_dim ^ -0.5
  self.q_proj = w:linear("q_proj", dims, 2 * c.heads * c.head_dim, bias) -- queries and their gates
  self.k_proj = w:linear("k_proj", dims, c.kv_heads * c.head_dim, bias)
  self.v_proj = w:linear("v_proj", dims, c.kv_heads * c.head_dim, bias)
  self.o_proj = w:linear("o_proj", c.heads * c.head_dim, dims, bias)
  self.q_norm, self.k_norm = w:norm("q_norm", c.head_dim, c.eps), w:norm("k_norm", c.head_dim, c.eps)
  self.rope = rope.RoPE(c.head_dim, c.rope)
end

function Attention:forward(x, caches, cache)
  local q, gate = unpack(mx.split(self.q_proj(x):unflatten(-1, {self.heads, -1}), 2, -1))
  local k = self.k_norm(self.k_proj(x):unflatten(-1, {self.kv_heads, -1}))
  local v = self.v_proj(x):unflatten(-1, {self.kv_heads, -1})
  local y = Decoder.attend(caches, cache, self.q_norm(q), k, v, self.rope, {scale = self.scale})
  return self.o_proj(y * mx.sigmoid(gate:flatten(-2, -1)))
end

-- GatedNorm is an RMSNorm whose result is multiplied by silu of a gate, in float32.
local GatedNorm = nn.class("GatedNorm")
function GatedNorm:init(weight, eps) self.weight, self.eps = weight, eps end
function GatedNorm:forward(x, gate)
  local y = mx.fast.rms_norm(x, self.weight, self.eps):astype(mx.float32)
  return (y * nn.silu(gate:astype(mx.float32))):astype(x.dtype)
end

local DeltaNet = nn.class("DeltaNet")

function DeltaNet:init(w, c)
  local d, dims = c.delta, c.hidden_size
  self.kh, self.vh, self.dk, self.dv, self.width = d.key_heads, d.value_heads, d.key_dim, d.value_dim, d.kernel
  local keys, values = self.kh * self.dk, self.vh * self.dv
  if c.joined then
    self.in_proj_qkvz = w:linear("in_proj_qkvz", dims, 2 * keys + 2 * values)
    self.in_proj_ba = w:linear("in_proj_ba", dims, 2 * self.vh)
  else
    self.in_proj_qkv = w:linear("in_proj_qkv", dims, 2 * keys + values)
    self.in_proj_z = w:linear("in_proj_z", dims, values)
    self.in_proj_b, self.in_proj_a = w:linear("in_proj_b", dims, self.vh), w:linear("in_proj_a", dims, self.vh)
  end
  self.conv1d = recurrent.Conv(w:at("conv1d"), 2 * keys + values, self.width)
  self.dt_bias, self.A_log = w:array("dt_bias", {self.vh}), w:array("A_log", {self.vh})
  self.norm = GatedNorm(w:array("norm.weight", {self.dv}), c.eps)
  self.out_proj = w:linear("out_proj", values, dims)
end

-- project gives what goes into the convolution (queries, keys, values), the gate z, and b and a of each value head.
function DeltaNet:project(x)
  if not self.in_proj_qkvz then
    return self.in_proj_qkv(x), self.in_proj_z(x):unflatten(-1, {self.vh, -1}), self.in_proj_b(x), self.in_proj_a(x)
  end
  local each = self.vh / self.kh -- value heads of a key head
  local values = each * self.dv
  local q, k, v, z = unpack(mx.split(self.in_proj_qkvz(x):unflatten(-1, {self.kh, -1}),
    {self.dk, 2 * self.dk, 2 * self.dk + values}, -1))
  local b, a = unpack(mx.split(self.in_proj_ba(x):unflatten(-1, {self.kh, -1}), 2, -1))
  local qkv = mx.concatenate({q:flatten(-2, -1), k:flatten(-2, -1), v:flatten(-2, -1)}, -1)
  return qkv, z:flatten(-2, -1):unflatten(-1, {self.vh, -1}), b:flatten(-2, -1), a:flatten(-2, -1)
end

function DeltaNet:forward(x, caches, cache)
  local qkv, z, b, a = self:project(x)
  local real = caches:real()
  local convolved, seen = self.conv1d(qkv, cache:get(1), real)
  local q, k, v = unpack(mx.split(nn.silu(convolved), {self.kh * self.dk, 2 * self.kh * self.dk}, -1))
  local function unit(t) -- each head's key or query, of length 1
    t = t:unflatten(-1, {self.kh, -1})
    return t * mx.rsqrt((t * t):sum(-1, true) + 1e-6)
  end
  q, k, v = unit(q) * self.dk ^ -0.5, unit(k), v:unflatten(-1, {self.vh, -1})
  local decay = mx.exp(-mx.exp(self.A_log:astype(mx.float32)) * nn.softplus(a:astype(mx.float32) + self.dt_bias))
  local y, state = delta.rule(q, k, v, decay, mx.sigmoid(b), cache:get(2), real)
  cache:set(seen, state)
  return self.out_proj(self.norm(y, z):flatten(-2, -1))
end

local Layer = nn.class("Layer")

function Layer:init(w, c, i)
  if c.layout[i].kind == "state" then
    self.linear_attn = DeltaNet(w:at("linear_attn"), c)
  else
    self.self_attn = Attention(w:at("self_attn"), c)
  end
  if c.sparse and c.sparse(i) then
    self.mlp = moe.SparseMoE(w:at("mlp"), c.hidden_size, c.moe)
  else
    self.mlp = layers.GLU(w:at("mlp"), c.hidden_size, c.intermediate_size, c.act)
  end
  self.input_layernorm = w:norm("input_layernorm", c.hidden_size, c.eps)
  self.post_attention_layernorm = w:norm("post_attention_layernorm", c.hidden_size, c.eps)
end

function Layer:forward(x, caches, cache)
  x = x + (self.linear_attn or self.self_attn)(self.input_layernorm(x), caches, cache)
  return x + self.mlp(self.post_attention_layernorm(x))
end

local Model = nn.class("Model", Decoder)

local function sparse(config) return not config.model_type:match("^qwen3_5") or config.model_type:match("moe") end

function Model:init(w, config)
  local c = Decoder.settings(config)
  c.act, c.rope = config:act("hidden_act"), config:rope()
  c.intermediate_size = config:get("intermediate_size", nil, "size")
  c.rope.text_only = true -- a text has one position, whatever sections mrope has
  config:only("attn_output_gate", true)
  config:only("output_gate_type", "swish", "silu")
  if sparse(config) then c.moe, c.sparse = moe.settings(config, config.model_type ~= "qwen3_next") end
  c.delta = {
    key_heads = config:need("linear_num_key_heads", "size"),
    value_heads = config:need("linear_num_value_heads", "size"),
    key_dim = config:need("linear_key_head_dim", "size"), value_dim = config:need("linear_value_head_dim", "size"),
    kernel = config:need("linear_conv_kernel_dim", "size"),
  }
  c.joined = config.model_type == "qwen3_next"
  local every = config:get("full_attention_interval", 4, "size")
  c.layout = Decoder.layout_of(config:layer_types(c.layers, function(i)
    return i % every == 0 and "full_attention" or "linear_attention"
  end))
  Decoder.init(self, w, c, Layer)
  self._whole = not c.joined -- so mlx-lm names the weights of all Qwen3.5
end

Model.names = Decoder.text_names

-- sanitize brings the weights of transformers' files into the form of mlx-lm's, which one knows by their convolution:
-- experts in one array, and norms, which multiply by 1 + w there.
function Model.sanitize(arrays, config)
  if recurrent.turn(arrays) then
    for name, x in pairs(arrays) do
      if name:match("norm%.weight$") and not name:match("linear_attn") then arrays[name] = x + 1 end
    end
  end
  if sparse(config) then return moe.stack(arrays, config) end
  return arrays
end

Model.pack_more = moe.pack_more

-- portable adds the names that mlx-lm knows: see Config:portable.
function Model.portable(settings, whole)
  moe.portable(settings)
  if settings == whole then whole.model_type = whole.model_type:gsub("^(qwen3_5.*)_text$", "%1") end
end

return Model
