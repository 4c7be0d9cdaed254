-- DeepSeek V3: attention over a latent vector for each token, and experts chosen by groups.
local mx, nn = require("mx"), require("mx.nn")
local Decoder, layers, rope = require("lm.decoder"), require("lm.layers"), require("lm.rope")
local Llama, moe, Weights = require("lm.models.llama"), require("lm.moe"), require("lm.weights")

local Attention = nn.class("Attention")

function Attention:init(w, c)
  local dims, q = c.hidden_size, c.heads * (c.nope + c.turned)
  self.heads, self.nope, self.rank, self.scale = c.heads, c.nope, c.rank, c.scale
  if c.q_rank then
    self.q_a_proj = w:linear("q_a_proj", dims, c.q_rank, c.attention_bias)
    self.q_a_layernorm = w:norm("q_a_layernorm", c.q_rank, 1e-6)
    self.q_b_proj = w:linear("q_b_proj", c.q_rank, q)
  else
    self.q_proj = w:linear("q_proj", dims, q)
  end
  self.kv_a_proj_with_mqa = w:linear("kv_a_proj_with_mqa", dims, c.rank + c.turned, c.attention_bias)
  self.kv_a_layernorm = w:norm("kv_a_layernorm", c.rank, 1e-6)
  self.embed_q = w:multi("embed_q", c.heads, c.nope, c.rank)
  self.unembed_out = w:multi("unembed_out", c.heads, c.rank, c.values)
  self.o_proj = w:linear("o_proj", c.heads * c.values, dims, c.attention_bias)
  self.rope = rope.RoPE(c.turned, c.rope, c.interleave)
end

-- forward: all heads share a key, which is the latent vector and a turned part, and the value is the latent vector.
function Attention:forward(x, caches, cache)
  local q = self.q_proj and self.q_proj(x) or self.q_b_proj(self.q_a_layernorm(self.q_a_proj(x)))
  local latent, k_turned = unpack(mx.split(self.kv_a_proj_with_mqa(x), {self.rank}, -1))
  local q_nope, q_turned = unpack(mx.split(layers.heads(q, self.heads), {self.nope}, -1))
  local position = caches:position()
  k_turned = self.rope(mx.expand_dims(k_turned, 1), position, caches)
  local k = mx.concatenate({mx.expand_dims(self.kv_a_layernorm(latent), 1), k_turned}, -1)
  q = mx.concatenate({self.embed_q(q_nope), self.rope(q_turned, position, caches)}, -1)
  local y = cache:attend(caches, q, k, nil, {scale = self.scale})
  return self.o_proj(layers.joined(self.unembed_out(y)))
end

local Experts = nn.class("Experts")

function Experts:init(w, c)
  self.chosen, self.groups, self.chosen_groups = c.chosen, c.groups, c.chosen_groups
  self.norm, self.factor = c.norm_shares, c.factor
  self.gate = {weight = w:array("gate.weight", {c.experts, c.hidden_size}),
    e_score_correction_bias = w:array("gate.e_score_correction_bias", {c.experts})}
  local act = c.act
  self.switch_mlp = layers.SwitchGLU(w:at("switch_mlp"), c.experts, c.hidden_size, c.hidden,
    function(gate, up) return act(gate) * up end)
  if c.shared > 0 then
    self.shared_experts = layers.GLU(w:at("shared_experts"), c.hidden_size, c.hidden * c.shared, act)
  end
end

-- choose gives the experts of each token and their shares. The bias counts for choosing only: of the groups, those
-- whose two best experts are best, and in them the best experts.
function Experts:choose(x)
  local scores = mx.sigmoid(mx.matmul(x:astype(mx.float32), self.gate.weight.T:astype(mx.float32)))
  local for_choice = scores + self.gate.e_score_correction_bias
  if self.groups > 1 then
    local grouped = for_choice:unflatten(-1, {self.groups, -1})
    local sums = mx.topk(grouped, 2, -1):sum(-1, true)
    local out = self.groups - self.chosen_groups
    if out > 0 then
      local worst = mx.argpartition(sums, out - 1, -2):index("...", "0:" .. out, ":")
      grouped = mx.put_along_axis(grouped, mx.stop_gradient(worst), mx.array(0, grouped.dtype), -2)
    end
    for_choice = grouped:flatten(-2, -1)
  end
  local which = mx.stop_gradient(moe.best(for_choice, self.chosen))
  local shares = mx.take_along_axis(scores, which, -1)
  if self.norm then shares = shares / (shares:sum(-1, true) + 1e-20) end
  return which, shares * self.factor
end

function Experts:forward(x)
  local which, shares = self:choose(x)
  local y = (self.switch_mlp(x, which) * mx.expand_dims(shares, -1)):sum(-2):astype(x.dtype)
  if not self.shared_experts then return y end
  return y + self.shared_experts(x)
end

local Layer = nn.class("Layer", Llama.Layer)

function Layer:feed(w, c, i)
  if not (c.experts and i > c.dense) then return Llama.Layer.feed(self, w, c) end
  self.mlp = Experts(w:at("mlp"), c)
end

local Model = nn.class("Model", Decoder)

function Model:init(w, config)
  local c = Decoder.settings(config)
  c.act, c.intermediate_size = config:act("hidden_act"), config:need("intermediate_size", "size")
  c.Attention, c.rope = Attention, config:rope()
  c.nope, c.turned = config:need("qk_nope_head_dim", "size"), config:need("qk_rope_head_dim", "size")
  c.values, c.rank = config:need("v_head_dim", "size"), config:need("kv_lora_rank", "size")
  c.q_rank = config:get("q_lora_rank", nil, "size")
  config:get("qk_head_dim")
  c.interleave = config:get("rope_interleave", false)
  c.scale = (c.nope + c.turned) ^ -0.5
  local all = c.rope.mscale_all_dim
  if all and all ~= 0 and c.rope.factor and c.rope.rope_type ~= "default" then
    c.scale = c.scale * rope.attention_scale(c.rope.factor, all) ^ 2
  end
  c.experts = config:get("n_routed_experts", nil, "size")
  c.chosen = moe.chosen(config, c.experts or math.huge)
  c.groups, c.chosen_groups = config:need("n_group", "size"), config:need("topk_group", "size")
  if c.experts and c.groups > 1 and (c.experts % c.groups ~= 0 or c.experts / c.groups < 2 or
    c.chosen_groups > c.groups) then
    error(("lm: config.json: n_group = %s groups, topk_group = %s of them, of %s experts are not built"):format(
      c.groups, c.chosen_groups, c.experts), 0)
  end
  c.norm_shares, c.factor = config:get("norm_topk_prob", false), config:need("routed_scaling_factor", "number")
  c.shared = config:get("n_shared_experts", 0, "count")
  c.hidden = config:get("moe_intermediate_size", nil, "size")
  c.dense = config:get("first_k_dense_replace", 0, "count")
  config:only("moe_layer_freq", 1)
  config:only("scoring_func", "sigmoid")
  config:only("topk_method", "noaux_tc")
  c.layout = {}
  for i = 1, c.layers do c.layout[i] = {kind = "latent", rank = c.rank} end
  Decoder.init(self, w, c, Layer)
end

function Model.names(name, config)
  local i = name:match("^model%.layers%.(%d+)%.")
  if i and tonumber(i) >= config:need("num_hidden_layers", "size") then return nil end -- for predicting several tokens
  return Decoder.names(name, config)
end

-- sanitize parts what makes keys and values of a latent vector in transformers' files: each head's keys become a part
-- of its queries, its values a part of its output.
function Model.sanitize(arrays, config)
  arrays = Weights.stack_experts(arrays, config:get("n_routed_experts", 0, "count"))
  local heads, nope = config:need("num_attention_heads", "size"), config:need("qk_nope_head_dim", "size")
  local found = {}
  for name in pairs(arrays) do found[#found + 1] = name:match("^(.*)%.kv_b_proj%.weight$") end
  for _, prefix in ipairs(found) do
    local name = prefix .. ".kv_b_proj.weight"
    if arrays[prefix .. ".kv_b_proj.scales"] then
      error(("lm: %s is packed: convert the model anew from its floats"):format(name), 0)
    end
    local k, v = unpack(mx.split(arrays[name]:unflatten(0, {heads, -1}), {nope}, 1))
    arrays[prefix .. ".embed_q.weight"], arrays[prefix .. ".unembed_out.weight"] = k:swapaxes(-1, -2), v
    arrays[name] = nil
  end
  return arrays
end

return Model
