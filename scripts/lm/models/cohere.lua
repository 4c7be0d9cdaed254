-- Cohere's Command R: attention and the feed-forward part beside each other, after one norm. In Command R7B (cohere2)
-- three of four layers have a window and rotary embeddings, and the fourth neither.
local mx, nn = require("mx"), require("mx.nn")
local Decoder, Llama = require("lm.decoder"), require("lm.models.llama")

-- HeadNorm is a LayerNorm of each head by itself, (batch, tokens, heads, size).
local HeadNorm = nn.class("HeadNorm")
function HeadNorm:init(weight, eps) self.weight, self.eps = weight, eps end
function HeadNorm:forward(x) return self.weight * mx.fast.layer_norm(x, nil, nil, self.eps) end

local Attention = nn.class("Attention", Llama.Attention)

function Attention:init(w, c, i)
  Llama.Attention.init(self, w, c, i)
  if c.head_norms then
    self.q_norm = HeadNorm(w:array("q_norm.weight", {c.heads, c.head_dim}), c.eps)
    self.k_norm = HeadNorm(w:array("k_norm.weight", {c.kv_heads, c.head_dim}), c.eps)
  end
end

function Attention:project(x)
  local q, k, v = Llama.Attention.project(self, x)
  if self.q_norm then return self.q_norm(q), self.k_norm(k), v end
  return q, k, v
end

local Model = nn.class("Model", Decoder)

function Model:init(w, config)
  local c = Llama.settings(config, {eps = "layer_norm_eps"})
  c.norm, c.norms = "layer_norm", {"input_layernorm"}
  c.Attention, c.head_norms, c.interleaved = Attention, config:get("use_qk_norm", false), true
  config:only("layer_norm_bias", false)
  -- keys of Cohere's own program, which transformers does not read
  for key, built in pairs{position_embedding_type = "rope_gptj", use_gated_activation = true,
    use_parallel_block = true, use_embedding_sharing = c.tied, order_of_interleaved_layers = "local_attn_first"} do
    config:only(key, built)
  end
  if config.model_type == "cohere2" then
    local every = config:get("sliding_window_pattern", nil, "size") or
      config:get("_sliding_window_pattern", 4, "size")
    config:only("layer_switch", every)
    local types = config:layer_types(c.layers, function(i)
      return i % every == 0 and "full_attention" or "sliding_attention"
    end)
    c.layout = Decoder.layout_of(types, config:get("sliding_window"))
    for i, name in ipairs(types) do c.turned[i] = name == "sliding_attention" end
  end
  Decoder.init(self, w, c, Llama.Parallel)
  self.factor = config:need("logit_scale", "number")
end

function Model:forward(tokens, caches) return Decoder.forward(self, tokens, caches) * self.factor end

return Model
