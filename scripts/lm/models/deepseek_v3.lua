-- DeepSeek V2 and V3, Kimi K2 and GLM-4.7-Flash: attention over a latent vector for each token, and experts chosen by
-- groups.
local mx, nn = require("mx"), require("mx.nn")
local Decoder, layers, rope = require("lm.decoder"), require("lm.layers"), require("lm.rope")
local Llama, grouped, Weights = require("lm.models.llama"), require("lm.grouped"), require("lm.weights")

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

local Layer = nn.class("Layer", Llama.Layer)

function Layer:feed(w, c, i)
  if not (c.experts and c.sparse(i)) then return Llama.Layer.feed(self, w, c) end
  self.mlp = grouped.Experts(w:at("mlp"), c)
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
  c.interleave = config:get("rope_interleave", config.model_type == "deepseek_v2")
  config:get("head_dim")
  c.scale = (c.nope + c.turned) ^ -0.5
  local all = c.rope.mscale_all_dim
  if all and all ~= 0 and c.rope.factor and c.rope.rope_type ~= "default" then
    c.scale = c.scale * rope.attention_scale(c.rope.factor, all) ^ 2
  end
  grouped.settings(c, config)
  config:only("moe_layer_freq", 1)
  c.layout = {}
  for i = 1, c.layers do c.layout[i] = {kind = "latent", rank = c.rank} end
  Decoder.init(self, w, c, Layer)
end

Model.names = grouped.names

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
    local rows, values = arrays[name]:dim(0), config:need("v_head_dim", "size")
    if rows ~= heads * (nope + values) then
      error(("lm: %s has %d rows, config.json says %d heads of %d and %d"):format(name, rows, heads, nope, values), 0)
    end
    local k, v = unpack(mx.split(arrays[name]:unflatten(0, {heads, -1}), {nope}, 1))
    arrays[prefix .. ".embed_q.weight"], arrays[prefix .. ".unembed_out.weight"] = k:swapaxes(-1, -2), v
    arrays[name] = nil
  end
  return arrays
end

Model.Layer = Layer
return Model
