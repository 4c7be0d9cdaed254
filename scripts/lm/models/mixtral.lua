-- Mixtral: Llama, in which each token goes to a few of the experts, whose shares are a softmax over the chosen.
local nn = require("mx.nn")
local Decoder, layers, Llama = require("lm.decoder"), require("lm.layers"), require("lm.models.llama")
local moe, Weights = require("lm.moe"), require("lm.weights")

local Experts = nn.class("Experts")

function Experts:init(w, c)
  self.chosen = c.chosen
  self.gate = w:linear("gate", c.hidden_size, c.experts)
  self.switch_mlp = layers.SwitchGLU(w:at("switch_mlp"), c.experts, c.hidden_size, c.intermediate_size,
    layers.gated(c.act))
end

function Experts:forward(x) return moe.mixed(x, self.gate(x), self.chosen, self.switch_mlp) end

local Layer = nn.class("Layer", Llama.Layer)

function Layer:feed(w, c) self.block_sparse_moe = Experts(w:at("block_sparse_moe"), c) end

function Layer:forward(x, caches, cache)
  x = x + self.self_attn(self.input_layernorm(x), caches, cache)
  return x + self.block_sparse_moe(self.post_attention_layernorm(x))
end

local Model = nn.class("Model", Decoder)

function Model:init(w, config)
  local c = Llama.settings(config, {windows = true})
  c.experts = config:need("num_local_experts", "size", "num_experts")
  c.chosen = moe.chosen(config, c.experts)
  Decoder.init(self, w, c, Layer)
end

-- names: transformers calls the parts of an expert w1, w2 and w3.
function Model.names(name, config)
  local parts = {w1 = "gate_proj", w2 = "down_proj", w3 = "up_proj"}
  name = name:gsub("(%.experts%.%d+%.)(w[123])%.", function(before, part) return before .. parts[part] .. "." end)
  return Decoder.names(name:gsub("(layers%.%d+%.)mlp%.", "%1block_sparse_moe."), config)
end

function Model.sanitize(arrays, config)
  return Weights.stack_experts(arrays, config:need("num_local_experts", "size", "num_experts"))
end

Model.Layer = Layer
return Model
