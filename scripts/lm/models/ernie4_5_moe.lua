-- ERNIE 4.5 with experts: a softmax over all, a bias that counts for choosing only, and a part for all tokens.
local mx, nn = require("mx"), require("mx.nn")
local Decoder, layers, Llama = require("lm.decoder"), require("lm.layers"), require("lm.models.llama")
local moe, Weights = require("lm.moe"), require("lm.weights")

local Experts = nn.class("Experts")

function Experts:init(w, c)
  self.chosen, self.least = c.chosen, c.least
  self.gate = w:linear("gate", c.hidden_size, c.experts)
  self.moe_statics = {e_score_correction_bias = w:array("moe_statics.e_score_correction_bias", {1, c.experts})}
  self.switch_mlp = layers.SwitchGLU(w:at("switch_mlp"), c.experts, c.hidden_size, c.hidden, layers.gated(c.act))
  if c.shared > 0 then
    self.shared_experts = layers.GLU(w:at("shared_experts"), c.hidden_size, c.hidden * c.shared, c.act)
  end
end

function Experts:forward(x)
  local scores = mx.softmax(self.gate(x):astype(mx.float32), -1, {precise = true})
  local which, shares = moe.scored_best(scores, self.chosen, self.moe_statics.e_score_correction_bias)
  shares = shares / mx.maximum(shares:sum(-1, true), self.least)
  local y = moe.weighed(x, which, shares, self.switch_mlp):astype(x.dtype)
  return self.shared_experts and y + self.shared_experts(x) or y
end

local Layer = nn.class("Layer", Llama.Layer)

function Layer:feed(w, c, i)
  if not c.mixed(i) then return Llama.Layer.feed(self, w, c) end
  self.mlp = Experts(w:at("mlp"), c)
end

local Model = nn.class("Model", Decoder)

function Model:init(w, config)
  local c = Llama.settings(config)
  config:only("use_bias", false)
  c.interleaved, c.experts = true, config:need("moe_num_experts", "size", "num_experts")
  c.chosen, c.hidden = config:need("moe_k", "size", "num_experts_per_tok"), config:need("moe_intermediate_size", "size")
  if c.chosen > c.experts then
    error(("lm: config.json: moe_k = %d of %d experts"):format(c.chosen, c.experts), 0)
  end
  c.shared, c.least = config:get("moe_num_shared_experts", 0, "count"), config:need("moe_norm_min", "number")
  local first, last = config:need("moe_layer_start_index", "count"), config:need("moe_layer_end_index", "number")
  local every = config:need("moe_layer_interval", "size")
  if last == -1 then last = c.layers - 1 end
  c.mixed = function(i) return i % every == 0 and i - 1 >= first and i - 1 <= last end
  config:only("moe_gate_act", "softmax")
  config:ignore{"moe_capacity", "moe_use_aux_free", "moe_multimodal_paired_experts", "multimodel_experts"}
  Decoder.init(self, w, c, Layer)
end

function Model.names(name, config)
  if name:match("^model%.mtp_") then return nil end
  return Decoder.names(name, config)
end

function Model.sanitize(arrays, config)
  return Weights.stack_experts(arrays, config:need("moe_num_experts", "size", "num_experts"))
end

return Model
