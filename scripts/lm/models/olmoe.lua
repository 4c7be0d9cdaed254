-- OLMoE: norms over all queries and all keys, which are clipped in some models, and experts in all layers.
local mx, nn = require("mx"), require("mx.nn")
local Decoder, Llama, Olmo2 = require("lm.decoder"), require("lm.models.llama"), require("lm.models.olmo2")
local Qwen2, moe = require("lm.models.qwen2"), require("lm.moe")

local Attention = nn.class("Attention", Olmo2.Attention)

function Attention:init(w, c, i)
  Olmo2.Attention.init(self, w, c, i)
  self.clip = c.clip
end

function Attention:project(x)
  local q, k, v = Olmo2.Attention.project(self, x)
  if not self.clip then return q, k, v end
  local function clipped(t) return mx.clip(t, -self.clip, self.clip) end
  return clipped(q), clipped(k), clipped(v)
end

local Model = nn.class("Model", Decoder)

function Model:init(w, config)
  local c = Llama.settings(config)
  c.Attention, c.clip = Attention, config:get("clip_qkv", nil, "number")
  c.moe = {experts = config:need("num_experts", "size", "num_local_experts"), hidden = c.intermediate_size,
    norm = config:get("norm_topk_prob", false), shared = 0, act = c.act}
  c.moe.chosen = moe.chosen(config, c.moe.experts)
  c.sparse = function() return true end
  Decoder.init(self, w, c, Qwen2.Layer)
end

Model.sanitize, Model.portable = moe.stack, moe.portable
return Model
