-- Granite 4: as Granite, with blocks of Mamba 2 in most layers; each has experts beside a part for all tokens, or that
-- part alone. Most models have no rotary embeddings.
local mx, nn = require("mx"), require("mx.nn")
local Decoder, layers, Llama = require("lm.decoder"), require("lm.layers"), require("lm.models.llama")
local Granite, moe, recurrent = require("lm.models.granite"), require("lm.moe"), require("lm.recurrent")
local host = require("lm.host")

local Shared = nn.class("Shared")

function Shared:init(w, dims, hidden, act)
  self.input_linear, self.act = w:linear("input_linear", dims, 2 * hidden), act
  self.output_linear = w:linear("output_linear", hidden, dims)
end

function Shared:forward(x)
  local gate, up = unpack(mx.split(self.input_linear(x), 2, -1))
  return self.output_linear(self.act(gate) * up)
end

local Experts = nn.class("Experts")

function Experts:init(w, c)
  self.chosen, self.router = c.chosen, {layer = w:linear("router.layer", c.hidden_size, c.experts)}
  self.switch_mlp = layers.SwitchGLU(w:at("switch_mlp"), c.experts, c.hidden_size, c.intermediate_size,
    layers.gated(c.act))
end

function Experts:forward(x) return moe.mixed(x, self.router.layer(x), self.chosen, self.switch_mlp) end

local Layer = nn.class("Layer")

function Layer:init(w, c, i)
  local dims = c.hidden_size
  if c.layout[i].kind == "state" then
    self.mamba = recurrent.Mamba(w:at("mamba"), dims, c.mamba)
  else
    self.self_attn = Llama.Attention(w:at("self_attn"), c, i)
  end
  if c.experts > 0 then
    self.block_sparse_moe = Experts(w:at("block_sparse_moe"), c)
    self.shared_mlp = Shared(w:at("shared_mlp"), dims, c.shared, c.act)
  else
    self.mlp = layers.GLU(w:at("mlp"), dims, c.shared, c.act)
  end
  self.input_layernorm = w:norm("input_layernorm", dims, c.eps)
  self.post_attention_layernorm, self.factor = w:norm("post_attention_layernorm", dims, c.eps), c.factor
end

function Layer:forward(x, caches, cache)
  x = x + (self.mamba or self.self_attn)(self.input_layernorm(x), caches, cache) * self.factor
  local y = self.post_attention_layernorm(x)
  local fed = self.mlp and self.mlp(y) or self.block_sparse_moe(y) + self.shared_mlp(y)
  return x + fed * self.factor
end

local Model = nn.class("Model", Granite)

function Model:init(w, config)
  local older = config:said("layers_block_type", "strings")
  if not config:said("layer_types") and older then config.settings.layer_types = older end
  local c = Llama.settings(config, {types = function() return "linear_attention" end})
  c.scale, c.factor = config:need("attention_multiplier", "number"), config:need("residual_multiplier", "number")
  local turned = config:only("position_embedding_type", "nope", "rope") == "rope"
  for i = 1, c.layers do c.turned[i] = turned end
  c.experts, c.shared = config:get("num_local_experts", 0, "count"), config:need("shared_intermediate_size", "size")
  c.chosen = c.experts > 0 and moe.chosen(config, c.experts) or config:get("num_experts_per_tok") and 0
  local expand, size = config:need("mamba_expand", "number"), config:get("mamba_d_head")
  c.mamba = {heads = config:need("mamba_n_heads", "size"), groups = config:need("mamba_n_groups", "size"),
    state = config:need("mamba_d_state", "size"), width = config:need("mamba_d_conv", "size"), eps = c.eps,
    bias = config:get("mamba_proj_bias", false), conv_bias = config:get("mamba_conv_bias", true), act = c.act,
    limits = recurrent.limits(config)}
  c.mamba.size = expand * c.hidden_size / c.mamba.heads
  if size ~= nil and size ~= "auto" and size ~= c.mamba.size then
    error(("lm: config.json: mamba_d_head = %s, mamba_expand and mamba_n_heads say %s"):format(tostring(size),
      tostring(c.mamba.size)), 0)
  end
  config:ignore{"mamba_chunk_size", "init_method", "normalization_function", "shared_expert_intermediate_size"}
  Decoder.init(self, w, c, Layer)
  self.embedding, self.logits = config:need("embedding_multiplier", "number"), config:need("logits_scaling", "number")
end

-- sanitize parts matrices of gates and what they gate.
function Model.sanitize(arrays, config)
  recurrent.turn(arrays)
  local dense, out = config:get("num_local_experts", 0, "count") == 0, {}
  for name, x in pairs(arrays) do
    local before, part, kind = name:match("^(.*)%.([%w_]+)%.(%l+put_linear)%.weight$")
    local into = part == "shared_mlp" and dense and "mlp"
    if part == "block_sparse_moe" then into = "block_sparse_moe.switch_mlp" end
    if not into then
      out[name] = x
    elseif kind == "output_linear" then
      out[before .. "." .. into .. ".down_proj.weight"] = x
    else
      local gate, up = unpack(mx.split(x, 2, -2))
      out[before .. "." .. into .. ".gate_proj.weight"], out[before .. "." .. into .. ".up_proj.weight"] = gate, up
    end
  end
  return out
end

-- portable has the types of layers as older files call them, for mlx-lm.
function Model.portable(settings, _, config)
  recurrent.portable(settings, config)
  local older = {linear_attention = "mamba", full_attention = "attention"}
  local types = {}
  for i, name in ipairs(settings.layer_types or {}) do types[i] = older[name] or name end
  settings.layer_types = host.list(types)
  if config:get("num_local_experts", 0, "count") == 0 then -- a part for all tokens is the only one there
    settings.intermediate_size = settings.shared_intermediate_size
  end
  settings.position_embedding_type = config:said("position_embedding_type") or "nope"
end

return Model
