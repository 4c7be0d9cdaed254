-- Gemma 3n: as Gemma 4, in four streams of which each layer works on one and predicts and corrects the others (AltUp),
-- with a low-rank part beside attention (Laurel). Paper of AltUp: Baykal et al., Alternating Updates for Efficient
-- Transformers, 2023.
local mx, nn = require("mx"), require("mx.nn")
local Decoder, Gemma, Gemma4 = require("lm.decoder"), require("lm.models.gemma"), require("lm.models.gemma4")
local layers = require("lm.layers")

-- MLP is a GLU that lets through what of its gate is above the mean by so many deviations, if sparsity says so: the
-- share of a normal distribution that is below.
local MLP = nn.class("MLP", layers.GLU)

function MLP:init(w, inputs, hidden, act, sparsity)
  layers.GLU.init(self, w, inputs, hidden, act)
  if sparsity > 0 then self.deviations = (mx.erfinv(mx.array(2 * sparsity - 1)) * 2 ^ 0.5):item() end
end

function MLP:forward(x)
  local gate = self.gate_proj(x)
  if self.deviations then
    gate = nn.relu(gate - (gate:mean(-1, true) + gate:std(-1, true) * self.deviations))
  end
  return self.down_proj(self.act(gate) * self.up_proj(x))
end

local Laurel = nn.class("Laurel")

function Laurel:init(w, c)
  self.linear_left = w:linear("linear_left", c.hidden_size, c.rank)
  self.linear_right = w:linear("linear_right", c.rank, c.hidden_size)
  self.post_laurel_norm = w:norm("post_laurel_norm", c.hidden_size, c.eps)
end

function Laurel:forward(x) return x + self.post_laurel_norm(self.linear_right(self.linear_left(x))) end

-- AltUp has x as (streams, batch, length, size).
local AltUp = nn.class("AltUp")

function AltUp:init(w, c)
  local n = c.streams
  self.streams, self.active = n, c.active
  self.correct_output_scale = w:array("correct_output_scale", {c.hidden_size})
  self.correction_coefs = w:linear("correction_coefs", n, n)
  self.prediction_coefs = w:linear("prediction_coefs", n, n * n)
  self.modality_router = w:linear("modality_router", c.hidden_size, n)
  self.router_norm = w:norm("router_norm", c.hidden_size, c.eps)
end

function AltUp:routed(x)
  return mx.tanh(self.modality_router(self.router_norm(x) * (1 / x:dim(-1))):astype(mx.float32)):astype(x.dtype)
end

function AltUp:predict(x)
  local how = self.prediction_coefs(self:routed(x[self.active])):unflatten(-1, {self.streams, -1})
  return x + mx.moveaxis(mx.matmul(mx.moveaxis(x, 0, -1), how:swapaxes(-1, -2)), -1, 0)
end

function AltUp:correct(x, y)
  local how = mx.expand_dims(mx.moveaxis(self.correction_coefs(self:routed(y)) + 1, -1, 0), -1)
  return x + mx.expand_dims(y - x[self.active], 0) * how
end

local Layer = nn.class("Layer", Gemma4.Layer)

function Layer:init(w, c, i)
  self.self_attn = Gemma4.Attention(w:at("self_attn"), c, i)
  self.mlp = MLP(w:at("mlp"), c.hidden_size, c.intermediate[i], c.act, c.sparsity[i])
  for _, name in ipairs(self.norms) do self[name] = w:norm(name, c.hidden_size, c.eps) end
  self:small(w, c)
  self.laurel, self.altup, self.scaled = Laurel(w:at("laurel"), c), AltUp(w:at("altup"), c), c.scaled
end

function Layer:forward(all, caches, cache, small)
  all = self.altup:predict(all)
  local x = all[self.altup.active]
  local y = self.input_layernorm(x)
  local attended = self.post_attention_layernorm(self.self_attn(y, caches, cache))
  x = (x + attended + self.laurel(y)) * 2 ^ -0.5
  all = self.altup:correct(all, x + self.post_feedforward_layernorm(self.mlp(self.pre_feedforward_layernorm(x))))
  local first = all[self.altup.active]
  if self.scaled then first = first * self.altup.correct_output_scale end
  return mx.concatenate({all["0:1"], all["1:"] + self:gated(first, small)}, 0)
end

local Model = nn.class("Model", Gemma4)

-- by_layer is a list of one number for each layer, of a list or of one number for all.
local function by_layer(config, key, count)
  local v = config:get(key)
  if type(v) == "table" then return config:by_layer(key, "numbers", count) end
  local out = {}
  for i = 1, count do out[i] = config:get(key, 0, "number") end
  return out
end

function Model:init(w, config)
  local c = Gemma4.settings(config, 5)
  c.intermediate = by_layer(config, "intermediate_size", c.layers)
  c.sparsity = by_layer(config, "activation_sparsity_pattern", c.layers)
  if not config:said("activation_sparsity_pattern") and c.layers > 10 then
    for i = 1, 10 do c.sparsity[i] = 0.95 end
  end
  c.rope_full = config:rope("full_attention")
  c.rope_window = config:rope("sliding_attention", "rope_local_base_freq")
  c.streams, c.active = config:need("altup_num_inputs", "size"), config:need("altup_active_idx", "count")
  c.rank, c.scaled = config:need("laurel_rank", "size"), config:get("altup_correct_scale", false)
  config:ignore{"altup_coef_clip"} -- of training
  c.sizes = {}
  for i = 1, c.layers do c.sizes[i] = {head_dim = c.head_dim, kv_heads = c.kv_heads} end
  Gemma4.lend(c, config)
  Decoder.init(self, w, c, Layer)
  self:add_small(w, c)
  local m = self.model
  m.altup_projections, m.altup_unembed_projections = {}, {}
  for i = 1, c.streams - 1 do
    for _, name in ipairs{"altup_projections", "altup_unembed_projections"} do
      m[name][i] = w:linear(("model.%s.%d"):format(name, i - 1), c.hidden_size, c.hidden_size)
    end
  end
end

-- magnitude is the root of the mean square of each token.
local function magnitude(x) return mx.sqrt(mx.square(x):mean(-1, true)) end

-- projected is y(i) for each further stream i, with the magnitude of x.
local function projected(x, count, y)
  local out, size = {x}, magnitude(x)
  for i = 1, count do
    local made = y(i)
    out[i + 1] = made * size / mx.maximum(magnitude(made), 1e-5 ^ 0.5)
  end
  return mx.stack(out, 0)
end

function Model:through(x, caches, tokens)
  local m, small = self.model, self:small_embeddings(x, tokens)
  local all = projected(x, #m.altup_projections, function(i) return m.altup_projections[i](x) end)
  for i, layer in ipairs(m.layers) do
    all = layer(all, caches, caches.layers[i], small:index("...", i - 1, ":"))
  end
  return projected(all[0], #m.altup_unembed_projections, function(i)
    return m.altup_unembed_projections[i](all[i])
  end):mean(0)
end

Model.embed, Model.forward = Gemma.embed, Gemma.forward

-- saved_as: mlx-lm has models for text and pictures only.
function Model:saved_as(name) return (name:gsub("^model%.", "model.language_model.")) end

-- portable moves the settings of a text to where mlx-lm looks for them, with the bases of both kinds of layers.
function Model.portable(settings, whole)
  settings = Decoder.nested(settings, whole, "gemma3n")
  local rope = settings.rope_parameters
  for key, of in pairs{rope_theta = "full_attention", rope_local_base_freq = "sliding_attention"} do
    local own = type(rope) == "table" and rope[of]
    if own and settings[key] == nil then settings[key] = own.rope_theta end
  end
  local size = settings.intermediate_size
  if type(size) == "table" and size[1] then settings.intermediate_size = size[1] end
  return settings
end

return Model
