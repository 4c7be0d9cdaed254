-- Nemotron-H and Nemotron 3: each layer is one part, a block of Mamba 2, attention without rotary embeddings, two
-- matrices, or experts of two matrices, chosen as DeepSeek does.
local nn = require("mx.nn")
local Decoder, layers, grouped = require("lm.decoder"), require("lm.layers"), require("lm.grouped")
local Llama, recurrent, Weights = require("lm.models.llama"), require("lm.recurrent"), require("lm.weights")
local moe = require("lm.moe")

local function relu2(w, dims, hidden, c)
  return layers.MLP(w, "up_proj", "down_proj", dims, hidden, c.act, c.mlp_bias)
end

local Experts = nn.class("Experts", grouped.Experts)

function Experts:init(w, c)
  self:gates(w, c)
  local dims = c.latent or c.hidden_size
  self.switch_mlp = layers.SwitchMLP(w:at("switch_mlp"), c.experts, dims, c.hidden, c.act)
  if c.shared > 0 then self.shared_experts = relu2(w:at("shared_experts"), c.hidden_size, c.shared_hidden, c) end
  if c.latent then
    self.fc1_latent_proj = w:linear("fc1_latent_proj", c.hidden_size, dims, c.mlp_bias)
    self.fc2_latent_proj = w:linear("fc2_latent_proj", dims, c.hidden_size, c.mlp_bias)
  end
end

function Experts:forward(x)
  local which, shares = self:choose(x)
  local y = self.fc1_latent_proj and self.fc1_latent_proj(x) or x
  y = moe.weighed(y, which, shares, self.switch_mlp):astype(x.dtype)
  if self.fc2_latent_proj then y = self.fc2_latent_proj(y) end
  return self.shared_experts and y + self.shared_experts(x) or y
end

-- kinds make the part of a layer of a type.
local kinds = {
  linear_attention = function(w, c) return recurrent.Mamba(w, c.hidden_size, c.mamba) end,
  full_attention = function(w, c, i) return Llama.Attention(w, c, i) end,
  moe = function(w, c) return Experts(w, c) end,
  mlp = function(w, c) return relu2(w, c.hidden_size, c.intermediate_size, c) end,
}

local Layer = nn.class("Layer")

function Layer:init(w, c, i)
  self.norm, self.mixer = w:norm("norm", c.hidden_size, c.eps), kinds[c.types[i]](w:at("mixer"), c, i)
end

function Layer:forward(x, caches, cache) return x + self.mixer(self.norm(x), caches, cache) end

local Model = nn.class("Model", Decoder)

-- types are those of the layers, as a list or as a pattern of letters.
local function types(config)
  local older = {attention = "full_attention", mamba = "linear_attention", M = "linear_attention", E = "moe",
    ["*"] = "full_attention", ["-"] = "mlp"}
  local out = {}
  local listed, pattern = config:get("layers_block_type", nil, "strings"), config:get("hybrid_override_pattern")
  listed = listed or config:get("layer_types", nil, "strings")
  if not listed and type(pattern) == "string" then
    listed = {}
    for letter in pattern:gmatch(".") do listed[#listed + 1] = letter end
  end
  for i, name in ipairs(listed or pattern or {}) do
    out[i] = older[name] or name
    if not kinds[out[i]] then
      error(("lm: config.json: layers_block_type has %s, which is not built"):format(name), 0)
    end
  end
  if #out == 0 then error("lm: config.json: layers_block_type is missing", 0) end
  return out
end

function Model:init(w, config)
  local listed = types(config)
  config.settings.num_hidden_layers = #listed
  local c = Decoder.settings(config, "layer_norm_epsilon")
  c.types, c.turned, c.layout = listed, {}, Decoder.layout_of(listed)
  c.intermediate_size, c.act = config:get("intermediate_size", nil, "size"), config:act("mlp_hidden_act")
  c.mlp_bias, c.output_bias = config:get("mlp_bias", false), c.attention_bias
  config:only("attention_bias", false) -- transformers has none, whatever is said
  c.mamba = {heads = config:need("mamba_num_heads", "size"), size = config:need("mamba_head_dim", "size"),
    groups = config:need("n_groups", "size"), state = config:need("ssm_state_size", "size"), eps = c.eps,
    width = config:need("conv_kernel", "size"), bias = config:get("mamba_proj_bias", false),
    conv_bias = config:get("use_conv_bias", true), act = config:act("mamba_hidden_act"),
    limits = recurrent.limits(config)}
  local mixed = false
  for _, name in ipairs(listed) do mixed = mixed or name == "moe" end
  if mixed then
    grouped.settings(c, config)
    c.shared_hidden = config:need("moe_shared_expert_intermediate_size", "size")
    c.latent = config:get("moe_latent_size", nil, "size")
  else
    config:ignore{"n_group", "topk_group", "n_routed_experts", "num_experts_per_tok", "n_shared_experts",
      "moe_intermediate_size", "moe_shared_expert_intermediate_size", "moe_latent_size", "norm_topk_prob",
      "routed_scaling_factor"}
  end
  config:only("use_bias", false)
  config:only("residual_in_fp32", false, true)
  config:ignore{"chunk_size", "expand", "mamba_ssm_cache_dtype", "moe_shared_expert_overlap", "mtp_layers_block_type",
    "mtp_hybrid_override_pattern", "num_logits_to_keep", "rescale_prenorm_residual", "time_step_floor", "time_step_max",
    "time_step_min", "use_mamba_kernels", "rope_theta", "partial_rotary_factor", "norm_eps"}
  Decoder.init(self, w, c, Layer)
end

-- names: experts' matrices are called as mlx-lm does.
function Model.names(name, config)
  name = name:gsub("(%.experts%.%d+%.)up_proj%.", "%1fc1."):gsub("(%.experts%.%d+%.)down_proj%.", "%1fc2.")
  return Decoder.names(name, config)
end

function Model.sanitize(arrays, config)
  recurrent.turn(arrays)
  return Weights.stack_experts(arrays, config:get("n_routed_experts", 0, "count"))
end

function Model.portable(settings, _, config) recurrent.portable(settings, config) end

Decoder.called(Model, {{"model.embed_tokens", "backbone.embeddings"}, {"model.norm", "backbone.norm_f"},
  {"model.layers", "backbone.layers"}})
return Model
