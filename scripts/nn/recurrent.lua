-- Recurrent layers. Each takes arrays (..., L, D) and gives the states of all steps, (..., L, H).
local mx, _, fail, use, core = ...
local nn = use("mx.nn")

local class, text = use("class"), use("text")
local layer, described = class.layer, text.described
use("activations")

local function uniform(scale, ...) return mx.random.uniform(-scale, scale, {...}) end

-- projected is x times a transposed matrix plus a bias, if there is one.
local function projected(bias, x, w)
  if bias then return mx.addmm(bias, x, w.T) end
  return mx.matmul(x, w.T)
end

-- steps are the slices of x along its last axis but one.
local function steps(x) return mx.unstack(x, -2) end

layer{
  name = "RNN", sig = "input_size:int hidden_size:int bias:bool=true nonlinearity:any?", empty = "input_size",
  help = "h' = nonlinearity(x * Wxh^T + h * Whh^T + bias), step by step, from h = hidden or 0: rnn(x, hidden). " ..
    "The " ..
    "parameters are Wxh (hidden_size, input_size), Whh (hidden_size, hidden_size) and bias (hidden_size); " ..
    "nonlinearity " ..
    "is mx.nn.tanh unless it is given.",
  init = function(self, input_size, hidden_size, bias, nonlinearity)
    nonlinearity = nonlinearity or nn.tanh
    if not core.callable(nonlinearity) then
      fail("RNN", ("nonlinearity is a %s, want a function"):format(mx.type(nonlinearity)))
    end
    self.nonlinearity = nonlinearity
    local scale = 1 / math.sqrt(hidden_size)
    self.hidden_size = hidden_size
    self.Wxh, self.Whh = uniform(scale, hidden_size, input_size), uniform(scale, hidden_size, hidden_size)
    if bias then self.bias = uniform(scale, hidden_size) end
  end,
  takes = "x hidden",
  forward = function(self, x, hidden)
    local out, recurrent = {}, self.Whh.T
    for i, h in ipairs(steps(projected(self.bias, x, self.Wxh))) do
      if hidden then h = mx.addmm(h, hidden, recurrent) end
      hidden = self.nonlinearity(h)
      out[i] = hidden
    end
    return mx.stack(out, -2)
  end,
  repr = function(self)
    return described(self, "input_dims= hidden_size= nonlinearity= bias=",
      {input_dims = self.Wxh:dim(1), bias = self.bias ~= nil})
  end,
}

layer{
  name = "GRU", sig = "input_size:int hidden_size:int bias:bool=true", empty = "input_size",
  help = "A gated recurrent unit, step by step from hidden or 0: gru(x, hidden). The parameters are Wx (3 * " ..
    "hidden_size, " ..
    "input_size), Wh (3 * hidden_size, hidden_size), b (3 * hidden_size) and bhn (hidden_size); the gates are " ..
    "the reset " ..
    "gate, the update gate and the new state.",
  init = function(self, input_size, hidden_size, bias)
    local scale = 1 / math.sqrt(hidden_size)
    self.hidden_size = hidden_size
    self.Wx, self.Wh = uniform(scale, 3 * hidden_size, input_size), uniform(scale, 3 * hidden_size, hidden_size)
    if bias then self.b, self.bhn = uniform(scale, 3 * hidden_size), uniform(scale, hidden_size) end
  end,
  takes = "x hidden",
  forward = function(self, x, hidden)
    local out, recurrent = {}, self.Wh.T
    for i, gates in ipairs(steps(projected(self.b, x, self.Wx))) do
      local r, z, n = unpack(mx.split(gates, 3, -1))
      local new = self.bhn
      if hidden then
        local hr, hz, hn = unpack(mx.split(mx.matmul(hidden, recurrent), 3, -1))
        r, z, new = r + hr, z + hz, new and hn + new or hn
      end
      r, z = mx.sigmoid(r), mx.sigmoid(z)
      if new then n = n + r * new end
      n = mx.tanh(n)
      if hidden then
        hidden = (1 - z) * n + z * hidden
      else
        hidden = (1 - z) * n
      end
      out[i] = hidden
    end
    return mx.stack(out, -2)
  end,
  repr = function(self)
    return described(self, "input_dims= hidden_size= bias=", {input_dims = self.Wx:dim(1), bias = self.b ~= nil})
  end,
}

layer{
  name = "LSTM", sig = "input_size:int hidden_size:int bias:bool=true", empty = "input_size",
  help = "Long short-term memory, step by step from hidden and cell or 0: lstm(x, hidden, cell) gives the " ..
    "hidden states " ..
    "and the cell states. The parameters are Wx (4 * hidden_size, input_size), Wh (4 * hidden_size, " ..
    "hidden_size) and " ..
    "bias (4 * hidden_size); the gates are the input gate, the forget gate, the new cell and the output gate.",
  init = function(self, input_size, hidden_size, bias)
    local scale = 1 / math.sqrt(hidden_size)
    self.hidden_size = hidden_size
    self.Wx, self.Wh = uniform(scale, 4 * hidden_size, input_size), uniform(scale, 4 * hidden_size, hidden_size)
    if bias then self.bias = uniform(scale, 4 * hidden_size) end
  end,
  takes = "x hidden cell",
  forward = function(self, x, hidden, cell)
    local states, cells, recurrent = {}, {}, self.Wh.T
    for t, gates in ipairs(steps(projected(self.bias, x, self.Wx))) do
      if hidden then gates = mx.addmm(gates, hidden, recurrent) end
      local i, f, g, o = unpack(mx.split(gates, 4, -1))
      local new = mx.sigmoid(i) * mx.tanh(g)
      if cell then new = mx.sigmoid(f) * cell + new end
      cell = new
      hidden = mx.sigmoid(o) * mx.tanh(cell)
      states[t], cells[t] = hidden, cell
    end
    return mx.stack(states, -2), mx.stack(cells, -2)
  end,
  repr = function(self)
    return described(self, "input_dims= hidden_size= bias=", {input_dims = self.Wx:dim(1), bias = self.bias ~= nil})
  end,
}
