-- A training step, as a function without arguments: train.lua mlp|gpt eager|compiled. A perceptron 784-256-256-10 with 256
-- examples, or two transformer layers of 128 features and 4 heads with 16 texts of 64 tokens, of 256 kinds.
local mx, nn, optim = require("mx"), require("mx.nn"), require("mx.optimizers")
local kind, mode = ...

local MLP = nn.class("MLP")

function MLP:init() self.l1, self.l2, self.l3 = nn.Linear(784, 256), nn.Linear(256, 256), nn.Linear(256, 10) end

function MLP:forward(x) return self.l3(nn.relu(self.l2(nn.relu(self.l1(x))))) end

local GPT = nn.class("GPT")

function GPT:init()
  self.embed, self.places = nn.Embedding(256, 128), nn.Embedding(64, 128)
  self.blocks = {nn.TransformerEncoderLayer(128, 4), nn.TransformerEncoderLayer(128, 4)}
  self.ln, self.out = nn.LayerNorm(128), nn.Linear(128, 256)
end

function GPT:forward(x)
  local h = self.embed(x) + self.places(mx.arange(64))
  for _, block in ipairs(self.blocks) do h = block(h, "causal") end
  return self.out(self.ln(h))
end

mx.random.seed(0)
local model, x, y
if kind == "mlp" then
  model, x, y = MLP(), mx.random.normal({256, 784}), mx.random.randint(0, 10, {256})
else
  model, x, y = GPT(), mx.random.randint(0, 256, {16, 64}), mx.random.randint(0, 256, {16, 64})
end
local opt = optim.Adam(1e-3)
local gradients = nn.value_and_grad(model, function(m, a, b)
  return nn.losses.cross_entropy(m(a), b, {reduction = "mean"})
end)

local function step(a, b)
  local loss, g = gradients(model, a, b)
  opt:update(model, g)
  return loss
end

local f, state = step, {model.state, opt.state}
if mode == "compiled" then f = mx.compile(step, {inputs = state, outputs = state}) end
mx.eval(model, x, y)
return function()
  local loss = f(x, y)
  mx.eval(loss, model, opt.state)
end
