-- Modules: trees, freezing, modes, files, text, as the real mlx.nn has them.
local nn, utils = require("mx.nn"), require("mx.utils")

local function names(tree)
  local out = {}
  for _, p in ipairs(utils.tree_flatten(tree)) do out[#out + 1] = p[1] end
  table.sort(out)
  return table.concat(out, " ")
end

local Block = nn.class("Block")
function Block:init(dims)
  self.norm = nn.LayerNorm(dims)
  self.layers = {nn.Linear(dims, dims), nn.ReLU(), nn.Linear(dims, dims, false)}
  self.scales = {mx.ones({dims}), mx.zeros({dims})}
  self._cache = mx.ones({2})
  self.kernel = {3, 3}
  self.settings = {eps = 1e-5, name = "block"}
  self.dims = dims
end
function Block:forward(x)
  x = self.norm(x)
  for _, l in ipairs(self.layers) do x = l(x) end
  return x * self.scales[1] + self.scales[2]
end

mx.random.seed(1)
local m = Block(4)
local all = "layers.0.bias layers.0.weight layers.2.weight norm.bias norm.weight scales.0 scales.1"
assert(names(m:parameters()) == all, names(m:parameters()))
assert(names(m:trainable_parameters()) == all)
assert(m.state == m and m.training and Block.is_module(m) and not Block.is_module({}))
assert(tostring(Block) == "class Block" and tostring(nn.Linear) == "class Linear")
assert(tostring(m) == [[
Block(
  (norm): LayerNorm(4, eps=1e-05, affine=True)
  (layers.0): Linear(input_dims=4, output_dims=4, bias=True)
  (layers.1): ReLU()
  (layers.2): Linear(input_dims=4, output_dims=4, bias=False)
)]])

-- named_modules goes through the last child first, as MLX does
local order = {}
for _, p in ipairs(m:named_modules()) do order[#order + 1] = p[1] .. "=" .. p[2].__name end
assert(table.concat(order, " ") == "=Block layers.2=Linear layers.1=ReLU layers.0=Linear norm=LayerNorm")
assert(#m:modules() == 5)
local leaves = m:leaf_modules()
assert(leaves.norm == m.norm and leaves.layers[3] == m.layers[3])
assert(m:children().layers[1] == m.layers[1])
local squares = m:filter_and_map(nn.Module.valid_parameter_filter, function(x) return x.ndim end)
assert(squares.layers[1].weight == 2 and squares.norm.bias == 1)

-- update, strict or not
local w = mx.full({4, 4}, 2)
assert(m:update{layers = {{weight = w}}} == m and m.layers[1].weight == w)
fails('no parameter "nope"', m.update, m, {nope = w})
fails("want an array", m.update, m, {norm = {bias = {1}}})
fails("not element 4", m.update, m, {layers = {{}, {}, {}, {weight = w}}})
fails("want a table", m.update, m, {layers = w})
fails("want a table", m.update, m, 3)
m:update({nope = w, layers = {{}, {}, {weight = w}}}, {strict = false})
assert(m.nope == nil and m.layers[3].weight == w)
m:apply(function(x) return x * 0 end, function(module, key, v)
  return nn.Module.valid_parameter_filter(module, key, v) and key ~= "norm"
end)
same(m.scales[1], {0, 0, 0, 0})
same(m.norm.weight, {1, 1, 1, 1})
m:update_modules{layers = {{}, nn.GELU()}}
assert(m.layers[2].__name == "GELU")
fails('no module "nope"', m.update_modules, m, {nope = nn.GELU()})
fails("want a module", m.update_modules, m, {dims = {}, norm = 3})

-- freeze and unfreeze
assert(names(m:freeze():trainable_parameters()) == "")
m:unfreeze{keys = "bias"}
assert(names(m:trainable_parameters()) == "layers.0.bias norm.bias")
m:unfreeze()
m:freeze{keys = {"weight"}, recurse = true}
assert(names(m:trainable_parameters()) == "layers.0.bias norm.bias scales.0 scales.1")
m:unfreeze():freeze{recurse = false}
assert(names(m:trainable_parameters()) == "layers.0.bias layers.0.weight layers.2.weight norm.bias norm.weight")
m:unfreeze()
fails('no member "wieght"', m.freeze, m, {keys = "wieght", strict = true})
fails('unknown keyword "key"', m.freeze, m, {key = "weight"})
local bn = nn.BatchNorm(3)
assert(names(bn:trainable_parameters()) == "bias weight")
assert(names(bn:unfreeze():trainable_parameters()) == "bias weight")

-- modes
m:eval()
assert(not m.training and not m.layers[1].training)
assert(m:train().norm.training and not m:train(false).norm.training)
local x = mx.ones({2, 3})
local drop = nn.Dropout(0.5)
assert(drop:eval()(x) == x and drop:train()(x) ~= x)

-- dtypes: integers stay
local e = nn.Embedding(4, 2)
e.ids = mx.array({1, 2}, mx.int32)
e:set_dtype(mx.bfloat16)
dtype(e.weight, "bfloat16")
dtype(e.ids, "int32")
e:set_dtype(mx.float32, false)
dtype(e.ids, "float32")

-- files
for _, ending in ipairs{".npz", ".safetensors"} do
  local file = os.tmpname() .. ending
  local a, b = Block(4), Block(4)
  a:save_weights(file)
  assert(b:load_weights(file) == b)
  for i, p in ipairs(utils.tree_flatten(a:parameters())) do
    assert(mx.array_equal(p[2], utils.tree_flatten(b:parameters())[i][2]):item(), p[1])
  end
  os.remove(file)
end
fails("neither a .npz nor a .safetensors file", m.save_weights, m, "weights.bin")
local l = nn.Linear(2, 3)
fails("1 parameters are missing: bias", l.load_weights, l, {weight = mx.ones({3, 2})})
do -- a function among the layers has no parameters
  local net = nn.Sequential(nn.Linear(2, 3), function(x) return x * 2 end, nn.Linear(3, 1))
  local _, grads = nn.value_and_grad(net, function(x) return mx.sum(net(x)) end)(mx.ones({4, 2}))
  assert(mx.array_equal(grads.layers[3].bias, mx.array({4})):item())
  net:update(grads)
  assert(mx.array_equal(net.layers[3].bias, mx.array({4})):item() and type(net.layers[2]) == "function")
  local wide, small = nn.Sequential(nn.Linear(32, 32)), nn.Sequential(nn.Linear(32, 32))
  nn.quantize(small, 32)
  local quantized = mx.utils.tree_flatten(small:parameters())
  fails("not in the module: layers.0.biases, layers.0.scales; the weights are of a quantized model: call nn.quantize",
    wide.load_weights, wide, quantized)
end

fails("1 parameters are not in the module: extra", l.load_weights, l,
  {{"weight", mx.ones({3, 2})}, {"bias", mx.ones({3})}, {"extra", mx.ones({1})}})
fails("weight has the shape (2, 3), want (3, 2)", l.load_weights, l, {weight = mx.ones({2, 3}), bias = mx.ones({3})})
fails("bias is a number, want an array", l.load_weights, l, {weight = mx.ones({3, 2}), bias = 1})
l:load_weights({weight = mx.ones({3, 2}), extra = mx.ones({1})}, false)
same(l.weight[0], {1, 1})

-- classes below others, keywords, wrong arguments
local Scaled = nn.class("Scaled", nn.Linear)
function Scaled:init(dims, scale)
  nn.Linear.init(self, dims, {output_dims = dims, bias = false})
  self.scale = scale
end
function Scaled:forward(x) return nn.Linear.forward(self, x) * self.scale end
local s = Scaled(3, 2)
assert(tostring(s) == "Scaled(input_dims=3, output_dims=3, bias=False)")
same(s(mx.ones({1, 3})) - mx.matmul(mx.ones({1, 3}), s.weight.T) * 2, {{0, 0, 0}})
fails("output_dims is missing", nn.Linear, 3)
fails("unknown keyword \"biass\"", nn.Linear, 3, 4, {biass = false})
fails("p is 1, want a probability", nn.Dropout, 1)
fails("testdata/modules.lua:%d+: %[matmul%]", function()
  local y = nn.Linear(3, 4, false)(mx.ones({2, 5}))
  return y
end)

-- value_and_grad leaves the model its own parameters, also after an error; several results are a table
local before = l.weight
local loss, grads = nn.value_and_grad(l, function(x) return l(x):sum(), l(x) end)(mx.ones({1, 2}))
assert(l.weight == before and #loss == 2)
same(grads.weight, {{1, 1}, {1, 1}, {1, 1}})
fails("stop", nn.value_and_grad(l, function() error("stop") end), mx.ones({1}))
fails("model is a function, want a module; it comes before fn", nn.value_and_grad, function() end, l)
assert(l.weight == before)
l:freeze{keys = "bias"}
loss, grads = nn.value_and_grad(l, function(x) return l(x):sum() end)(mx.ones({1, 2}))
assert(grads.bias == nil)

-- the model may be an argument of f, as MLX's users write it; f is given the model itself
local norm = nn.BatchNorm(2)
loss, grads = nn.value_and_grad(norm, function(model, a)
  assert(model == norm)
  return (model(a) * mx.array({{1, 2}, {3, 4}})):sum()
end)(norm, mx.array({{1, 2}, {5, 1}}))
same(grads.bias, {4, 6})
same(norm.running_mean, {0.3, 0.15})

-- keywords of a call, by their names
local attention, a = nn.MultiHeadAttention(4, 2), mx.random.normal({1, 3, 4})
local causal = nn.MultiHeadAttention.create_additive_causal_mask(3)
assert(mx.array_equal(attention(a, a, {values = a, mask = causal}), attention(a, a, a, causal)):item())
local decoder = nn.TransformerDecoder(1, 4, 2)
assert(mx.array_equal(decoder(a, a, {x_mask = causal}), decoder(a, a, causal)):item())
fails('[nn.TransformerDecoder] unknown keyword "mask"; it takes x, memory, x_mask, memory_mask', decoder, a, a, {mask = causal})
fails("[nn.MultiHeadAttention] keys is given twice", attention, a, a, a, {keys = a})
fails('[nn.Module.update] unknown keyword "strickt"; it takes strict', l.update, l, {}, {strickt = false})
fails("[nn.RNN] nonlinearity is a string, want a function", nn.RNN, 2, 3, {nonlinearity = "tanh"})
same(nn.log_softmax(mx.full({1, 2}, 1e8)), {{-0.6931472, -0.6931472}})

-- a compiled function sees new parameters, and is traced again for the other mode
local net = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5))
local f = mx.compile(function(x) return net(x) end)
net:eval()
same(f(mx.ones({1, 3})) - net(mx.ones({1, 3})), {{0, 0, 0}})
net:apply(function(p) return p * 2 end)
same(f(mx.ones({1, 3})) - net(mx.ones({1, 3})), {{0, 0, 0}})
net:train()
assert(f(mx.ones({64, 3})):tolist()[1][1] ~= nil and mx.any(mx.equal(f(mx.ones({64, 3})), 0)):item())

-- quantize
local q = nn.Sequential(nn.Linear(64, 32), nn.Linear(32, 16))
fails("a ReLU cannot be quantized", nn.quantize, nn.Sequential(nn.ReLU()), {class_predicate = function() return true end})
nn.quantize(q, {class_predicate = function(name, layer)
  return name == "layers.0" and {group_size = 32, bits = 8}
end})
assert(tostring(q) == [[
Sequential(
  (layers.0): QuantizedLinear(input_dims=64, output_dims=32, bias=True, group_size=32, bits=8, mode=affine)
  (layers.1): Linear(input_dims=32, output_dims=16, bias=True)
)]])
assert(names(q:trainable_parameters()) == "layers.0.bias layers.1.bias layers.1.weight")
local tied = nn.Embedding(8, 64)
local quantized = tied:to_quantized{group_size = 32, bits = 8}
assert(mx.allclose(quantized:as_linear(mx.ones({1, 64})), tied:as_linear(mx.ones({1, 64})), 0, 0.1):item())

-- sharded layers of one process are what they are made of
local whole = nn.Linear(64, 32)
local some = mx.random.normal({2, 64})
for _, name in ipairs{"AllToShardedLinear", "ShardedToAllLinear"} do
  assert(mx.allclose(nn[name].from_linear(whole, {segments = {0.5}})(some), whole(some)):item())
  local part = nn["Quantized" .. name].from_quantized_linear(whole:to_quantized())
  assert(mx.allclose(part(some), whole:to_quantized()(some)):item())
  assert(names(part:unfreeze():trainable_parameters()) == "")
end
local tree = {w = some}
assert(nn.average_gradients(tree) == tree)

-- QQLinear quantizes its weight when it leaves training mode, and its product in both (MLX has it on GPUs only)
for mode, group in pairs{nvfp4 = 16, mxfp8 = 32} do
  local qq = nn.Linear(64, 32, false):to_quantized{mode = mode, quantize_input = true}
  local w, product = qq.weight, qq(some)
  assert(qq.scales == nil and tostring(qq):match("%(input_dims=64, output_dims=32, group_size=" .. group .. ","))
  qq:eval()
  assert(qq.weight.dtype == mx.uint32 and tostring(qq):match("%(input_dims=64, output_dims=32,"))
  assert(mx.allclose(qq(some), product, 1e-4, 1e-5):item())
  local back = mx.dequantize(mx.quantize(w, {mode = mode}), {scales = qq.scales, mode = mode})
  assert(mx.array_equal(qq:train().weight, back):item() and qq.scales == nil)
end
fails("a layer with a bias cannot be one", whole.to_quantized, whole, {mode = "mxfp8", quantize_input = true})
fails("modes nvfp4 and mxfp8 only", whole.to_quantized, whole, {quantize_input = true})

-- a dot in the place of a colon, and a class without forward
for _, name in ipairs{"parameters", "trainable_parameters", "freeze", "unfreeze", "train", "eval", "modules"} do
  fails("testdata/modules.lua:.*Module." .. name .. "%] the first argument is missing, want an object of class Module: .* a colon, module:" .. name .. "%(%)",
    function() l[name]() end)
end
fails("[nn.Module.load_weights] the first argument is the string \"absent.npz\", want an object of class Module",
  l.load_weights, "absent.npz")
fails("[nn.Module.apply] the first argument is a function, want", l.apply, function(p) return p end)
fails("[nn.Module] Still has no method forward", nn.class("Still")(), mx.ones({1}))
