-- What Lua's own libraries make of arrays and of errors of mx.
local x = coroutine.wrap(function() coroutine.yield(mx.ones({2})); return mx.exp(mx.zeros({1})) end)
same(x(), {1, 1})
same(x(), {1})
fails("libraries.lua:6", coroutine.wrap(function()
  return mx.zeros({2}) + mx.zeros({3})
end))
assert(("%s and %s"):format(mx.array({1, 2}, mx.int32), mx.int8) == "array([1, 2], dtype=int32) and int8")
-- collectgarbage has Lua's options
do
  local text = {}
  for i = 1, 1000 do text[i] = ("x"):rep(10000 + i) end
  local full = collectgarbage("count")
  assert(full > 10000, full)
  assert(#text == 1000)
  text = nil
  assert(collectgarbage() == 0 and collectgarbage("collect") == 0 and collectgarbage("step") == true)
  assert(collectgarbage("stop") == 0 and collectgarbage("restart") == 0)
  fails("invalid option 'all'", collectgarbage, "all")
end
