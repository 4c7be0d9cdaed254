-- EXAONE 4: norms after attention and the feed-forward part and of each head's queries and keys; in larger models three
-- of four layers have a window, and the others no rotary embeddings.
local nn = require("mx.nn")
local Decoder, Llama, Olmo2 = require("lm.decoder"), require("lm.models.llama"), require("lm.models.olmo2")

local Model = nn.class("Model", Decoder)

function Model:init(w, config)
  local c = Llama.settings(config, {types = function() return "full_attention" end})
  local window, every = config:get("sliding_window", nil, "size"), config:get("sliding_window_pattern", 4)
  local letters = type(every) == "string" and every
  if letters then every = #letters end
  local types = config:layer_types(c.layers, function(i)
    if not window or every == 0 then return "full_attention" end
    if letters then
      return i < c.layers and letters:sub((i - 1) % every + 1, (i - 1) % every + 1) == "L" and "sliding_attention" or
        "full_attention"
    end
    return i % every == 0 and "full_attention" or "sliding_attention"
  end)
  c.layout = Decoder.layout_of(types, window)
  for i, name in ipairs(types) do c.turned[i] = not window or name == "sliding_attention" end
  c.Attention, c.norms = Llama.NormedAttention, {"post_attention_layernorm", "post_feedforward_layernorm"}
  Decoder.init(self, w, c, Olmo2.Layer)
end

return Model
