-- MiniMax-M2: norms over all queries and all keys, rotary embeddings of a part of each head, and experts with scores by
-- themselves and a bias that counts for choosing only.
local mx, nn = require("mx"), require("mx.nn")
local Decoder, layers, Llama = require("lm.decoder"), require("lm.layers"), require("lm.models.llama")
local Mixtral, Olmo2, moe = require("lm.models.mixtral"), require("lm.models.olmo2"), require("lm.moe")

local Experts = nn.class("Experts")

function Experts:init(w, c)
  self.chosen, self.gate = c.chosen, w:linear("gate", c.hidden_size, c.experts)
  self.e_score_correction_bias = w:array("e_score_correction_bias", {c.experts})
  self.switch_mlp = layers.SwitchGLU(w:at("switch_mlp"), c.experts, c.hidden_size, c.intermediate_size,
    layers.gated(c.act))
end

function Experts:forward(x)
  local scores = mx.sigmoid(self.gate(x:astype(mx.float32)))
  local which, shares = moe.scored_best(scores, self.chosen, self.e_score_correction_bias)
  shares = (shares / (shares:sum(-1, true) + 1e-20)):astype(x.dtype)
  return moe.weighed(x, which, shares, self.switch_mlp)
end

local Layer = nn.class("Layer", Mixtral.Layer)

function Layer:feed(w, c) self.block_sparse_moe = Experts(w:at("block_sparse_moe"), c) end

local Model = nn.class("Model", Decoder)

function Model:init(w, config)
  local turned = config:said("rotary_dim", "size") -- as published files say the part that is turned
  if turned and not config:said("partial_rotary_factor") then
    config.settings.partial_rotary_factor = turned / config:need("head_dim", "size")
  end
  local c = Llama.settings(config)
  c.Attention, c.output_bias = Olmo2.Attention, false
  c.experts = config:need("num_local_experts", "size", "num_experts")
  c.chosen = moe.chosen(config, c.experts)
  config:only("use_qk_norm", true)
  config:only("qk_norm_type", "per_layer")
  config:only("scoring_func", "sigmoid")
  config:only("shared_intermediate_size", 0)
  config:ignore{"use_mtp", "use_routing_bias", "mtp_transformer_layers"}
  Decoder.init(self, w, c, Layer)
end

function Model.names(name, config)
  name = name:gsub("%.gate%.e_score_correction_bias$", ".e_score_correction_bias")
  return Mixtral.names(name, config)
end

-- portable adds the names that mlx-lm knows: see Config:portable.
function Model.portable(settings, _, config)
  settings.rotary_dim = math.floor((config:rope().partial_rotary_factor or 1) * config:need("head_dim", "size"))
  settings.shared_intermediate_size = settings.shared_intermediate_size or 0
end

Model.sanitize = Mixtral.sanitize
return Model
