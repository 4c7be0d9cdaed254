-- The numbers of tokens that callers give: integers from 0, less than the tokens that there are.
local mx = require("mx")

local numbers = {}

local function fail(op, text, ...) error((op .. ": " .. text):format(...), 0) end

-- size is how many tokens a model knows; math.huge: its settings do not say it.
function numbers.size(model)
  local size = model.config and model.config:get("vocab_size")
  return type(size) == "number" and size or math.huge
end

-- part are the numbers of a list from one place to another.
function numbers.part(list, from, to)
  local out = {}
  for i = from, to do out[i - from + 1] = list[i] end
  return out
end

-- check fails for a number that is no token of size tokens. op is the function that the error names, what the argument.
function numbers.check(op, what, id, size)
  if type(id) ~= "number" or not (id >= 0 and id % 1 == 0) then
    fail(op, "%s has the token %s, want an integer from 0", what, tostring(id))
  end
  if id >= size then fail(op, "%s has the token %d, want less than the %d tokens there are", what, id, size) end
end

-- list checks a list.
function numbers.list(op, what, list, size)
  for _, id in ipairs(list) do numbers.check(op, what, id, size) end
end

-- array checks an array of integers that is not empty.
function numbers.array(op, what, x, size)
  if not mx.issubdtype(x.dtype, mx.integer) then return end
  numbers.check(op, what, x:min():item(), size)
  numbers.check(op, what, x:max():item(), size)
end

-- set checks a table {[token] = true}.
function numbers.set(op, what, t, size)
  if type(t) ~= "table" then fail(op, "%s = %s, want {[token] = true}", what, tostring(t)) end
  for id, v in pairs(t) do
    if v ~= true then fail(op, "%s has %s = %s, want {[token] = true}", what, tostring(id), tostring(v)) end
    numbers.check(op, what, id, size)
  end
end

return numbers
