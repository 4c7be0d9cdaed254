-- gpt-oss: attention with sinks, in a window in every second layer, and in all layers experts with biases and a clipped
-- activation.
local mx, nn = require("mx"), require("mx.nn")
local Decoder, layers, rope = require("lm.decoder"), require("lm.layers"), require("lm.rope")
local moe = require("lm.moe")

local Attention = nn.class("Attention")

function Attention:init(w, c)
  local dims = c.hidden_size
  self.heads, self.kv_heads, self.scale = c.heads, c.kv_heads, c.head_dim ^ -0.5
  self.q_proj = w:linear("q_proj", dims, c.heads * c.head_dim, true)
  self.k_proj = w:linear("k_proj", dims, c.kv_heads * c.head_dim, true)
  self.v_proj = w:linear("v_proj", dims, c.kv_heads * c.head_dim, true)
  self.o_proj = w:linear("o_proj", c.heads * c.head_dim, dims, true)
  self.sinks = w:array("sinks", {c.heads})
  self.rope = rope.RoPE(c.head_dim, c.rope)
end

function Attention:forward(x, caches, cache)
  local q = self.q_proj(x):unflatten(-1, {self.heads, -1})
  local k = self.k_proj(x):unflatten(-1, {self.kv_heads, -1})
  local v = self.v_proj(x):unflatten(-1, {self.kv_heads, -1})
  return self.o_proj(Decoder.attend(caches, cache, q, k, v, self.rope, {scale = self.scale, sinks = self.sinks}))
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

function Experts:forward(x)
  local scores = self.router(x)
  local which = mx.stop_gradient(moe.best(scores, self.chosen))
  local shares = mx.softmax(mx.take_along_axis(scores, which, -1), -1, {precise = true})
  return (self.experts(x, which) * mx.expand_dims(shares, -1)):sum(-2)
end

local Layer = nn.class("Layer")

function Layer:init(w, c)
  self.self_attn, self.mlp = Attention(w:at("self_attn"), c), Experts(w:at("mlp"), c)
  self.input_layernorm = w:norm("input_layernorm", c.hidden_size, c.eps)
  self.post_attention_layernorm = w:norm("post_attention_layernorm", c.hidden_size, c.eps)
end

function Layer:forward(x, caches, cache)
  x = x + self.self_attn(self.input_layernorm(x), caches, cache)
  return x + self.mlp(self.post_attention_layernorm(x))
end

local Model = nn.class("Model", Decoder)

function Model:init(w, config)
  local c = Decoder.settings(config)
  c.eps = config:get("rms_norm_eps", 1e-5)
  config:only("attention_bias", true)
  config:only("hidden_act", "silu")
  c.experts = config:need("num_local_experts", "num_experts")
  c.chosen = moe.chosen(config, c.experts, "experts_per_token")
  c.hidden, c.rope = config:need("intermediate_size"), config:rope()
  c.limit, c.alpha = config:get("swiglu_limit", 7), config:get("swiglu_alpha", 1.702)
  local types = config:layer_types(c.layers, function(i)
    return i % 2 == 1 and "sliding_attention" or "full_attention"
  end)
  c.layout = Decoder.layout_of(types, config:get("sliding_window", 128))
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
