-- classes.lua FOLDER: the table of defaults says what transformers' classes say, and nothing else. See defaults.py.
local host, defaults = require("lm.host"), require("lm.defaults")
local f = assert(io.open(... .. "/keys/defaults.json"))
local classes = host.decode(f:read("*a")).classes
f:close()

-- text and pictures have a class of their own around that of the text
local outer = {gemma3 = "gemma3_text", qwen3_5 = "qwen3_5_text", qwen3_5_moe = "qwen3_5_moe_text", gemma4 = "gemma4_text",
  gemma3n = "gemma3n_text", llama4 = "llama4_text", mistral3 = "mistral", qwen2_vl = "qwen2_vl_text",
  qwen2_5_vl = "qwen2_5_vl_text", qwen3_vl = "qwen3_vl_text", qwen3_vl_moe = "qwen3_vl_moe_text"}
local unknown = {kimi_k2 = true} -- transformers has no such class, so that nothing is taken for granted
local common = {hidden_act = "silu", rms_norm_eps = 1e-6} -- of families whose scripts do not ask for it

local function same(where, got, want)
  if type(want) ~= "table" then
    if (got or false) ~= want then error(("%s = %s, transformers has %s"):format(where, tostring(got), tostring(want)), 0) end
    return
  end
  for k, v in pairs(want) do same(where .. "." .. k, got[k], v) end
end

local count = 0
for model_type in pairs(require("lm").models) do
  local got, class = defaults[model_type], classes[outer[model_type] or model_type]
  if unknown[model_type] then got, class = {}, {rope_parameters = {rope_type = "default"}} end
  if not got or not class then error(model_type .. " has no defaults", 0) end
  count = count + 1
  class = host.decode(host.encode(class)) -- two names can have one class
  local rope = class.rope_parameters
  class.rope_parameters = nil
  same(model_type, got, class)
  local own = got.rope_parameters or {rope_type = "default"}
  if own.full_attention then -- said by type here, too
    same(model_type .. ".rope_parameters", own, rope)
    own, rope = {}, {rope_theta = got.rope_theta}
  end
  if rope.full_attention then
    class.rope_local_base_freq = rope.sliding_attention.rope_theta
    same(model_type, got.rope_local_base_freq, class.rope_local_base_freq)
    rope = rope.full_attention
  end
  local whole = got.partial_rotary_factor == 1 and 1 or false -- which is the same as nothing
  class.rope_theta, class.partial_rotary_factor = rope.rope_theta, rope.partial_rotary_factor
  same(model_type .. ".rope_theta", own.rope_theta or got.rope_theta, rope.rope_theta or false)
  same(model_type .. ".partial_rotary_factor", got.partial_rotary_factor, rope.partial_rotary_factor or whole)
  rope.rope_theta, rope.partial_rotary_factor, rope.type = nil, nil, nil -- type is an older name of rope_type
  same(model_type .. ".rope_parameters", own, rope)
  for key, value in pairs(got) do
    if class[key] == nil and common[key] ~= value and key ~= "rope_parameters" and key ~= "partial_rotary_factor" then
      error(("%s.%s = %s, transformers has no such key"):format(model_type, key, tostring(value)), 0)
    end
  end
end
print(("%d families"):format(count))
