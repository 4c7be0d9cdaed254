-- Attention and transformers.
local mx, _, fail, use, core = ...

local class = use("class")
local layer = class.layer
use("linear")
use("normalization")
use("dropout")
use("activations")
use("functions")
local nn = use("mx.nn")

local function heads(x, n) return mx.unflatten(x, -1, {n, -1}):transpose({0, 2, 1, 3}) end

-- size is a size that may be left out: 0 stands for that too, as in MLX.
local function size(n, default) return n and n > 0 and n or default end

local MultiHeadAttention = layer{
  name = "MultiHeadAttention",
  sig = "dims:int num_heads:int query_input_dims:int? key_input_dims:int? value_input_dims:int? value_dims:int? " ..
    "value_output_dims:int? bias:bool=false",
  empty = "query_input_dims key_input_dims value_input_dims value_dims value_output_dims",
  help = "Attention of num_heads heads: attention(queries, keys, values, mask) of arrays (N, L, dims), (N, S, " ..
    "dims) and " ..
    "(N, S, dims), each through a Linear (query_proj, key_proj, value_proj), then through out_proj. mask is " ..
    "added to " ..
    "the scores, or a boolean array that says what is attended to, or \"causal\". queries, keys and values may have " ..
    "sizes of their own (..._input_dims; values those of keys), their Linear value_dims and the result " ..
    "value_output_dims outputs: dims where they are left out. With bias the Linears have one.",
  init = function(self, dims, num_heads, query_input_dims, key_input_dims, value_input_dims, value_dims,
                  value_output_dims, bias)
    if dims % num_heads ~= 0 then
      fail("MultiHeadAttention", ("dims is %d, which is no multiple of num_heads, %d"):format(dims, num_heads))
    end
    key_input_dims, value_dims = size(key_input_dims, dims), size(value_dims, dims)
    self.num_heads = num_heads
    self.query_proj = nn.Linear(size(query_input_dims, dims), dims, bias)
    self.key_proj = nn.Linear(key_input_dims, dims, bias)
    self.value_proj = nn.Linear(size(value_input_dims, key_input_dims), value_dims, bias)
    self.out_proj = nn.Linear(value_dims, size(value_output_dims, dims), bias)
  end,
  takes = "queries keys values mask",
  forward = function(self, queries, keys, values, mask)
    local n = self.num_heads
    queries, keys, values = heads(self.query_proj(queries), n), heads(self.key_proj(keys), n),
      heads(self.value_proj(values), n)
    local out = mx.fast.scaled_dot_product_attention(queries, keys, values, math.sqrt(1 / queries:dim(-1)), mask)
    return self.out_proj(out:transpose({0, 2, 1, 3}):flatten(-2, -1))
  end,
}

-- create_additive_causal_mask is a mask (N, N) that is the lowest number of the dtype where a place would see a
-- later one.
function MultiHeadAttention.create_additive_causal_mask(N, dtype)
  dtype = class.option("MultiHeadAttention.create_additive_causal_mask", dtype, "dtype") or mx.float32
  local places = mx.arange(N)
  return mx.less(mx.expand_dims(places, 1), mx.expand_dims(places, 0)):astype(dtype) * mx.finfo(dtype).min
end

-- mlp is what follows attention in a layer.
local function mlp(self, x, dropout)
  local activation = self.activation
  if not core.callable(activation) then
    fail(self.__name, ("activation is a %s, want a function"):format(mx.type(activation)))
  end
  return self.linear2(dropout(activation(self.linear1(x))))
end

local settings = " mlp_dims:int? dropout:number=0.0 activation:any? norm_first:bool=true"

layer{
  name = "TransformerEncoderLayer", sig = "dims:int num_heads:int" .. settings, empty = "mlp_dims",
  help = "Self-attention and two Linears with the activation (mx.nn.relu) between, mlp_dims (4 * dims) wide, each " ..
    "added to what it was given and normalized (LayerNorm) before, or with norm_first = false after: layer(x, " ..
    "mask). dims is the size of x's last dimension, num_heads that of MultiHeadAttention; a Dropout of dropout " ..
    "comes behind attention and behind the activation.",
  init = function(self, dims, num_heads, mlp_dims, dropout, activation, norm_first)
    mlp_dims = size(mlp_dims, 4 * dims)
    self.attention = nn.MultiHeadAttention(dims, num_heads)
    self.ln1 = nn.LayerNorm(dims)
    self.ln2 = nn.LayerNorm(dims)
    self.linear1 = nn.Linear(dims, mlp_dims)
    self.linear2 = nn.Linear(mlp_dims, dims)
    self.dropout1 = nn.Dropout(dropout)
    self.dropout2 = nn.Dropout(dropout)
    self.activation, self.norm_first = activation or nn.relu, norm_first
  end,
  takes = "x mask",
  forward = function(self, x, mask)
    if self.norm_first then
      local y = self.ln1(x)
      x = x + self.dropout1(self.attention(y, y, y, mask))
      return x + mlp(self, self.ln2(x), self.dropout2)
    end
    x = self.ln1(x + self.dropout1(self.attention(x, x, x, mask)))
    return self.ln2(x + mlp(self, x, self.dropout2))
  end,
}

layer{
  name = "TransformerDecoderLayer", sig = "dims:int num_heads:int" .. settings, empty = "mlp_dims",
  help = "A TransformerEncoderLayer with attention to an encoder's output in between: layer(x, memory, x_mask, " ..
    "memory_mask).",
  init = function(self, dims, num_heads, mlp_dims, dropout, activation, norm_first)
    mlp_dims = size(mlp_dims, 4 * dims)
    self.self_attention = nn.MultiHeadAttention(dims, num_heads)
    self.cross_attention = nn.MultiHeadAttention(dims, num_heads)
    self.ln1 = nn.LayerNorm(dims)
    self.ln2 = nn.LayerNorm(dims)
    self.ln3 = nn.LayerNorm(dims)
    self.linear1 = nn.Linear(dims, mlp_dims)
    self.linear2 = nn.Linear(mlp_dims, dims)
    self.dropout1 = nn.Dropout(dropout)
    self.dropout2 = nn.Dropout(dropout)
    self.dropout3 = nn.Dropout(dropout)
    self.activation, self.norm_first = activation or nn.relu, norm_first
  end,
  takes = "x memory x_mask memory_mask",
  forward = function(self, x, memory, x_mask, memory_mask)
    if self.norm_first then
      local y = self.ln1(x)
      x = x + self.dropout1(self.self_attention(y, y, y, x_mask))
      x = x + self.dropout2(self.cross_attention(self.ln2(x), memory, memory, memory_mask))
      return x + mlp(self, self.ln3(x), self.dropout3)
    end
    x = self.ln1(x + self.dropout1(self.self_attention(x, x, x, x_mask)))
    x = self.ln2(x + self.dropout2(self.cross_attention(x, memory, memory, memory_mask)))
    return self.ln3(x + mlp(self, x, self.dropout3))
  end,
}

-- stack makes a class of layers one after the other, and a LayerNorm at the end.
local function stack(name, of, takes, help)
  layer{
    name = name, sig = "num_layers:int dims:int num_heads:int" .. settings .. " checkpoint:bool=false", help = help,
    empty = "mlp_dims",
    init = function(self, num_layers, dims, num_heads, mlp_dims, dropout, activation, norm_first, checkpoint)
      self.layers = {}
      for i = 1, num_layers do
        self.layers[i] = nn[of](dims, num_heads, mlp_dims, dropout, activation, norm_first)
      end
      self.ln = nn.LayerNorm(dims)
      self.checkpoint = checkpoint
    end,
    takes = takes,
    forward = function(self, x, ...)
      for _, m in ipairs(self.layers) do
        if self.checkpoint then m = nn.checkpoint(m) end
        x = m(x, ...)
      end
      return self.ln(x)
    end,
  }
end

stack("TransformerEncoder", "TransformerEncoderLayer", "x mask",
  "num_layers TransformerEncoderLayers and a LayerNorm: encoder(x, mask). With checkpoint the layers' " ..
  "intermediate " ..
  "values are computed again for the gradient.")
stack("TransformerDecoder", "TransformerDecoderLayer", "x memory x_mask memory_mask",
  "num_layers TransformerDecoderLayers and a LayerNorm: decoder(x, memory, x_mask, memory_mask). With " ..
  "checkpoint the " ..
  "layers' intermediate values are computed again for the gradient.")

layer{
  name = "Transformer",
  sig = "dims:int=512 num_heads:int=8 num_encoder_layers:int=6 num_decoder_layers:int=6 mlp_dims:int? " ..
    "dropout:number=0.0 activation:any? custom_encoder:any? custom_decoder:any? norm_first:bool=true " ..
    "checkpoint:bool=false",
  empty = "mlp_dims",
  help = "A TransformerEncoder and a TransformerDecoder that attends to what it gives: model(src, tgt, src_mask, " ..
    "tgt_mask, memory_mask). They have num_encoder_layers and num_decoder_layers layers, unless custom_encoder and " ..
    "custom_decoder stand for them; the other arguments are theirs.",
  init = function(self, dims, num_heads, encoders, decoders, mlp_dims, dropout, activation, encoder, decoder,
                  norm_first, checkpoint)
    self.encoder = encoder or
      nn.TransformerEncoder(encoders, dims, num_heads, mlp_dims, dropout, activation, norm_first, checkpoint)
    self.decoder = decoder or
      nn.TransformerDecoder(decoders, dims, num_heads, mlp_dims, dropout, activation, norm_first, checkpoint)
  end,
  takes = "src tgt src_mask tgt_mask memory_mask",
  forward = function(self, src, tgt, src_mask, tgt_mask, memory_mask)
    return self.decoder(tgt, self.encoder(src, src_mask), tgt_mask, memory_mask)
  end,
}
