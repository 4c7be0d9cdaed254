-- Trains a small GPT on this project's own documents, character by character, and has it write:
-- mlxlua examples/gpt.lua [--epochs 3] [--size 8] [--save FILE.safetensors]
local here = debug.getinfo(1, "S").source:match("^@?(.*[/\\])") or "./"
local mx, optim, train = require("mx"), require("mx.optimizers"), require("mx.train")
local gpt = dofile(here .. "gpt/model.lua")

local options = {epochs = 3, size = 8, text = 1e9, save = ""}
local given = {...}
for i = 1, #given, 2 do
  local name = given[i]:match("^%-%-(%a+)$")
  if options[name] == nil or not given[i + 1] then error("unknown option, or one without a value: " .. given[i], 0) end
  options[name] = tonumber(given[i + 1]) or given[i + 1]
end

local text = ""
for _, file in ipairs({"README.md", "RATIONALE.md", "docs/lua.md", "docs/architecture.md", "luabind/WHY.md",
  "luabind/lua51/WHY.md", "metal/WHY.md", "tensor/WHY.md", "tensor/ops/WHY.md"}) do
  text = text .. gpt.read(here .. "../" .. file)
end
text = text:sub(1, options.text)

mx.random.seed(0)
local model = gpt.new()
local parameters = 0
for _, leaf in ipairs(mx.utils.tree_flatten(model:parameters())) do parameters = parameters + leaf[2].size end
local loader = gpt.batches(text, options.size)
print(("%d characters, %d parameters, %d steps an epoch"):format(#text, parameters, loader:size()))

local steps = options.epochs * loader:size()
local warm = math.min(60, math.floor(steps / 10))
local schedule = optim.join_schedules(
  {optim.linear_schedule(0, 3e-3, warm), optim.cosine_decay(3e-3, steps - warm)}, {warm})
local history = train.fit(model, optim.AdamW(schedule, {betas = {0.9, 0.99}}), gpt.loss, loader,
  {epochs = options.epochs, max_norm = 1})
print(("loss %.3f; an even guess among all characters would have %.3f"):format(history[#history].loss, math.log(96)))

-- What the caches give is what the whole text gives.
local tokens, caches = gpt.encode("Why is the import law a test?")["None"], {}
for i = 1, #model.blocks do caches[i] = {} end
model:eval()
local whole, last = model(tokens)[":, -1"], nil
for i = 0, tokens:dim(1) - 1 do last = model(tokens[(":, %d:%d"):format(i, i + 1)], caches)[":, -1"] end
local difference = mx.max(mx.abs(whole - last)):item()
assert(difference < 1e-3, "with caches the result differs by " .. difference)

local started = mx.clock()
print(gpt.generate(model, "### Why ", 300, 0.7))
print(("-- 300 characters at %.0f a second; with and without caches differs by %.1g"):format(
  300 / (mx.clock() - started), difference))
if options.save ~= "" then model:save_weights(options.save) end
