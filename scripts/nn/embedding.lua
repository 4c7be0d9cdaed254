-- Tables of vectors.
local mx, _, fail, use = ...

local layer, described = use("class").layer, use("text").described
local quantized = use("quantized")

local Embedding = layer{
  name = "Embedding", sig = "num_embeddings:int dims:int", empty = "num_embeddings",
  help = "The rows of its parameter weight, (num_embeddings, dims), at the integers of an array; normally " ..
    "distributed " ..
    "at the beginning, with the standard deviation 1 / sqrt(dims). e:as_linear(x) multiplies by the transposed " ..
    "weight.",
  init = function(self, num_embeddings, dims)
    self.weight = mx.random.normal({num_embeddings, dims}, {scale = math.sqrt(1 / dims)})
  end,
  forward = function(self, x) return self.weight[x] end,
  repr = function(self) return described(self, "rows dims", {rows = self.weight:dim(0), dims = self.weight:dim(1)}) end,
}

-- as_linear is x times the transposed weight: the scores of all embeddings.
function Embedding:as_linear(x) return mx.matmul(x, self.weight.T) end

-- to_quantized is a QuantizedEmbedding.
function Embedding:to_quantized(keywords)
  keywords = keywords or {}
  local mode = keywords.mode or "affine"
  if keywords.quantize_input then fail("Embedding.to_quantized", "inputs cannot be quantized") end
  return quantized.QuantizedEmbedding.from_embedding(self, keywords.group_size, keywords.bits, mode)
end
