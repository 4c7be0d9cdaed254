-- Llama 4: three layers of four attend within a chunk, with rotary embeddings and norms without a weight, the fourth to
-- all tokens, with neither, but with queries that grow with their position. Experts get their input times their share.
local mx, nn = require("mx"), require("mx.nn")
local Decoder, layers, Llama = require("lm.decoder"), require("lm.layers"), require("lm.models.llama")
local moe = require("lm.moe")

local Attention = nn.class("Attention", Llama.Attention)

function Attention:init(w, c, i)
  Llama.Attention.init(self, w, c, i)
  self.eps, self.tuning = c.normed and self.rope and c.eps, not self.rope and c.tuning
end

function Attention:forward(x, caches, cache)
  local q, k, v = self:project(x)
  local turn = self.rope
  if self.eps then
    turn = function(t, ...) return mx.fast.rms_norm(self.rope(t, ...), nil, self.eps) end
  elseif self.tuning then
    local far = mx.log(mx.floor((Decoder.places(caches) + 1) / self.tuning.floor) + 1) * self.tuning.scale + 1
    q = q * far:swapaxes(1, 2):astype(q.dtype)
  end
  return self.o_proj(Decoder.attend(caches, cache, q, k, v, turn, self.options))
end

local Experts = nn.class("Experts")

function Experts:init(w, c)
  self.chosen = c.chosen
  self.router = w:linear("router", c.hidden_size, c.experts)
  self.experts = layers.SwitchGLU(w:at("experts"), c.experts, c.hidden_size, c.intermediate_size,
    layers.gated(c.act))
  self.shared_expert = layers.GLU(w:at("shared_expert"), c.hidden_size, c.intermediate_size, c.act)
end

function Experts:forward(x)
  local which, best = moe.scored_best(self.router(x), self.chosen)
  local shares = mx.sigmoid(best:astype(mx.float32)):astype(x.dtype)
  local y = self.shared_expert(x)
  for k = 0, self.chosen - 1 do
    local one = ("%d:%d"):format(k, k + 1)
    y = y + self.experts(x * shares:index("...", one), which:index("...", one)):squeeze(-2)
  end
  return y
end

local Layer = nn.class("Layer", Llama.Layer)

function Layer:feed(w, c, i)
  if c.mixed[i] then
    self.feed_forward = Experts(w:at("feed_forward"), c)
  else
    self.feed_forward = layers.GLU(w:at("feed_forward"), c.hidden_size, c.dense, c.act)
  end
end

function Layer:forward(x, caches, cache)
  x = x + self.self_attn(self.input_layernorm(x), caches, cache)
  return x + self.feed_forward(self.post_attention_layernorm(x))
end

local Model = nn.class("Model", Decoder)

function Model:init(w, config)
  local chunk = config:get("attention_chunk_size", nil, "size")
  local c = Llama.settings(config, {types = function(turned)
    return turned and chunk and "chunked_attention" or "full_attention"
  end, chunk = chunk})
  c.Attention, c.interleaved, c.whole = Attention, true, true
  c.normed, c.dense = config:get("use_qk_norm", false), config:need("intermediate_size_mlp", "size")
  local floor, scale = config:need("floor_scale", "positive"), config:need("attn_scale", "number")
  c.tuning = config:get("attn_temperature_tuning", false) and {floor = floor, scale = scale}
  c.experts = config:need("num_local_experts", "size")
  c.chosen = moe.chosen(config, c.experts)
  config:get("for_llm_compressor")
  local every, listed = config:need("interleave_moe_layer_step", "count"), config:get("moe_layers", nil, "counts")
  c.mixed = {}
  for i = 1, listed and 0 or c.layers do c.mixed[i] = every > 0 and i % every == 0 end
  for _, i in ipairs(listed or {}) do c.mixed[i + 1] = true end
  Decoder.init(self, w, c, Layer)
end

Model.names = Decoder.text_names

-- sanitize parts what transformers keeps as one matrix for each expert, transposed.
function Model.sanitize(arrays)
  local found = {}
  for name in pairs(arrays) do found[#found + 1] = name:match("^(.*%.experts%.)gate_up_proj$") end
  for _, prefix in ipairs(found) do
    local gate, up = unpack(mx.split(arrays[prefix .. "gate_up_proj"], 2, -1))
    arrays[prefix .. "gate_proj.weight"], arrays[prefix .. "up_proj.weight"] = gate:swapaxes(1, 2), up:swapaxes(1, 2)
    arrays[prefix .. "down_proj.weight"] = arrays[prefix .. "down_proj"]:swapaxes(1, 2)
    arrays[prefix .. "gate_up_proj"], arrays[prefix .. "down_proj"] = nil, nil
  end
  return arrays
end

-- portable has the settings of the text where mlx-lm looks for them.
function Model.portable(settings, whole) return Decoder.nested(settings, whole, "llama4") end

return Model
