-- MLX's test_nn.py, TestBase: modules.
local t = {}

local function is_module(v) return nn.Module.is_module(v) end

function t.test_module_utilities()
  local m = nn.Sequential(nn.Sequential(nn.Linear(2, 10), nn.relu), nn.Sequential(nn.Linear(10, 10), nn.ReLU()),
    nn.Linear(10, 1), mx.sigmoid)
  local children = m:children()
  assert(next(children) == "layers" and next(children, "layers") == nil)
  -- A function is no child. MLX has an empty dict in its place, as has this where a child follows.
  assert(#children.layers == 4 and next(children.layers[4]) == nil)
  assert(#utils.tree_flatten(children, {is_leaf = is_module}) == 3)

  local names, found = {}, utils.tree_flatten(m:leaf_modules(), {is_leaf = is_module})
  for i, leaf in ipairs(found) do names[i] = leaf[1] end
  assert(table.concat(names, " ") == "layers.0.layers.0 layers.1.layers.0 layers.1.layers.1 layers.2")
  local l = m.layers
  for i, want in ipairs({l[1].layers[1], l[2].layers[1], l[2].layers[2], l[3]}) do assert(found[i][2] == want) end

  for _, mode in ipairs({"eval", "train"}) do
    m[mode](m)
    local n = 0
    m:apply_to_modules(function(_, module)
      assert(module.training == (mode == "train"))
      n = n + 1
    end)
    assert(n == 7)
  end
end

function t.test_module_attributes()
  local Model = nn.class("Model")
  function Model:init() self:initialize() end
  function Model:initialize() self.val = mx.array(1) end
  local model = Model()
  equal(model.val, 1)
  model.val = nil
  assert(model.val == nil)
  model.val = mx.array({3})
  assert(model.val:item() == 3)
end

function t.test_model_with_dict()
  local Model = nn.class("Model")
  function Model:init() self.weights = {w1 = mx.zeros({2, 2}), w2 = mx.ones({2, 2})} end
  local p = utils.tree_flatten(Model():parameters(), {destination = {}})
  equal(p["weights.w1"], mx.zeros({2, 2}))
  equal(p["weights.w2"], mx.ones({2, 2}))
  assert(paths(Model():parameters()) == "weights.w1 weights.w2")
end

local function saved(ending, ...)
  local file = os.tmpname() .. ending
  local m = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2), ...)
  m:save_weights(file)
  local other = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2), ...)
  other:load_weights(file)
  mx.eval(other.state)
  os.remove(file)
  each_leaf(equal, m:parameters(), other:parameters())
end

function t.test_save_npz_weights() saved(".npz") end

function t.test_save_safetensors_weights() saved(".safetensors", nn.ReLU()) end

function t.test_load_from_weights()
  local m, w = nn.Linear(2, 2), mx.ones({2, 2})
  fails("missing: bias", m.load_weights, m, {{"weight", w}})
  m:load_weights({{"weight", w}}, {strict = false})
  equal(m.weight, w)
  fails("not in the module: weihgt", m.load_weights, m, {{"weihgt", w}})
  m:load_weights({{"weihgt", w}}, {strict = false})
  assert(m.weihgt == nil)
  fails("not in the module: bias2", m.load_weights, m, {{"weight", w}, {"bias", mx.ones({2})}, {"bias2", mx.ones({2})}})
  fails("bias has the shape (2, 1), want (2)", m.load_weights, m, {{"weight", w}, {"bias", mx.ones({2, 1})}})
  fails("bias is a number", m.load_weights, m, {{"weight", w}, {"bias", 3}})
  m:load_weights({}, {strict = false})
  m = nn.Sequential(nn.Linear(2, 2))
  m:load_weights({{"layers.0.weight", w}, {"layers.0.bias", mx.ones({2})}, {"layers.1.weight", w},
    {"layers.1.bias", mx.ones({2})}}, {strict = false})
  equal(m.layers[1].weight, w)
  assert(#m.layers == 1)
end

function t.test_module_state()
  local m = nn.Linear(10, 1)
  m.state.hello = "world"
  assert(m.state.hello == "world" and m.hello == "world")
end

function t.test_freeze_strict_keys()
  local m = nn.Sequential(nn.Linear(2, 2, {bias = false}), nn.Linear(2, 2))
  m:freeze{keys = "bias", strict = true}
  assert(paths(m:trainable_parameters()) == "layers.0.weight layers.1.weight")
  m:unfreeze{keys = "bias", strict = true}
  assert(paths(m:trainable_parameters()) == "layers.0.weight layers.1.bias layers.1.weight")
  fails("not_a_member", m.freeze, m, {keys = "not_a_member", strict = true})
end

function t.test_chaining()
  local m = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 1))
  local before = paths(m:parameters())
  m:freeze():unfreeze()
  assert(paths(m:parameters()) == before)
  assert(m:update(m:parameters()):eval().training == false)
  assert(m:train().training)
end

local function quantizable(bias) return nn.Sequential(nn.Embedding(5, 256), nn.ReLU(), nn.Linear(256, 256, bias)) end

local function classes(m, ...)
  for i, class in ipairs({...}) do of_class(m.layers[i], class) end
end

function t.test_quantize()
  local m = quantizable()
  nn.quantize(m)
  classes(m, nn.QuantizedEmbedding, nn.ReLU, nn.QuantizedLinear)
  local function linear(_, l) return getmetatable(l) == nn.Linear end
  m = quantizable()
  nn.quantize(m, {class_predicate = linear})
  classes(m, nn.Embedding, nn.ReLU, nn.QuantizedLinear)
  nn.quantize(m, {group_size = 32, mode = "mxfp4"})
  classes(m, nn.QuantizedEmbedding, nn.ReLU, nn.QuantizedLinear)
  assert(mx.type(m.layers[3].scales) == "array")
  m = quantizable(false)
  nn.quantize(m, {group_size = 32, mode = "mxfp8", quantize_input = true, class_predicate = linear})
  classes(m, nn.Embedding, nn.ReLU, nn.QQLinear)
  fails("inputs cannot be quantized", nn.quantize, quantizable(false),
    {group_size = 32, mode = "mxfp8", quantize_input = true})
end

function t.test_quantize_freeze()
  local q = nn.Linear(512, 512):to_quantized()
  assert(paths(q:trainable_parameters()) == "bias")
  q:unfreeze{keys = {"scales"}}
  assert(paths(q:trainable_parameters()) == "bias scales")
end

function t.test_quantized_sharded_linear_construction()
  for _, bits in ipairs({2, 3, 4, 5, 6, 8}) do
    local q = nn.Linear(1536, 1024):to_quantized{bits = bits}
    for _, name in ipairs({"QuantizedAllToShardedLinear", "QuantizedShardedToAllLinear"}) do
      local sharded = nn[name].from_quantized_linear(q)
      shape(sharded.weight, unpack(q.weight.shape))
    end
  end
end

function t.test_grad_of_module()
  local Model = nn.class("Model")
  function Model:init() self.m1 = nn.Linear(3, 3) end
  local model, x = Model(), mx.zeros({3})
  local g = mx.grad(function(m) return m.m1(x):sum() end)(model)
  equal(g.m1.bias, {1, 1, 1})
  equal(g.m1.weight, mx.zeros({3, 3}))
end

function t.test_update()
  local m = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
  fails('no parameter "value"', m.update, m, {layers = {{value = 0}}})
  fails("want a table", m.update, m, {layers = {"hello"}})
  fails("weight is a string, want an array", m.update, m, {layers = {{weight = "hi"}}})
end

function t.test_update_modules()
  local m = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
  fails('no module "values"', m.update_modules, m, {values = {nn.ReLU(), nn.ReLU()}})
  fails('no module "values"', m.update_modules, m, {values = {0, 1}})
  fails("want a module", m.update_modules, m, {layers = {0, 1}})
  local Mine = nn.class("Mine")
  function Mine:init() self.test, self.list = mx.array(1), {mx.array(1), mx.array(2)} end
  local mine = Mine()
  fails("want a module", mine.update_modules, mine, {test = "hi"})
  fails("want a module", mine.update_modules, mine, {list = {"hi"}})
  m:update_modules{layers = {{}, nn.Linear(3, 4)}}
  shape(m.layers[2].weight, 4, 3)
  local Model = nn.class("Model")
  function Model:init()
    self.stuff = {nn.Linear(2, 2), 0, nn.Linear(2, 2)}
    self.more_stuff = {hi = nn.Linear(2, 2), bye = 0}
  end
  local model = Model()
  local first = model.stuff[1]
  model:update_modules(model:leaf_modules())
  assert(model.stuff[1] == first and model.more_stuff.bye == 0)
  m = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
  fails("not element 3", m.update_modules, m, {layers = {{}, {}, nn.Linear(3, 4)}})
  m:update_modules({layers = {{}, nn.Linear(3, 4), nn.Linear(5, 5)}}, {strict = false})
  assert(#m.layers == 2)
  shape(m.layers[2].weight, 4, 3)
end

function t.test_parameter_deletion()
  local m = nn.Linear(32, 32)
  m.weight = nil
  assert(m.weight == nil and paths(m:parameters()) == "bias")
end

function t.test_circular_leaks()
  local y = mx.random.uniform(0, 1, {1})
  mx.eval(y)
  local function make_and_update()
    local model = nn.Linear(1024, 512)
    mx.eval(model:parameters())
    model:update_modules({})
  end
  mx.synchronize()
  collectgarbage()
  local before = mx.get_active_memory()
  make_and_update()
  mx.synchronize()
  collectgarbage()
  -- Small arrays of one evaluation go back together, and the state's random key is one of them.
  assert(mx.get_active_memory() - before <= 4096)
end

return t
