-- Gemma and Gemma 2: norms that multiply by 1 + w, and an embedding that is scaled. Gemma 2 has four norms a layer,
-- attention in a window in every second layer, and bounds its scores by tanh.
local mx, nn = require("mx"), require("mx.nn")
local Decoder, Llama = require("lm.decoder"), require("lm.models.llama")

local Layer = nn.class("Layer", Llama.Layer)

-- norms are those of a layer of Gemma 2 and 3.
Layer.norms = {"input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm", "post_feedforward_layernorm"}

function Layer:forward(x, caches, cache)
  if not self.pre_feedforward_layernorm then return Llama.Layer.forward(self, x, caches, cache) end
  x = x + self.post_attention_layernorm(self.self_attn(self.input_layernorm(x), caches, cache))
  return x + self.post_feedforward_layernorm(self.mlp(self.pre_feedforward_layernorm(x)))
end

local Model = nn.class("Model", Decoder)

function Model:init(w, config)
  local second, asked = config.model_type == "gemma2", config:said("hidden_activation")
  local c = Llama.settings(config, {act = (second or asked) and "hidden_activation"})
  c.norm = "gemma_norm"
  local act = config:get("hidden_act") -- counts where hidden_activation is not said
  if not (second or asked) and act == "gelu" then c.act = nn.gelu_approx end -- they mean its approximation
  if second then
    c.norms, c.scale = Layer.norms, config:need("query_pre_attn_scalar", "positive") ^ -0.5
    c.softcap = config:get("attn_logit_softcapping", nil, "number")
    local window = config:get("sliding_window")
    c.layout = Decoder.layout_of(config:layer_types(c.layers, function(i)
      return i % 2 == 1 and "sliding_attention" or "full_attention"
    end), window)
    self.softcap = config:get("final_logit_softcapping", nil, "number")
  else
    config:only("use_bidirectional_attention", false)
  end
  Decoder.init(self, w, c, Layer)
  self.embed_scale = c.hidden_size ^ 0.5
end

-- embed: the scale is rounded to the weights' dtype, as in training.
function Model:embed(tokens)
  local x = self.model.embed_tokens(tokens)
  return x * mx.array(self.embed_scale, x.dtype)
end

function Model:forward(tokens, caches)
  local scores = Decoder.forward(self, tokens, caches)
  return self.softcap and mx.tanh(scores / self.softcap) * self.softcap or scores
end

Model.Layer = Layer
return Model
