-- A small GPT over characters, for gpt.lua and lora.lua.
local mx, nn, data = require("mx"), require("mx.nn"), require("mx.data")

local Attention = nn.class("Attention")

function Attention:init(width, heads)
  self.heads = heads
  self.query, self.key = nn.Linear(width, width, {bias = false}), nn.Linear(width, width, {bias = false})
  self.value, self.out = nn.Linear(width, width, {bias = false}), nn.Linear(width, width, {bias = false})
  self.rope = nn.RoPE(width / heads)
end

-- A model that was trained on windows of this many characters knows nothing of what is further back.
local window = 64

-- With a cache, x are the tokens behind those that it has seen; it holds the keys and values of the last of them.
function Attention:forward(x, cache)
  local function split(y) return y:reshape(mx.dims({x, 0}, {x, 1}, self.heads, -1)):transpose(0, 2, 1, 3) end
  local seen = cache and cache.seen or 0
  local queries, keys = self.rope(split(self.query(x)), seen), self.rope(split(self.key(x)), seen)
  local values = split(self.value(x))
  if seen > 0 then
    keys, values = mx.concatenate({cache.keys, keys}, 2), mx.concatenate({cache.values, values}, 2)
  end
  if cache then
    local last = ("..., -%d:, :"):format(window - 1)
    cache.keys, cache.values, cache.seen = keys[last], values[last], seen + x:dim(1)
  end
  local y = mx.fast.scaled_dot_product_attention(queries, keys, values,
    {scale = (x:dim(2) / self.heads) ^ -0.5, mask = "causal"})
  return self.out(y:transpose(0, 2, 1, 3):reshape(mx.dims({x, 0}, {x, 1}, -1)))
end

local Block = nn.class("Block")

function Block:init(width, heads)
  self.norm1, self.norm2 = nn.RMSNorm(width), nn.RMSNorm(width)
  self.attention = Attention(width, heads)
  self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
end

function Block:forward(x, cache)
  x = x + self.attention(self.norm1(x), cache)
  return x + self.down(nn.gelu(self.up(self.norm2(x))))
end

local GPT = nn.class("GPT")

function GPT:init(characters, width, heads, layers)
  self.embedding = nn.Embedding(characters, width)
  self.blocks = {}
  for i = 1, layers do self.blocks[i] = Block(width, heads) end
  self.norm, self.head = nn.RMSNorm(width), nn.Linear(width, characters)
end

-- caches is a list with a table for each block, or nil.
function GPT:forward(tokens, caches)
  local x = self.embedding(tokens)
  for i, block in ipairs(self.blocks) do x = block(x, caches and caches[i]) end
  return self.head(self.norm(x))
end

-- Characters are printable ASCII and the line break; all others are left out.
local characters = "\n"
for c = 32, 126 do characters = characters .. string.char(c) end
local number = {}
for i = 1, #characters do number[characters:sub(i, i)] = i - 1 end

local function encode(text)
  local out = {}
  for c in text:gmatch("[\n\32-\126]") do out[#out + 1] = number[c] end
  return mx.array(out, mx.int32)
end

local function decode(token) return characters:sub(token + 1, token + 1) end

local function read(file)
  local f = assert(io.open(file, "rb"))
  local text = f:read("*a")
  f:close()
  return text
end

-- batches is a loader of pairs of windows of a text, the second one character further on.
local function batches(text, size)
  local tokens, length = encode(text), window
  local starts = mx.arange(0, #tokens - length - 1, length / 2)
  return data.DataLoader(starts, size, {shuffle = true, last = "drop", transform = function(start)
    local places = start[":, None"] + mx.arange(length)
    return tokens[places], tokens[places + 1]
  end})
end

local function loss(model, x, y)
  return nn.losses.cross_entropy(model(x), y, {reduction = "mean"})
end

-- generate is a text of count characters behind a prompt: after the prompt each step computes one token only, because
-- the caches hold the keys and values of those before.
local function generate(model, prompt, count, temperature)
  model:eval()
  local caches, out = {}, {}
  for i = 1, #model.blocks do caches[i] = {} end
  local tokens = encode(prompt)["None"]
  for i = 1, count do
    local logits = model(tokens, caches)[":, -1"]
    tokens = mx.random.categorical(logits / temperature)[":, None"]:astype(mx.int32)
    mx.eval(tokens, caches)
    out[i] = decode(tokens:item())
  end
  return prompt .. table.concat(out)
end

return {new = function() return GPT(#characters, 96, 4, 3) end, loss = loss, batches = batches, generate = generate,
  read = read, encode = encode}
