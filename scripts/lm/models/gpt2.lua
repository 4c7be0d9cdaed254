-- GPT-2: learned positions, norms around the mean, biases everywhere.
local mx, nn = require("mx"), require("mx.nn")
local Decoder, layers = require("lm.decoder"), require("lm.layers")

local Attention = nn.class("Attention")

function Attention:init(w, c, i)
  self.heads, self.options = c.heads, {scale = c.head_dim ^ -0.5}
  if not c.scaled then self.options.scale = 1 end
  if c.by_layer then self.options.scale = self.options.scale / i end
  self.c_attn = w:linear("c_attn", c.hidden_size, 3 * c.hidden_size, true)
  self.c_proj = w:linear("c_proj", c.hidden_size, c.hidden_size, true)
end

function Attention:forward(x, caches, cache)
  local q, k, v = unpack(mx.split(self.c_attn(x), 3, -1))
  local function heads(t) return t:unflatten(-1, {self.heads, -1}) end
  return self.c_proj(Decoder.attend(caches, cache, heads(q), heads(k), heads(v), nil, self.options))
end

local Layer = nn.class("Layer")

function Layer:init(w, c, i)
  self.attn = Attention(w:at("attn"), c, i)
  self.mlp = layers.MLP(w:at("mlp"), "c_fc", "c_proj", c.hidden_size, c.intermediate_size, c.act, true)
  self.ln_1 = w:layer_norm("ln_1", c.hidden_size, c.eps, true)
  self.ln_2 = w:layer_norm("ln_2", c.hidden_size, c.eps, true)
end

function Layer:forward(x, caches, cache)
  x = x + self.attn(self.ln_1(x), caches, cache)
  return x + self.mlp(self.ln_2(x))
end

local Model = nn.class("Model", Decoder)

function Model:init(w, config)
  local c = {hidden_size = config:need("n_embd", "size"), layers = config:need("n_layer", "layers"), layout = {},
    heads = config:need("n_head", "size"), vocab_size = config:need("vocab_size", "size"), norm = "layer_norm",
    eps = config:need("layer_norm_epsilon", "number"), tied = config:get("tie_word_embeddings", true),
    act = config:act("activation_function"), scaled = config:get("scale_attn_weights", true), norm_bias = true,
    by_layer = config:get("scale_attn_by_inverse_layer_idx", false), most = config:need("n_positions", "size")}
  if c.hidden_size % c.heads ~= 0 then
    error(("lm: config.json: n_embd = %d is no multiple of n_head = %d"):format(c.hidden_size, c.heads), 0)
  end
  c.head_dim, c.intermediate_size = c.hidden_size / c.heads, config:get("n_inner", 4 * c.hidden_size, "size")
  config:ignore{"reorder_and_upcast_attn", "n_ctx", "summary_activation", "summary_first_dropout",
    "summary_proj_to_labels", "summary_type", "summary_use_proj"}
  for i = 1, c.layers do c.layout[i] = {kind = "kv"} end
  Decoder.init(self, w, c, Layer)
  self._bounds.most = c.most
  self.model.wpe = w:embedding("model.wpe", c.most, c.hidden_size)
end

function Model:through(x, caches)
  local at = mx.maximum(Decoder.places(caches):squeeze({1, 3}), 0):astype(mx.int32)
  return Decoder.through(self, x + self.model.wpe(at), caches)
end

-- names leaves out the masks of older files.
function Model.names(name, config)
  if name:match("%.attn%.bias$") or name:match("attn%.masked_bias$") then return nil end
  return Decoder.names(name, config)
end

-- sanitize turns matrices of transformers' files, which are kept the other way round there.
function Model.sanitize(arrays, config)
  local dims = config:need("n_embd", "size")
  for name, x in pairs(arrays) do
    if name:match("c_attn%.weight$") and x:dim(0) == dims and x:dim(1) == 3 * dims then
      local before = name:match("^(.*)attn%.c_attn%.weight$")
      for _, part in ipairs{"attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj"} do
        local whole = before .. part .. ".weight"
        if arrays[whole] then arrays[whole] = arrays[whole].T end
      end
    end
  end
  return arrays
end

-- mlx-lm's names, in whose files matrices are as here; transformers' names; those of the first files.
Decoder.called(Model, {{"model.embed_tokens", "model.wte", "transformer.wte", "wte"},
  {"model.norm", "model.ln_f", "transformer.ln_f", "ln_f"}, {"model.layers", "model.h", "transformer.h", "h"},
  {"model.wpe", "model.wpe", "transformer.wpe", "wpe"}})

-- portable adds what mlx-lm wants to be said: see Config:portable.
function Model.portable(settings) settings.n_ctx = settings.n_ctx or settings.n_positions end

return Model
