-- Qwen2 and Qwen2-MoE: Llama with biases of queries, keys and values; in the second, layers choose among experts,
-- beside one that is always there.
local nn = require("mx.nn")
local Decoder, Llama, moe = require("lm.decoder"), require("lm.models.llama"), require("lm.moe")

local Layer = nn.class("Layer", Llama.Layer)

function Layer:feed(w, c, i)
  if not (c.sparse and c.sparse(i)) then return Llama.Layer.feed(self, w, c) end
  self.mlp = moe.SparseMoE(w:at("mlp"), c.hidden_size, c.moe)
end

local Model = nn.class("Model", Decoder)

function Model:init(w, config)
  local c = Llama.settings(config)
  local mixed = config.model_type == "qwen2_moe"
  c.attention_bias, c.output_bias = not mixed or config:get("qkv_bias", false), false
  c.layout = Decoder.asked_windows(config, c.layers, function(i, most)
    if mixed then return i % 2 == 1 and i <= most end
    return i > most
  end)
  if mixed then c.moe, c.sparse = moe.settings(config) end
  Decoder.init(self, w, c, Layer)
end

function Model.sanitize(arrays, config)
  if config.model_type == "qwen2_moe" then return moe.stack(arrays, config) end
  return arrays
end

Model.pack_more, Model.Layer = moe.pack_more, Layer

return Model
