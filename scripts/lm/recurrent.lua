-- What recurrent layers have in common: a short convolution before them, and the block of Mamba 2. Paper: Dao, Gu:
-- Transformers are SSMs, 2024.
local mx, nn = require("mx"), require("mx.nn")
local delta = require("lm.delta")

local recurrent = {}

-- Conv is the causal convolution of each feature by itself over the last `width` tokens.
local Conv = nn.class("Conv1d")

function Conv:init(w, features, width, bias)
  self.weight, self.width = w:array("weight", {features, width, 1}), width
  if bias then self.bias = w:array("bias", {features}) end
end

-- forward takes x (batch, tokens, features) and what it gave as its second result for the tokens before, or nil; real
-- says which tokens are not padding.
function Conv:forward(x, before, real)
  if real then x = mx.where(mx.expand_dims(real, -1), x, mx.array(0, x.dtype)) end
  x = mx.concatenate({before or mx.zeros(mx.dims({x, 0}, self.width - 1, {x, 2}), x.dtype), x}, 1)
  local w, sum = self.weight:squeeze(-1), nil
  for i = 0, self.width - 1 do
    local back = self.width - 1 - i
    local part = x:index(":", ("%d:%s"):format(i, back > 0 and -back or "")) * w:index(":", i)
    sum = sum and sum + part or part
  end
  return self.bias and sum + self.bias or sum, x:index(":", ("-%d:"):format(self.width - 1))
end

-- turn brings convolutions of transformers' files, (features, 1, width), into the form of mlx-lm's: whether there are
-- any. pattern is how their names end.
function recurrent.turn(arrays, pattern)
  local foreign = false
  for name, x in pairs(arrays) do
    if name:match(pattern or "conv1d%.weight$") and x.ndim == 3 and x:dim(1) == 1 and x:dim(2) ~= 1 then
      foreign, arrays[name] = true, x:swapaxes(1, 2)
    end
  end
  return foreign
end

-- limits are the bounds of a time step, {low, high}, as config.json has them.
function recurrent.limits(config)
  local said, out = config:get("time_step_limit") or {0, math.huge}, {}
  for i = 1, 2 do
    local v = type(said) == "table" and said[i]
    if type(v) == "table" and v.__float__ == "Infinity" then v = math.huge end
    if type(v) ~= "number" then error("lm: config.json: time_step_limit is no list of two numbers", 0) end
    out[i] = v
  end
  return out
end

-- portable writes the bounds of a time step as numbers that programs of JSON know.
function recurrent.portable(settings, config)
  local host = require("lm.host")
  local limits = settings.time_step_limit ~= nil and recurrent.limits(config)
  if limits then settings.time_step_limit = host.list{limits[1], math.min(limits[2], 1e30)} end
end

-- Mamba is the block of Mamba 2. m has heads, size (of a head), groups, state (the elements of a key), width (of the
-- convolution), limits, bias and conv_bias, act, eps.
local Mamba = nn.class("Mamba2")

function Mamba:init(w, dims, m)
  self.heads, self.groups, self.inner, self.limits, self.act, self.eps = m.heads, m.groups, m.heads * m.size, m.limits,
    m.act or nn.silu, m.eps
  self.both = m.groups * m.state -- elements of the keys of all groups
  local mixed = self.inner + 2 * self.both
  self.in_proj = w:linear("in_proj", dims, self.inner + mixed + m.heads, m.bias)
  self.conv1d = Conv(w:at("conv1d"), mixed, m.width, m.conv_bias)
  for _, name in ipairs{"dt_bias", "A_log", "D"} do self[name] = w:array(name, {m.heads}) end
  self.norm = {weight = w:array("norm.weight", {self.inner})}
  self.out_proj = w:linear("out_proj", self.inner, dims, m.bias)
end

-- normed is a norm of each group, after the gate.
function Mamba:normed(y, gate)
  y = y:astype(mx.float32) * nn.silu(gate:astype(mx.float32))
  y = mx.fast.rms_norm(y:unflatten(-1, {self.groups, -1}), nil, self.eps):flatten(-2, -1)
  return (y * self.norm.weight):astype(gate.dtype)
end

function Mamba:forward(x, caches, cache)
  local gate, mixed, dt = unpack(mx.split(self.in_proj(x), {self.inner, 2 * self.inner + 2 * self.both}, -1))
  local real = caches:real()
  local convolved, seen = self.conv1d(mixed, cache:get(1), real)
  local v, k, q = unpack(mx.split(self.act(convolved), {self.inner, self.inner + self.both}, -1))
  v = v:unflatten(-1, {self.heads, -1})
  dt = nn.softplus(dt:astype(mx.float32) + self.dt_bias)
  if self.limits[1] > 0 or self.limits[2] < math.huge then dt = mx.clip(dt, self.limits[1], self.limits[2]) end
  local decay = mx.exp(-mx.exp(self.A_log:astype(mx.float32)) * dt)
  local y, state = delta.rule(q:unflatten(-1, {self.groups, -1}), k:unflatten(-1, {self.groups, -1}), v, decay, dt,
    cache:get(2), real, "sum")
  cache:set(seen, state)
  y = (y + v * mx.expand_dims(self.D, -1)):flatten(-2, -1)
  return self.out_proj(self:normed(y, gate))
end

recurrent.Conv, recurrent.Mamba = Conv, Mamba
return recurrent
