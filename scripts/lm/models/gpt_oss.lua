-- gpt-oss: attention with sinks, in a window in every second layer, and in all layers experts with biases and a clipped
-- activation.
local mx, nn = require("mx"), require("mx.nn")
local Decoder, layers, moe = require("lm.decoder"), require("lm.layers"), require("lm.moe")
local Llama = require("lm.models.llama")

local Attention = nn.class("Attention", Llama.Attention)

function Attention:init(w, c, i)
  Llama.Attention.init(self, w, c, i)
  self.sinks = w:array("sinks", {c.heads})
end

function Attention:forward(x, caches, cache)
  local q, k, v = self:project(x)
  local options = {scale = self.options.scale, sinks = self.sinks}
  return self.o_proj(Decoder.attend(caches, cache, q, k, v, self.rope, options))
end

local Experts = nn.class("Experts")

function Experts:init(w, c)
  self.chosen = c.chosen
  self.router = w:linear("router", c.hidden_size, c.experts, true)
  local limit, alpha = c.limit, c.alpha
  self.experts = layers.SwitchGLU(w:at("experts"), c.experts, c.hidden_size, c.hidden, function(gate, up)
    gate, up = mx.minimum(gate, limit), mx.clip(up, -limit, limit)
    return (up + 1) * gate * mx.sigmoid(alpha * gate)
  end, true)
end

function Experts:forward(x) return moe.mixed(x, self.router(x), self.chosen, self.experts) end

local Layer = nn.class("Layer", Llama.Layer)

function Layer:feed(w, c) self.mlp = Experts(w:at("mlp"), c) end

local Model = nn.class("Model", Decoder)

function Model:init(w, config)
  local c = Decoder.settings(config)
  c.Attention, c.attention_bias, c.output_bias = Attention, config:only("attention_bias", true), true
  config:only("hidden_act", "silu")
  c.experts = config:need("num_local_experts", "size", "num_experts")
  c.chosen = moe.chosen(config, c.experts, "experts_per_token")
  c.hidden, c.rope = config:need("intermediate_size", "size"), config:rope()
  c.limit, c.alpha = config:need("swiglu_limit", "number"), config:need("swiglu_alpha", "number")
  local types = config:layer_types(c.layers, function(i)
    return i % 2 == 1 and "sliding_attention" or "full_attention"
  end)
  c.layout = Decoder.layout_of(types, config:get("sliding_window"))
  Decoder.init(self, w, c, Layer)
end

-- sanitize parts gate_up_proj, whose rows alternate, and brings mxfp4 blocks of bytes and transposed matrices into the
-- form of mlx-lm's files.
function Model.sanitize(arrays)
  local out = {}
  for name, x in pairs(arrays) do
    local base, which, kind = name:match("^(.*%.experts%.)(%l+_?%l*_proj)_?(%l*)$")
    if not base then
      out[name] = x
    else
      if kind == "blocks" then x = mx.view(x, mx.uint32):flatten(-2) end
      if kind == "" then x = x:swapaxes(-1, -2) end
      kind = ({blocks = "weight", scales = "scales", bias = "bias", [""] = "weight"})[kind]
      if which == "gate_up_proj" then
        local rows = kind == "bias" and "..., %d::2" or "..., %d::2, :"
        out[base .. "gate_proj." .. kind], out[base .. "up_proj." .. kind] = x[rows:format(0)], x[rows:format(1)]
      else
        out[base .. which .. "." .. kind] = x
      end
    end
  end
  return out
end

function Model.pack_more(path)
  if path:match("router$") then return {group_size = 64, bits = 8} end
  return true
end

return Model
