-- Teaches the GPT of gpt.lua to write Lua by low-rank changes of a few of its matrices (LoRA: Hu and others, 2021):
-- mlxlua examples/gpt.lua --save base.safetensors && mlxlua examples/lora.lua --base base.safetensors
-- Without --base it first learns a little English.
local here = debug.getinfo(1, "S").source:match("^@?(.*[/\\])") or "./"
local mx, nn = require("mx"), require("mx.nn")
local optim, train = require("mx.optimizers"), require("mx.train")
local gpt = dofile(here .. "gpt/model.lua")

local options = {base = "", epochs = 4, rank = 8, text = 60000}
local given = {...}
for i = 1, #given, 2 do
  local name = given[i]:match("^%-%-(%a+)$")
  if options[name] == nil or not given[i + 1] then error("unknown option, or one without a value: " .. given[i], 0) end
  options[name] = tonumber(given[i + 1]) or given[i + 1]
end

-- What a LoRALinear gives is what its Linear gives, and scale * x a b; only a and b are trained. b begins as zeros.
local LoRALinear = nn.class("LoRALinear")

function LoRALinear:init(linear, rank, scale)
  local outputs, inputs = linear.weight:dim(0), linear.weight:dim(1)
  self.linear, self.scale = linear, scale
  self.a = mx.random.uniform(-1, 1, {inputs, rank}) / math.sqrt(inputs)
  self.b = mx.zeros({rank, outputs})
  self.linear:freeze()
end

function LoRALinear:forward(x)
  return self.linear(x) + self.scale * mx.matmul(mx.matmul(x, self.a), self.b)
end

-- fused is a Linear that gives the same.
function LoRALinear:fused()
  self.linear.weight = self.linear.weight + self.scale * mx.matmul(self.a, self.b).T
  return self.linear
end

local function read(...)
  local text = ""
  for _, file in ipairs({...}) do text = text .. gpt.read(here .. "../" .. file) end
  return text:sub(1, options.text)
end

local function count(tree)
  return mx.utils.tree_reduce(function(n, p) return n + p.size end, tree, 0)
end

mx.random.seed(1)
local model = gpt.new()
if options.base ~= "" then
  model:load_weights(options.base)
else
  print("learning English first")
  train.fit(model, optim.AdamW(2e-3, {betas = {0.9, 0.99}}), gpt.loss,
    gpt.batches(read("README.md", "docs/lua.md", "tensor/WHY.md", "luabind/WHY.md", "metal/WHY.md"), 8))
end

local lua = read("scripts/utils.lua", "scripts/optimizers.lua", "scripts/nn/linear.lua")
local loader = gpt.batches(lua, 8)
local before = train.evaluate(model, loader, {loss = gpt.loss}).loss

model:freeze()
for _, block in ipairs(model.blocks) do
  for _, name in ipairs({"query", "value"}) do
    block.attention[name] = LoRALinear(block.attention[name], options.rank, 2)
  end
  for _, name in ipairs({"up", "down"}) do block[name] = LoRALinear(block[name], options.rank, 2) end
end
print(("%d of %d parameters are trained"):format(count(model:trainable_parameters()), count(model:parameters())))
train.fit(model, optim.Adam(2e-3), gpt.loss, loader, {epochs = options.epochs})
local after = train.evaluate(model, loader, {loss = gpt.loss}).loss
print(("loss on Lua: %.3f before, %.3f after"):format(before, after))
assert(after < before)

-- Fused, the model has its old shape, and the same opinion.
local prompt = gpt.encode("local function ")["None"]
model:eval()
local separate = model(prompt)
for _, block in ipairs(model.blocks) do
  for _, name in ipairs({"query", "value"}) do block.attention[name] = block.attention[name]:fused() end
  for _, name in ipairs({"up", "down"}) do block[name] = block[name]:fused() end
end
assert(mx.max(mx.abs(model(prompt) - separate)):item() < 1e-3)
print(gpt.generate(model, "local function ", 200, 0.7))
