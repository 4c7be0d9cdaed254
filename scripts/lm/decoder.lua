-- What all decoder models have around their layers: an embedding, a norm, scores of the next token.
local mx, nn = require("mx"), require("mx.nn")
local layers, rope = require("lm.layers"), require("lm.rope")

-- Decoder is the class of models: a class below it calls Decoder.init(self, w, c, Layer). Settings of c: vocab_size,
-- hidden_size, eps, layers (how many), tied (whether the scores come from the embedding), head_bias (whether those have
-- one), norm (the method of weights that makes norms, "norm" unless it is given), norm_bias (whether they have one),
-- rope, or where it differs by layers rope_full and rope_window (see lm.rotary), and layout, each layer's cache: see
-- lm.cache.
local Decoder = nn.class("Decoder")

function Decoder:init(w, c, Layer)
  for _, kind in ipairs(c.layout) do
    local window = kind.window
    if kind.windowed and (type(window) ~= "number" or window < 1 or window ~= math.floor(window)) then
      error(("lm: config.json: sliding_window = %s, want a positive integer"):format(tostring(window)), 0)
    end
  end
  self.model = {embed_tokens = w:embedding("model.embed_tokens", c.vocab_size, c.hidden_size), layers = {}}
  for i = 1, c.layers do self.model.layers[i] = Layer(w:at("model.layers." .. i - 1), c, i) end
  self.model.norm = w[c.norm or "norm"](w, "model.norm", c.hidden_size, c.eps, c.norm_bias)
  -- in a model for text and pictures the weight says it, if it is there
  if not c.tied or c.whole and w:has("lm_head.weight") then
    self.lm_head = w:linear("lm_head", c.hidden_size, c.vocab_size, c.head_bias)
  end
  self._layout, self._bounds, self._whole = c.layout, {}, c.whole
  for _, name in ipairs{"rope", "rope_full", "rope_window"} do
    for k, v in pairs(c[name] and rope.bounds(c[name]) or {}) do self._bounds[k] = v end
  end
end

-- layout is what each layer's cache is like; its fields switch and longest are those of rope.bounds, and most is how
-- many positions the model has, if they are counted.
function Decoder:layout()
  local out = {}
  for k, v in pairs(self._bounds) do out[k] = v end
  for i, kind in ipairs(self._layout) do
    out[i] = {}
    for k, v in pairs(kind) do out[i][k] = v end
  end
  return out
end

function Decoder:embed(tokens) return self.model.embed_tokens(tokens) end

-- through is what the layers make of the embedded tokens.
function Decoder:through(x, caches)
  for i, layer in ipairs(self.model.layers) do x = layer(x, caches, caches.layers[i]) end
  return x
end

-- forward gives the scores of the next token after each of tokens (batch, length).
function Decoder:forward(tokens, caches)
  caches:start(tokens, self)
  local x = self:through(self:embed(tokens), caches, tokens)
  caches:done()
  x = self.model.norm(x)
  if self.lm_head then return self.lm_head(x) end
  return self.model.embed_tokens:as_linear(x)
end

-- called gives a class of models names and saved_as for files in which what is called ours here is called otherwise:
-- list is {{ours, theirs, ...}, ...}, each a beginning of names. The first of theirs is written, the others are read,
-- too.
function Decoder.called(Model, list)
  local function swapped(name, from, to)
    if name == from or name:sub(1, #from + 1) == from .. "." then return to .. name:sub(#from + 1) end
  end
  local names = Model.names
  function Model.names(name, config)
    for _, row in ipairs(list) do
      for i = 2, #row do
        local ours = swapped(name, row[i], row[1])
        if ours then return names(ours, config) end
      end
    end
    return names(name, config)
  end
  function Model:saved_as(name)
    for _, row in ipairs(list) do
      local theirs = swapped(name, row[1], row[2])
      if theirs then return theirs end
    end
    return name
  end
end

-- saved_as is the name under which a weight is written, as mlx-lm knows it: below language_model in models for text and
-- pictures.
function Decoder:saved_as(name) return self._whole and "language_model." .. name or name end

-- nested moves the settings of a text alone to text_config of a model of that type, for programs that know it for text
-- and pictures only. It gives the settings of the text.
function Decoder.nested(settings, whole, model_type)
  if settings ~= whole then return settings end
  local text = {}
  for k, v in pairs(whole) do text[k] = v end
  for k in pairs(text) do whole[k] = nil end
  whole.model_type, whole.text_config = model_type, text
  return text
end

-- text_names is names for a model for text and pictures, of which this is the text: nil, too, for what belongs to
-- pictures or sound.
function Decoder.text_names(name, config)
  local top = name:gsub("^model%.", "")
  for _, other in ipairs{"vision_", "visual%.", "multi_modal_projector%.", "audio_", "embed_vision%.",
    "embed_audio%."} do
    if top:match("^" .. other) then return nil end
  end
  name = name:gsub("^model%.language_model%.", "model."):gsub("^language_model%.", "")
  return Decoder.names(name, config)
end

-- names gives a weight the name that the layers have, or nil if it is of no use.
function Decoder.names(name, config)
  if name:match("rotary_emb%.inv_freq$") or name:match("^mtp%.") or name:match("^model%.mtp") then return nil end
  local whole = config.family ~= config.model_type
  if name:match("^lm_head%.") and config:get("tie_word_embeddings") and not whole then return nil end
  return name
end

-- settings are what most models need of config.json. eps is the key of what norms add to a variance.
function Decoder.settings(config, eps)
  local c = {
    hidden_size = config:need("hidden_size", "size"), heads = config:need("num_attention_heads", "size"),
    layers = config:need("num_hidden_layers", "layers"), vocab_size = config:need("vocab_size", "size"),
    attention_bias = config:get("attention_bias", false), tied = config:get("tie_word_embeddings", false),
  }
  c.whole = config.family ~= config.model_type -- a model for text and pictures, of which this is the text
  c.eps = config:need(eps or "rms_norm_eps", "number")
  c.kv_heads = config:get("num_key_value_heads", c.heads, "size")
  c.head_dim = config:get("head_dim", c.hidden_size / c.heads, "size")
  return c
end

-- layout_of is the layout for layer types: attention in full, in a window or in chunks, or a recurrent state.
function Decoder.layout_of(types, window, chunk)
  local known = {full_attention = {kind = "kv"}, sliding_attention = {kind = "kv", window = window, windowed = true},
    linear_attention = {kind = "state"}, conv = {kind = "state"}, moe = {kind = "none"}, mlp = {kind = "none"},
    attention = {kind = "kv"}, mamba = {kind = "state"}, -- as older files say
    chunked_attention = chunk and {kind = "kv", window = chunk, chunk = chunk}}
  local out = {}
  for i, name in ipairs(types) do
    if not known[name] then error(("lm: config.json: layer_types has %s, which is not built"):format(name), 0) end
    out[i] = known[name]
  end
  return out
end

-- asked_windows is the layout of models with windows if use_sliding_window says so, in layers for which every(i, most)
-- is true: i is from 1, most is max_window_layers.
function Decoder.asked_windows(config, count, every)
  local asked, window = config:get("use_sliding_window", false), config:get("sliding_window", nil, "count")
  local most = config:get("max_window_layers", count, "count")
  local types = config:layer_types(count, function(i)
    return asked and window and every(i, most) and "sliding_attention" or "full_attention"
  end)
  return Decoder.layout_of(types, asked and window)
end

-- same_windows is the layout of models all of whose layers have a window, or none: layer_types may say the same, and
-- nothing else.
function Decoder.same_windows(config, count, window)
  local want = window and "sliding_attention" or "full_attention"
  local types = config:layer_types(count, function() return want end)
  for i, name in ipairs(types) do
    if name ~= want then
      error(("lm: config.json: layer_types[%d] = %s is not built for %s, whose layers are %s"):format(i - 1, name,
        config.model_type, want), 0)
    end
  end
  return Decoder.layout_of(types, window)
end

-- places are the positions of a call's tokens, (examples, 1, tokens, 1), from 0 on, in floats.
function Decoder.places(caches)
  local from, at = caches:position(), mx.expand_dims(mx.arange(caches.length), 1)
  if mx.type(from) == "array" and from.ndim == 1 then from = mx.expand_dims(from, {1, 2, 3}) end
  return mx.reshape(at, {1, 1, caches.length, 1}):astype(mx.float32) + from
end

-- attend is attention of projected queries, keys and values (batch, tokens, heads, size), turned by their positions:
-- turn is a RoPE, or nil. Layers that ask the keys and values of others have none.
function Decoder.attend(caches, cache, q, k, v, turn, options)
  local position = caches:position()
  local function turned(x)
    x = x:swapaxes(1, 2)
    if turn then x = turn(x, position, caches) end
    return x
  end
  return layers.joined(cache:attend(caches, turned(q), k and turned(k), v and v:swapaxes(1, 2), options))
end

return Decoder
