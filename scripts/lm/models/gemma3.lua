-- Gemma 3: five layers of attention in a window to one in full, each with its own rotary base; four norms a layer.
local nn = require("mx.nn")
local Decoder, rope = require("lm.decoder"), require("lm.rope")
local Gemma, Llama = require("lm.models.gemma"), require("lm.models.llama")

local Attention = nn.class("Attention", Llama.NormedAttention)

function Attention:init(w, c, i)
  Llama.NormedAttention.init(self, w, c, i)
  self.rope = rope.RoPE(c.head_dim, c.layout[i].window and c.rope_window or c.rope_full)
end

local Model = nn.class("Model", Gemma)

function Model:init(w, config)
  local c = Decoder.settings(config)
  c.intermediate_size, c.act = config:need("intermediate_size", "size"), config:act("hidden_activation")
  config:get("hidden_act") -- of older files; what counts is hidden_activation
  c.scale, c.norm = config:need("query_pre_attn_scalar", "positive") ^ -0.5, "gemma_norm"
  self.softcap = config:get("final_logit_softcapping", nil, "number")
  c.norms, c.Attention, c.turned, c.output_bias = Gemma.Layer.norms, Attention, {}, c.attention_bias
  c.rope_full = config:rope("full_attention")
  c.rope_window = config:rope("sliding_attention", "rope_local_base_freq")
  local every = config:get("sliding_window_pattern", nil, "size") or
    config:get("_sliding_window_pattern", 6, "size")
  local types = config:layer_types(c.layers, function(i)
    return i % every == 0 and "full_attention" or "sliding_attention"
  end)
  c.layout = Decoder.layout_of(types, config:get("sliding_window"))
  Decoder.init(self, w, c, Gemma.Layer)
  self.embed_scale = c.hidden_size ^ 0.5
end

Model.names = Decoder.text_names

-- portable gives layers with a window the key of their base that transformers 4 has: see Config:portable.
function Model.portable(settings)
  local rope = settings.rope_parameters
  local own = type(rope) == "table" and rope.sliding_attention
  if own and settings.rope_local_base_freq == nil then settings.rope_local_base_freq = own.rope_theta end
end

return Model
