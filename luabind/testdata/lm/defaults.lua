-- defaults.lua FOLDER NAME DIRECTORY: a model of a golden file, of whose config.json a key is left out, null or said in
-- another way, answers as transformers does or is refused; what transformers refuses is refused. See defaults.py.
local mx, lm, host = require("mx"), require("lm"), require("lm.host")
local folder, name, dir = ...
package.path = folder .. "/?.lua;" .. package.path
local weights = require("weights")

local f = assert(io.open(folder .. "/keys/defaults.json"))
local all = host.decode(f:read("*a"))
f:close()

-- copied is a value of config.json with changes: see changed in defaults.py.
local function copied(v)
  if type(v) ~= "table" or getmetatable(v) == "list" then return v end
  local out = {}
  for k, e in pairs(v) do out[k] = copied(e) end
  return out
end
local function changed(config, changes)
  local out, paths = copied(config), {}
  for path in pairs(changes) do paths[#paths + 1] = path end
  table.sort(paths) -- a key before its parts
  for _, path in ipairs(paths) do
    local at, keys = out, {}
    for key in path:gmatch("[^.]+") do keys[#keys + 1] = key end
    for i = 1, #keys - 1 do at = at[keys[i]] end
    local value = changes[path]
    if value == "-" then value = nil end
    at[keys[#keys]] = copied(value)
  end
  return out
end

local golden = weights.golden(folder, name)
local arrays, model = weights.arrays(golden), all.models[name]
local tokens, words = mx.array({all.tokens}, mx.int32), mx.array(all.words, mx.int32)
local wrong, refusals, same = {}, {}, 0
for _, case in ipairs(model.cases) do
  local changes, place = case[1], case[2]
  local ok, got = pcall(function()
    local config = lm.Config.new(changed(golden.config, changes))
    local fresh = {}
    for k, x in pairs(arrays) do fresh[k] = x end
    local built = lm.build(fresh, config)
    local scores = built(tokens, lm.caches(built))
    return scores:index(0, -1):take(words)
  end)
  local want = model.answers[place + 1]
  local text = tostring(got)
  local named = false
  for path in pairs(changes) do named = named or text:find(path:match("[^.]+$"), 1, true) end
  if not ok and (not text:match("^lm: ") or want and not named) then
    wrong[#wrong + 1] = host.encode(changes) .. ": " .. text
  elseif not ok and not want then
    same = same + 1
  elseif not ok then
    refusals[#refusals + 1] = host.encode(changes) .. ": " .. text
  elseif not want then
    wrong[#wrong + 1] = host.encode(changes) .. " is not refused"
  else
    local d = mx.max(mx.abs(got - mx.array(want))):item()
    if d <= 2e-5 then same = same + 1 else wrong[#wrong + 1] = ("%s: off by %g"):format(host.encode(changes), d) end
  end
end
print(("%s: %d are the same"):format(name, same))
for _, text in ipairs(refusals) do print("refused " .. text) end
if #wrong > 0 then error(("%s:\n%s"):format(name, table.concat(wrong, "\n")), 0) end
