-- A small network learns a circle: run it with `mlxlua FILE`.
local mx = require("mx")
local nn = require("mx.nn")
local optim = require("mx.optimizers")

mx.random.seed(0)

-- Data: points in a square; the label says whether a point lies in the circle.
local x = mx.random.uniform(-1, 1, {512, 2})
local inside = mx.less(mx.sum(mx.square(x), 1), 0.5):astype(mx.float32)

-- A model is a table with layers, and a function that calls them.
local Net = nn.class("Net")

function Net:init(hidden)
  self.first = nn.Linear(2, hidden)
  self.last = nn.Linear(hidden, 1)
end

function Net:forward(points)
  return self.last(nn.tanh(self.first(points))):squeeze(-1)
end

local model = Net(32)
local optimizer = optim.Adam(1e-2)

local step = nn.value_and_grad(model, function(points, labels)
  return nn.losses.binary_cross_entropy(model(points), labels)
end)

for i = 1, 300 do
  local loss, gradients = step(x, inside)
  optimizer:update(model, gradients)
  mx.eval(model:parameters(), optimizer.state)
  if i % 100 == 0 then print(("step %d: loss %.4f"):format(i, loss:item())) end
end

local right = mx.equal(mx.greater(model(x), 0), mx.greater(inside, 0.5))
print(("%.1f %% of the points are on the right side"):format(100 * mx.mean(right):item()))
