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
  local c = { -- the defaults are those that published files leave out
    hidden_size = config:get("hidden_size", 2304, "size"), heads = config:get("num_attention_heads", 8, "size"),
    kv_heads = config:get("num_key_value_heads", 4, "size"), head_dim = config:get("head_dim", 256, "size"),
    layers = config:get("num_hidden_layers", 26, "size"), vocab_size = config:get("vocab_size", 262208, "size"),
    intermediate_size = config:get("intermediate_size", 9216, "size"), eps = config:get("rms_norm_eps", 1e-6),
    attention_bias = config:get("attention_bias", false), tied = not w:has("lm_head.weight"),
    scale = config:get("query_pre_attn_scalar", 256) ^ -0.5, norm = "gemma_norm", norms = Gemma.Layer.norms,
    Attention = Attention, turned = {},
  }
  c.output_bias = c.attention_bias
  config:get("tie_word_embeddings")
  c.act = config:act(config:get("hidden_activation") and "hidden_activation" or "hidden_act", "gelu_pytorch_tanh")
  config:get("hidden_act")
  c.rope_full = config:rope("full_attention", nil, 1000000)
  c.rope_window = config:rope("sliding_attention", "rope_local_base_freq", 10000)
  local every = config:get("sliding_window_pattern", nil, "size") or
    config:get("_sliding_window_pattern", 6, "size")
  local types = config:layer_types(c.layers, function(i)
    return i % every == 0 and "full_attention" or "sliding_attention"
  end)
  c.layout = Decoder.layout_of(types, config:get("sliding_window", 4096))
  Decoder.init(self, w, c, Gemma.Layer)
  self.embed_scale = c.hidden_size ^ 0.5
end

function Model.names(name, config)
  if name:match("^vision_tower") or name:match("^model%.vision_tower") or name:match("multi_modal_projector") then
    return nil
  end
  name = name:gsub("^model%.language_model%.", "model."):gsub("^language_model%.model%.", "model.")
  name = name:gsub("^language_model%.lm_head", "lm_head")
  return Decoder.names(name, config)
end

-- portable gives layers with a window the key of their base that transformers 4 has: see Config:portable.
function Model.portable(settings)
  local rope = settings.rope_parameters
  local own = type(rope) == "table" and rope.sliding_attention
  if own and settings.rope_local_base_freq == nil then settings.rope_local_base_freq = own.rope_theta end
end

return Model
