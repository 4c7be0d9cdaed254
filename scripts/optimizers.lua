-- mx.optimizers: optimizers and schedules, by their definitions in MLX. An optimizer is a table with a class; its state
-- is a tree of arrays beside the tree of parameters.
local mx, define, fail, use, core = ...
local utils = use("mx.utils")

-- Schedules: functions of the step, which is an array of integers in an optimizer's state, or a number.

-- float is a number as an array: beside integers it makes a float of them even if it is integral.
local function float(v) return mx.array(v, mx.float32) end

define{
  name = "exponential_decay", sig = "init:number decay_rate:number",
  help = "The schedule init * decay_rate ^ step.",
  call = function(init, decay_rate)
    return function(step)
      if type(step) == "number" then return init * decay_rate ^ step end
      return init * float(decay_rate) ^ step
    end
  end,
}

define{
  name = "step_decay", sig = "init:number decay_rate:number step_size:int",
  help = "The schedule that starts at init and is multiplied by decay_rate every step_size steps.",
  call = function(init, decay_rate, step_size)
    if step_size < 1 then fail("step_decay", ("step_size is %d, want at least 1"):format(step_size)) end
    return function(step)
      if type(step) == "number" then return init * decay_rate ^ math.floor(step / step_size) end
      return init * float(decay_rate) ^ mx.floor_divide(step, step_size)
    end
  end,
}

define{
  name = "cosine_decay", sig = "init:number decay_steps:int end:number=0",
  help = "The schedule that falls from init to end in decay_steps steps as half a wave of a cosine does, and stays " ..
    "there.",
  call = function(init, decay_steps, last)
    if decay_steps < 1 then fail("cosine_decay", ("decay_steps is %d, want at least 1"):format(decay_steps)) end
    return function(step)
      local s = mx.minimum(step, decay_steps)
      local decay = 0.5 * (1 + mx.cos(math.pi / decay_steps * s))
      return last + decay * (init - last)
    end
  end,
}

define{
  name = "linear_schedule", sig = "init:number end:number steps:int",
  help = "The schedule that goes from init to end in steps steps of one size, and stays there.",
  call = function(init, last, steps)
    if steps < 1 then fail("linear_schedule", ("steps is %d, want at least 1"):format(steps)) end
    return function(step)
      return mx.minimum(step, steps):astype(mx.float32) * ((last - init) / steps) + init
    end
  end,
}

define{
  name = "join_schedules", sig = "schedules:list boundaries:list",
  help = "The schedule that is the first one up to the first boundary, a step, then the next one, and so on. Each " ..
    "counts its steps from its boundary.",
  call = function(schedules, boundaries)
    if #schedules == 0 then fail("join_schedules", "schedules is empty, want at least 1") end
    if #schedules ~= #boundaries + 1 then
      fail("join_schedules", ("boundaries has %d steps, want %d for %d schedules"):format(#boundaries, #schedules - 1,
        #schedules))
    end
    return function(step)
      local value = schedules[1](step)
      for i, boundary in ipairs(boundaries) do
        value = mx.where(mx.less(step, boundary), value, schedules[i + 1](step - boundary))
      end
      return value
    end
  end,
}

define{
  name = "clip_grad_norm", sig = "grads:tree max_norm:number",
  help = "The gradients, scaled so that the root of the sum of all their squares is at most max_norm, and what it " ..
    "was.",
  call = function(grads, max_norm)
    if max_norm < 0 then fail("clip_grad_norm", ("max_norm is %g, want at least 0"):format(max_norm)) end
    local squares = utils.tree_reduce(function(sum, g)
      if g.dtype == mx.float16 then g = g:astype(mx.float32) end -- where the squares do not overflow
      return sum + g:square():sum()
    end, grads, float(0))
    local norm = mx.sqrt(squares)
    local scale = mx.minimum(max_norm / (norm + 1e-6), 1)
    return utils.tree_map(function(g)
      if mx.issubdtype(g.dtype, mx.floating) then return (g * scale):astype(g.dtype) end
      return g * scale
    end, grads), norm
  end,
}

-- class makes a class, below another one. state, step and learning_rate are no fields of an optimizer: its class, which
-- is its metatable, finds them by get_state and set_state.
local function class(name, parent)
  local c = setmetatable({class = name}, {__index = parent})
  function c.__index(self, k)
    local get = type(k) == "string" and c["get_" .. k]
    if get then return get(self) end
    return c[k]
  end
  function c.__newindex(self, k, v)
    local set = type(k) == "string" and c["set_" .. k]
    if set then set(self, v) else rawset(self, k, v) end
  end
  function c.__tostring() return "mx.optimizers." .. name end
  return c
end

-- setting is a hyperparameter's value as an array.
local function setting(self, name, value)
  if type(value) ~= "number" and mx.type(value) ~= "array" then
    fail(self.class, ("%s is a %s, want a number, an array or a schedule"):format(name, mx.type(value)))
  end
  return mx.array(value)
end

-- Optimizer is the class of all optimizers.
local Optimizer = class("Optimizer")

function Optimizer:get_state() return rawget(self, "_state") end

function Optimizer:set_state(state)
  if type(state) ~= "table" then fail(self.class, ("state is a %s, want a table"):format(mx.type(state))) end
  self._initialized = false
  rawset(self, "_state", state)
end

-- rule names what the state belongs to.
function Optimizer:get_rule() return self.class end

function Optimizer:get_step() return self._state.step end

function Optimizer:get_learning_rate() return self._state.learning_rate end

function Optimizer:set_learning_rate(rate) self._state.learning_rate = setting(self, "learning_rate", rate) end

function Optimizer:init_single()
  fail(self.class, "it has no init_single(parameter, state), which makes the state of a parameter")
end

function Optimizer:apply_single()
  fail(self.class, "it has no apply_single(gradient, parameter, state), which gives the new parameter")
end

-- beside makes a table in state for each parameter and for each table of parameters.
local function beside(parameters, state)
  for k, p in pairs(parameters) do
    if state[k] == nil then state[k] = {} end
    if type(p) == "table" then beside(p, state[k]) end
  end
end

-- bare reports whether a state has nothing for the first of the parameters: that of a step that failed may be gone.
local function bare(parameters, state)
  while type(parameters) == "table" do
    local k, p = next(parameters)
    if k == nil then return false end
    parameters, state = p, state[k]
    if state == nil then return true end
  end
  return false
end

local function same(a, b)
  for i = 1, math.max(#a, #b) do
    if a[i] ~= b[i] then return false end
  end
  return true
end

-- misfit is the name of an array in the state of a parameter, of a file for example, that has not the shape that it
-- would begin with, and both shapes; nil if there is none.
local function misfit(self, parameter, state)
  local fresh = {}
  self:init_single(parameter, fresh)
  for name, want in pairs(fresh) do
    local x = state[name]
    if mx.type(x) == "array" and mx.type(want) == "array" and not same(x.shape, want.shape) then
      return name, x.shape, want.shape
    end
  end
end

-- refuse fails for the first state in the tree that does not fit.
local function refuse(self, parameters)
  utils.tree_map_with_path(function(path, p, state)
    local name, has, want = misfit(self, p, state)
    if name then
      fail(self.class, ("the state has %s.%s of shape (%s), want (%s): it is that of another model"):format(path, name,
        table.concat(has, ", "), table.concat(want, ", ")))
    end
    return state
  end, parameters, self._state)
end

function Optimizer:init(parameters)
  if type(parameters) == "table" then
    beside(parameters, self._state)
    utils.tree_map(function(p, state)
      if next(state) == nil then
        self:init_single(p, state)
      elseif misfit(self, p, state) then
        refuse(self, parameters)
      end
      return state
    end, parameters, self._state)
  else -- a single array: its state stands beside the step
    local state = {}
    self:init_single(parameters, state)
    for k, v in pairs(state) do
      if self._state[k] == nil then self._state[k] = v end
    end
  end
  self._initialized = true
end

-- scheduled is what a schedule gives at the step of the state.
function Optimizer:scheduled(schedule)
  local value = schedule(self._state.step)
  if type(value) == "number" then return float(value) end
  return value
end

function Optimizer:apply_gradients(gradients, parameters)
  local state = self._state
  if state.step == nil then
    fail(self.class, "state has no step: it is no state of an optimizer; to begin anew make a new one")
  end
  if not self._initialized or bare(gradients, state) then self:init(gradients) end
  for name, schedule in pairs(self._schedulers) do state[name] = self:scheduled(schedule) end
  state.step = state.step + 1
  return utils.tree_map(function(g, p, s) return self:apply_single(g, p, s) end, gradients, parameters, state)
end

-- assign writes a tree into another one.
local function assign(into, tree)
  for k, v in pairs(tree) do
    if type(v) == "table" then assign(into[k], v) else into[k] = v end
  end
end

function Optimizer:update(model, gradients)
  core.guarded("Optimizer.update", function()
    local new = self:apply_gradients(gradients, model)
    if type(model.update) == "function" then model:update(new) else assign(model, new) end
  end, self, model)
end

-- setting enters a hyperparameter in the state: a number, an array, or a schedule of either.
function Optimizer:setting(name, value)
  if type(value) == "function" then
    self._schedulers[name] = value
    self._state[name] = self:scheduled(value)
  else
    self._state[name] = setting(self, name, value)
  end
end

-- new makes an instance that has the given fields.
local function new(c, fields, schedulers)
  fields._initialized = false
  fields._state = {step = mx.array(0, mx.uint64)}
  fields._schedulers = {}
  for k, v in pairs(schedulers or {}) do fields._schedulers[k] = v end
  return setmetatable(fields, c)
end

-- not_below raises an error for a hyperparameter out of its range.
local function not_below(op, name, value, least)
  if not (value >= least) then fail(op, ("%s is %g, want at least %g"):format(name, value, least)) end
end

local function above_zero(op, name, value)
  if not (value > 0) then fail(op, ("%s is %g, want more than 0"):format(name, value)) end
end

-- two are the coefficients of running averages.
local function two(op, betas, default)
  betas = betas or default
  if type(betas) ~= "table" then fail(op, ("betas is %s, want two numbers: {0.9, 0.99}"):format(tostring(betas))) end
  for i = 1, 2 do
    local b = betas[i]
    if type(b) ~= "number" or not (b >= 0 and b < 1) then
      fail(op, ("beta%d is %s, want at least 0 and below 1"):format(i, tostring(b)))
    end
  end
  return betas
end

-- rate is the learning rate in the gradient's dtype.
local function rate(self, gradient) return self._state.learning_rate:astype(gradient.dtype) end

-- zeros gives a class an init_single that enters zeros under the names.
local function zeros(c, ...)
  local names = {...}
  function c:init_single(parameter, state)
    for _, name in ipairs(names) do state[name] = mx.zeros_like(parameter) end
  end
end

define{
  name = "Optimizer", sig = "schedulers:table?",
  help = "An optimizer without a rule: give it the methods init_single(parameter, state), which enters arrays in " ..
    "an empty table, and apply_single(gradient, parameter, state), which gives the new parameter. schedulers has a " ..
    "schedule for each name in the state. Of every optimizer: opt:update(model, gradients) changes a module or a " ..
    "tree of parameters, opt:apply_gradients(gradients, parameters) gives the new ones, opt:init(parameters) makes " ..
    "the state, which the first step does otherwise; opt.state is a tree of arrays, to save and to set; opt.step " ..
    "and opt.learning_rate are in it.",
  call = function(schedulers) return new(Optimizer, {}, schedulers) end,
}

local SGD = class("SGD", Optimizer)
zeros(SGD, "v")

function SGD:apply_single(g, p, state)
  if self.weight_decay ~= 0 then g = g + self.weight_decay * p end
  if self.momentum <= 0 then return p - rate(self, g) * g end
  local v = self.momentum * state.v
  if self.dampening > 0 then v = v + (1 - self.dampening) * g else v = v + g end
  state.v = v
  if self.nesterov then v = g + self.momentum * v end
  return p - rate(self, g) * v
end

define{
  name = "SGD",
  sig = "learning_rate:value momentum:number=0 weight_decay:number=0 dampening:number=0 nesterov:bool=false",
  help = "Stochastic gradient descent: v = momentum * v + (1 - dampening) * g, and the parameter goes down by " ..
    "learning_rate * v. learning_rate is a number or a schedule; weight_decay times the parameter is added to the " ..
    "gradient. With nesterov the step is learning_rate * (g + momentum * v).",
  call = function(learning_rate, momentum, weight_decay, dampening, nesterov)
    if nesterov and (momentum <= 0 or dampening ~= 0) then
      fail("SGD", ("nesterov wants momentum and no dampening: momentum is %g, dampening %g"):format(momentum,
        dampening))
    end
    local o = new(SGD, {momentum = momentum, weight_decay = weight_decay, dampening = dampening, nesterov = nesterov})
    o:setting("learning_rate", learning_rate)
    return o
  end,
}

local RMSprop = class("RMSprop", Optimizer)
zeros(RMSprop, "v")

local rms_step = core.formula("g p v lr alpha eps -> p v", [[
  v = alpha * v + (1 - alpha) * square(g)
  p = p - lr * g / (sqrt(v) + eps)
]])

function RMSprop:apply_single(g, p, state)
  p, state.v = rms_step(g, p, state.v, rate(self, g), self.alpha, self.eps)
  return p
end

define{
  name = "RMSprop", sig = "learning_rate:value alpha:number=0.99 eps:number=1e-8",
  help = "v = alpha * v + (1 - alpha) * g^2, and the parameter goes down by learning_rate * g / (sqrt(v) + eps).",
  call = function(learning_rate, alpha, eps)
    not_below("RMSprop", "alpha", alpha, 0)
    above_zero("RMSprop", "eps", eps)
    local o = new(RMSprop, {alpha = alpha, eps = eps})
    o:setting("learning_rate", learning_rate)
    return o
  end,
}

local Adagrad = class("Adagrad", Optimizer)
zeros(Adagrad, "v")

local adagrad_step = core.formula("g p v lr eps -> p v", [[
  v = v + square(g)
  p = p - lr * g / (sqrt(v) + eps)
]])

function Adagrad:apply_single(g, p, state)
  p, state.v = adagrad_step(g, p, state.v, rate(self, g), self.eps)
  return p
end

define{
  name = "Adagrad", sig = "learning_rate:value eps:number=1e-8",
  help = "v = v + g^2, and the parameter goes down by learning_rate * g / (sqrt(v) + eps).",
  call = function(learning_rate, eps)
    above_zero("Adagrad", "eps", eps)
    local o = new(Adagrad, {eps = eps})
    o:setting("learning_rate", learning_rate)
    return o
  end,
}

local AdaDelta = class("AdaDelta", Optimizer)
zeros(AdaDelta, "v", "u")

local adadelta_step = core.formula("g p v u lr rho eps -> p v u", [[
  v = rho * v + (1 - rho) * square(g)
  d = sqrt(u + eps) / sqrt(v + eps) * g
  u = rho * u + (1 - rho) * square(d)
  p = p - lr * d
]])

function AdaDelta:apply_single(g, p, state)
  p, state.v, state.u = adadelta_step(g, p, state.v, state.u, rate(self, g), self.rho, self.eps)
  return p
end

define{
  name = "AdaDelta", sig = "learning_rate:value rho:number=0.9 eps:number=1e-6",
  help = "Running averages v of g^2 and u of the steps d^2, where d = sqrt(u + eps) / sqrt(v + eps) * g; the " ..
    "parameter goes down by learning_rate * d.",
  call = function(learning_rate, rho, eps)
    not_below("AdaDelta", "rho", rho, 0)
    above_zero("AdaDelta", "eps", eps)
    local o = new(AdaDelta, {rho = rho, eps = eps})
    o:setting("learning_rate", learning_rate)
    return o
  end,
}

local Adam = class("Adam", Optimizer)
zeros(Adam, "m", "v")

local averages = [[
  m = b1 * m + (1 - b1) * g
  v = b2 * v + (1 - b2) * square(g)
]]
local adam_step = core.formula("g p m v lr b1 b2 eps -> p m v", averages .. "p = p - lr * m / (sqrt(v) + eps)")
local corrected_step = core.formula("g p m v c1 c2 b1 b2 eps -> p m v",
  averages .. "p = p - c1 * m / (sqrt(v) * c2 + eps)")

function Adam:apply_single(g, p, state)
  local lr, b1, b2, step = rate(self, g), self.betas[1], self.betas[2], self._state.step
  if not self.bias_correction then
    p, state.m, state.v = adam_step(g, p, state.m, state.v, lr, b1, b2, self.eps)
    return p
  end
  local c1 = (lr / (1 - float(b1) ^ step)):astype(g.dtype)
  local c2 = mx.rsqrt(1 - float(b2) ^ step):astype(g.dtype)
  p, state.m, state.v = corrected_step(g, p, state.m, state.v, c1, c2, b1, b2, self.eps)
  return p
end

define{
  name = "Adam", sig = "learning_rate:value betas:list? eps:number=1e-8 bias_correction:bool=false",
  help = "Running averages m of g and v of g^2 with the coefficients betas, {0.9, 0.999} if left out; the " ..
    "parameter goes down by learning_rate * m / (sqrt(v) + eps). bias_correction divides m and v by 1 - beta^step.",
  call = function(learning_rate, betas, eps, bias_correction)
    betas = two("Adam", betas, {0.9, 0.999})
    not_below("Adam", "eps", eps, 0)
    local o = new(Adam, {betas = betas, eps = eps, bias_correction = bias_correction})
    o:setting("learning_rate", learning_rate)
    return o
  end,
}

local AdamW = class("AdamW", Adam)

function AdamW:apply_single(g, p, state)
  return Adam.apply_single(self, g, p * (1 - rate(self, g) * self.weight_decay), state)
end

define{
  name = "AdamW",
  sig = "learning_rate:value betas:list? eps:number=1e-8 weight_decay:number=0.01 bias_correction:bool=false",
  help = "Adam, whose parameters are multiplied by 1 - learning_rate * weight_decay before each step.",
  call = function(learning_rate, betas, eps, weight_decay, bias_correction)
    betas = two("AdamW", betas, {0.9, 0.999})
    not_below("AdamW", "eps", eps, 0)
    local o = new(AdamW, {betas = betas, eps = eps, bias_correction = bias_correction, weight_decay = weight_decay})
    o:setting("learning_rate", learning_rate)
    return o
  end,
}

local Adamax = class("Adamax", Adam)

local adamax_step = core.formula("g p m v lr b1 b2 eps -> p m v", [[
  m = b1 * m + (1 - b1) * g
  v = maximum(b2 * v, abs(g))
  p = p - lr * m / (v + eps)
]])

function Adamax:apply_single(g, p, state)
  local b1, b2 = self.betas[1], self.betas[2]
  p, state.m, state.v = adamax_step(g, p, state.m, state.v, rate(self, g), b1, b2, self.eps)
  return p
end

define{
  name = "Adamax", sig = "learning_rate:value betas:list? eps:number=1e-8",
  help = "Adam with v = max(beta2 * v, |g|): the parameter goes down by learning_rate * m / (v + eps).",
  call = function(learning_rate, betas, eps)
    betas = two("Adamax", betas, {0.9, 0.999})
    not_below("Adamax", "eps", eps, 0)
    local o = new(Adamax, {betas = betas, eps = eps})
    o:setting("learning_rate", learning_rate)
    return o
  end,
}

local Lion = class("Lion", Optimizer)
zeros(Lion, "m")

local lion_step = core.formula("g p m lr b1 b2 -> p m", [[
  c = b1 * m + (1 - b1) * g
  m = b2 * m + (1 - b2) * g
  p = p - lr * sign(c)
]])

function Lion:apply_single(g, p, state)
  local lr, b1, b2 = rate(self, g), self.betas[1], self.betas[2]
  if self.weight_decay > 0 then p = (1 - lr * self.weight_decay) * p end
  p, state.m = lion_step(g, p, state.m, lr, b1, b2)
  return p
end

define{
  name = "Lion", sig = "learning_rate:value betas:list? weight_decay:number=0",
  help = "The parameter goes down by learning_rate * sign(beta1 * m + (1 - beta1) * g), where m is a running " ..
    "average of g with beta2. betas is {0.9, 0.99} if left out. Before, it is multiplied by 1 - learning_rate * " ..
    "weight_decay.",
  call = function(learning_rate, betas, weight_decay)
    betas = two("Lion", betas, {0.9, 0.99})
    local o = new(Lion, {betas = betas, weight_decay = weight_decay})
    o:setting("learning_rate", learning_rate)
    return o
  end,
}

local Adafactor = class("Adafactor", Optimizer)

function Adafactor:init_single(p, state)
  if p.ndim >= 2 then
    local rows, columns = p.shape, p.shape
    table.remove(rows)
    table.remove(columns, #columns - 1)
    state.exp_avg_sq_row, state.exp_avg_sq_col = mx.zeros(rows, p.dtype), mx.zeros(columns, p.dtype)
  else
    state.exp_avg_sq = mx.zeros_like(p)
  end
  if self.beta_1 then state.exp_avg = mx.zeros_like(p) end
end

local function rms(x) return mx.sqrt(mx.mean(mx.square(x))) end

-- relative is the learning rate for a parameter of that root mean square.
function Adafactor:relative(step, parameter_rms)
  local lr
  if self.relative_step then
    lr = mx.minimum(self.warmup_init and 1e-6 * step or 1e-2, mx.rsqrt(step))
  else
    lr = self._state.learning_rate
  end
  lr = lr:astype(parameter_rms.dtype)
  if self.scale_parameter then return mx.maximum(self.eps[2], parameter_rms) * lr end
  return lr
end

function Adafactor:apply_single(g, p, state)
  local step, parameter_rms = self._state.step, rms(p)
  local lr = self:relative(step, parameter_rms)
  local beta = 1 - (step:astype(mx.float32) ^ self.decay_rate):astype(parameter_rms.dtype)
  local update = mx.square(g) + self.eps[1]
  if g.ndim >= 2 then
    local row = beta * state.exp_avg_sq_row + (1 - beta) * mx.mean(update, -1)
    local column = beta * state.exp_avg_sq_col + (1 - beta) * mx.mean(update, -2)
    state.exp_avg_sq_row, state.exp_avg_sq_col = row, column
    update = mx.rsqrt(row / mx.mean(row, -1, true)):expand_dims(-1) * mx.rsqrt(column):expand_dims(-2) * g
  else
    state.exp_avg_sq = beta * state.exp_avg_sq + (1 - beta) * update
    update = mx.rsqrt(state.exp_avg_sq) * g
  end
  update = lr * (update / mx.maximum(1, rms(update) / self.clip_threshold))
  if self.beta_1 then
    update = self.beta_1 * state.exp_avg + (1 - self.beta_1) * update
    state.exp_avg = update
  end
  if self.weight_decay ~= 0 then p = p + p * (-self.weight_decay * lr) end
  return p - update
end

define{
  name = "Adafactor",
  sig = "learning_rate:value? eps:list? clip_threshold:number=1 decay_rate:number=-0.8 beta_1:number? " ..
    "weight_decay:number=0 scale_parameter:bool=true relative_step:bool=true warmup_init:bool=false",
  help = "Adam whose v has a row and a column in the place of a matrix. eps is {1e-30, 1e-3} if left out: what is " ..
    "added to g^2, and the least scale of a parameter. With relative_step the learning rate is the smaller of " ..
    "1e-2, or 1e-6 * step with warmup_init, and 1 / sqrt(step); with scale_parameter it is multiplied by the root " ..
    "mean square of the parameter. Steps whose root mean square is above clip_threshold are scaled down to it. v " ..
    "has the coefficient 1 - step ^ decay_rate; with beta_1 steps are a running average; the parameter is " ..
    "multiplied by 1 - learning_rate * weight_decay before each.",
  call = function(learning_rate, eps, clip_threshold, decay_rate, beta_1, weight_decay, scale_parameter, relative_step,
      warmup_init)
    if learning_rate == nil and not relative_step then
      fail("Adafactor", "learning_rate is missing, which relative_step=false wants")
    end
    local o = new(Adafactor, {eps = eps or {1e-30, 1e-3}, clip_threshold = clip_threshold, decay_rate = decay_rate,
      beta_1 = beta_1, weight_decay = weight_decay, scale_parameter = scale_parameter, relative_step = relative_step,
      warmup_init = warmup_init})
    if learning_rate ~= nil then o:setting("learning_rate", learning_rate) end
    return o
  end,
}

local Muon = class("Muon", Optimizer)
zeros(Muon, "v")

-- orthogonal brings the singular values of a matrix near 1 by steps of a Newton-Schulz iteration of degree five.
local function orthogonal(x, steps)
  local a, b, c = 3.4445, -4.7750, 2.0315
  local tall = x:dim(0) > x:dim(1)
  if tall then x = x.T end
  x = x / (mx.linalg.norm(x, {keepdims = true}) + 1e-7)
  for _ = 1, steps do
    local squared = mx.matmul(x, x.T)
    x = mx.addmm(a * x, mx.addmm(b * squared, squared, squared, c, 1), x, 1, 1)
  end
  return tall and x.T or x
end

function Muon:apply_single(g, p, state)
  if self.weight_decay ~= 0 then g = g + self.weight_decay * p end
  local v = self.momentum * state.v + (1 - self.momentum) * g
  state.v = v
  local update, lr = v, rate(self, g)
  if self.nesterov then update = g * (1 - self.momentum) + v * self.momentum end
  if g.ndim >= 2 then
    lr = lr * math.max(1, g:dim(-2) / g:dim(-1)) ^ 0.5
    if g.ndim > 2 then update = update:reshape(g:dim(0), -1) end
    update = orthogonal(update, self.ns_steps)
    if g.ndim > 2 then update = update:reshape(g) end
  end
  return p - lr * update
end

define{
  name = "Muon",
  sig = "learning_rate:value momentum:number=0.95 weight_decay:number=0.01 nesterov:bool=true ns_steps:int=5",
  help = "v = momentum * v + (1 - momentum) * g; a matrix goes down by learning_rate times the orthogonal matrix " ..
    "nearest to v, or with nesterov to momentum * v + (1 - momentum) * g, which ns_steps of a Newton-Schulz " ..
    "iteration find, and times sqrt(rows / columns) if it is high. An array of more dimensions is a matrix of its " ..
    "first one; one of fewer goes down by learning_rate times that itself. weight_decay times the parameter is " ..
    "added to the gradient.",
  call = function(learning_rate, momentum, weight_decay, nesterov, ns_steps)
    local o = new(Muon, {momentum = momentum, weight_decay = weight_decay, nesterov = nesterov, ns_steps = ns_steps})
    o:setting("learning_rate", learning_rate)
    return o
  end,
}

local MultiOptimizer = class("MultiOptimizer", Optimizer)

function MultiOptimizer:get_state()
  local states = {}
  for i, o in ipairs(self.optimizers) do states[i] = o.state end
  return {states = states}
end

function MultiOptimizer:set_state(state)
  local states = type(state) == "table" and state.states
  if type(states) ~= "table" or #states ~= #self.optimizers then
    fail("MultiOptimizer", ("state is no table {states = ...} of %d states"):format(#self.optimizers))
  end
  for i, o in ipairs(self.optimizers) do o.state = states[i] end
end

function MultiOptimizer:get_rule()
  local rules = {}
  for i, o in ipairs(self.optimizers) do rules[i] = o.rule end
  return ("%s(%s)"):format(self.class, table.concat(rules, ", "))
end

function MultiOptimizer:get_step() return self.optimizers[1].step end

function MultiOptimizer:get_learning_rate() return self.optimizers[1].learning_rate end

function MultiOptimizer:set_learning_rate(value)
  for _, o in ipairs(self.optimizers) do o.learning_rate = value end
end

-- parts are the parameters or gradients of each optimizer.
function MultiOptimizer:parts(tree)
  if #self.optimizers == 1 then return {tree} end
  local parts = {}
  for i = 1, #self.optimizers do parts[i] = {} end
  for _, leaf in ipairs(utils.tree_flatten(tree)) do
    local i = 1
    while self.filters[i] and not self.filters[i](leaf[1], leaf[2]) do i = i + 1 end
    table.insert(parts[i], leaf)
  end
  for i, leaves in ipairs(parts) do parts[i] = utils.tree_unflatten(leaves) end
  return parts
end

function MultiOptimizer:init(parameters)
  for i, part in ipairs(self:parts(parameters)) do self.optimizers[i]:init(part) end
end

function MultiOptimizer:apply_gradients(gradients, parameters)
  local tree = {}
  for i, part in ipairs(self:parts(gradients)) do
    tree = utils.tree_merge(tree, self.optimizers[i]:apply_gradients(part, parameters))
  end
  return tree
end

define{
  name = "MultiOptimizer", sig = "optimizers:list filters:list?",
  help = "Several optimizers for the parts of a model. filters has a function of a parameter's path and array for " ..
    "each optimizer but the last one: the first that gives true decides; what none takes is the last optimizer's.",
  call = function(optimizers, filters)
    filters = filters or {}
    if #filters ~= #optimizers - 1 then
      fail("MultiOptimizer", ("filters has %d functions, want %d for %d optimizers"):format(#filters, #optimizers - 1,
        #optimizers))
    end
    return setmetatable({optimizers = optimizers, filters = filters, _initialized = false}, MultiOptimizer)
  end,
}
