-- Mamba 2: layers of one recurrent block each.
local nn = require("mx.nn")
local Decoder, recurrent = require("lm.decoder"), require("lm.recurrent")

local Layer = nn.class("Layer")

function Layer:init(w, c)
  self.norm, self.mixer = w:norm("norm", c.hidden_size, c.eps), recurrent.Mamba(w:at("mixer"), c.hidden_size, c.mamba)
end

function Layer:forward(x, caches, cache) return x + self.mixer(self.norm(x), caches, cache) end

local Model = nn.class("Model", Decoder)

function Model:init(w, config)
  local c = {hidden_size = config:need("hidden_size", "size"), layers = config:need("num_hidden_layers", "layers"),
    vocab_size = config:need("vocab_size", "size"), tied = config:get("tie_word_embeddings", false), layout = {},
    eps = config:need("layer_norm_epsilon", "number")}
  c.mamba = {heads = config:need("num_heads", "size"), size = config:need("head_dim", "size"),
    groups = config:need("n_groups", "size"), state = config:need("state_size", "size", "ssm_state_size"),
    width = config:need("conv_kernel", "size"), bias = config:get("use_bias", false),
    conv_bias = config:get("use_conv_bias", false), act = config:act("hidden_act"), eps = c.eps,
    limits = recurrent.limits(config)}
  local inner = c.mamba.heads * c.mamba.size
  if config:need("expand", "number") * c.hidden_size ~= inner then
    error(("lm: config.json: expand * hidden_size is not num_heads * head_dim = %d"):format(inner), 0)
  end
  -- of training, of how it is computed, and of what follows from others
  config:ignore{"chunk_size", "rescale_prenorm_residual", "residual_in_fp32", "time_step_rank", "time_step_min",
    "time_step_max", "time_step_floor", "intermediate_size", "rms_norm", "norm_before_gate"}
  for i = 1, c.layers do c.layout[i] = {kind = "state"} end
  Decoder.init(self, w, c, Layer)
end

function Model.sanitize(arrays)
  recurrent.turn(arrays)
  return arrays
end

-- portable adds what mlx-lm wants to be said: see Config:portable.
function Model.portable(settings, _, config)
  recurrent.portable(settings, config)
  settings.intermediate_size = config:need("num_heads", "size") * config:need("head_dim", "size")
end

Decoder.called(Model, {{"model.embed_tokens", "backbone.embeddings"}, {"model.norm", "backbone.norm_f"},
  {"model.layers", "backbone.layers"}})
return Model
