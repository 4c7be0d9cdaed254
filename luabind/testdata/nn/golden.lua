-- Compares mx.nn with a case of golden.json: see golden.py.
local nn = require("mx.nn")

local function formula(n, seed) return (mx.arange(n) * 37 + seed * 11) % 101 / 50 - 1 end

local function count(shape)
  local n = 1
  for _, s in ipairs(shape) do n = n * s end
  return n
end

local function array(spec)
  local n = count(spec.shape)
  if spec.below then return ((mx.arange(n) * 7 + spec.seed) % spec.below):astype(mx.int32):reshape(spec.shape) end
  return formula(n, spec.seed):reshape(spec.shape) * spec.scale + spec.shift
end

local value

local function keywords(t)
  local out = {}
  for k, v in pairs(t) do out[k] = value(v) end
  return out
end

local function list(t)
  local out = {n = t.n}
  for i = 1, t.n do out[i] = value(t[i]) end
  return out
end

local function made(f, args, kw)
  local all = list(args)
  if next(kw) ~= nil then
    all.n = all.n + 1
    all[all.n] = keywords(kw)
  end
  return f(unpack(all, 1, all.n))
end

function value(v)
  if v == "null" then return nil end
  if type(v) ~= "table" then return v end
  if v.shape then return array(v) end
  if v.layer then
    local m = made(nn[v.layer], v.args, v.kw)
    if v.quantize then nn.quantize(m, keywords(v.quantize)) end
    return m
  end
  if v["function"] then return nn[v["function"]] end
  local out = list(v)
  out.n = nil
  return out
end

-- near is how far numbers may be apart, relative to the array's sum of absolute values.
local near = 2e-5

local function compare(what, x, want)
  local shape, kind, sum, size, first = unpack(want)
  assert(table.concat(x.shape, ",") == table.concat(shape, ","),
    what .. " has the shape " .. tostring(x.shape))
  assert(tostring(x.dtype) == kind, what .. " is " .. tostring(x.dtype) .. ", want " .. kind)
  local all, got, abs = x:astype(mx.float32):flatten():tolist(), 0, 0
  for i, v in ipairs(all) do
    got, abs = got + v * ((i - 1) * 29 % 17 - 8) / 8, abs + math.abs(v)
  end
  local most = near * math.max(size, 1)
  local function check(a, b, part)
    if a == b then return end -- infinities
    if not (math.abs(a - b) <= most) then
      error(("%s: %s is %.8g, want %.8g"):format(what, part, a, b), 0)
    end
  end
  check(abs, size, "the sum of absolute values")
  check(got, sum, "the weighted sum")
  for i = 1, first.n do check(all[i], first[i], "element " .. i) end
end

local function compare_all(what, named, want)
  local names, n = {}, 0
  for _, p in ipairs(named) do names[p[1]] = p[2] end
  for name, w in pairs(want) do
    assert(names[name], what .. " has no " .. name)
    compare(what .. " " .. name, names[name], w)
    n = n + 1
  end
  assert(n == #named, what .. " has more than it should")
end

-- named is a tree's arrays by their names in MLX's files.
local function named(tree) return mx.utils.tree_flatten(tree) end

local function is_float(x) return mx.type(x) == "array" and mx.issubdtype(x.dtype, mx.floating) end

local function loss_of(...)
  local total = mx.array(0)
  for _, y in ipairs{...} do
    if is_float(y) then total = total + (y * formula(y.size, 5):reshape(y.shape)):sum() end
  end
  return total
end

local function run(what, model, xs, want)
  mx.random.seed(11)
  local outs = {model(unpack(xs, 1, xs.n))}
  assert(#outs == want.out.n)
  for i, y in ipairs(outs) do compare(what .. " result " .. i, y, want.out[i]) end
  if want.parameters then
    mx.random.seed(11)
    local _, grads = nn.value_and_grad(model, function(...) return loss_of(model(...)) end)(unpack(xs, 1, xs.n))
    compare_all(what .. " gradients", named(grads), want.parameters)
  end
  if want.inputs then
    local floats = {}
    for i = 1, xs.n do
      if is_float(xs[i]) then floats[#floats + 1] = i - 1 end
    end
    mx.random.seed(11)
    local grads = mx.grad(function(...) return loss_of(model(...)) end, floats)(unpack(xs, 1, xs.n))
    for i, g in ipairs(grads) do compare(what .. " gradient of input " .. i, g, want.inputs[i]) end
  end
end

-- running adds the keywords of a call to its arguments.
local function with(xs, kw)
  if next(kw) ~= nil then
    xs.n = xs.n + 1
    xs[xs.n] = keywords(kw)
  end
  return xs
end

local function layer(case)
  mx.random.seed(7)
  local model = value(case.layer)
  local quantized = case.layer.quantize
  near = quantized and quantized.mode ~= "affine" and 4e-3 or 2e-5 -- the embedding gives bfloat16, and so do products
  compare_all("parameters", named(model:parameters()), case.parameters)
  if case.text then assert(tostring(model) == case.text, "prints as " .. tostring(model) .. ", want " .. case.text) end
  local xs = with(list(case.inputs), case.kw)
  run("train", model, xs, case.train)
  compare_all("parameters afterwards", named(model:parameters()), case.after or case.parameters)
  model:eval()
  run("eval", model, xs, case.eval or case.train)
end

local function loss(case)
  local xs, f = with(list(case.inputs), case.kw), nn.losses[case.loss]
  compare("the loss", f(unpack(xs, 1, xs.n)), case.out[1])
  local grad = mx.grad(function(...) return loss_of(f(...)) end)(unpack(xs, 1, xs.n))
  compare("the gradient", grad, case.grad)
end

local function init(case)
  mx.random.seed(7)
  local f = made(nn.init[case.init], case.args, case.kw)
  compare("the array", f(mx.zeros(case.shape), unpack(case.call)), case.out[1])
end

function check(case)
  if case.layer then layer(case) elseif case.loss then loss(case) else init(case) end
end
