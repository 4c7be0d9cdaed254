-- LUA-API rule 10 and bad input: each a clear error, and the state lives on.
local ok, e = pcall(function() return mx.zeros({3, 4}) + mx.zeros({5, 2}) end)
assert(not ok and e.op == "add" and tostring(e):find("%(3, 4%)") and tostring(e):find("%(5, 2%)"))
assert(("text: " .. e):find("text: ") and e:match("shapes") and #e > 0)
assert(e.message:find("errors.lua:2"), e.message)
assert(e.traceback:find("errors.lua"))
fails("unknown keyword", mx.exp, mx.zeros({1}), {foo = 1})
-- names that mx does not have are errors where they are read, not calls of nil or missing dtypes
fails("errors.lua:%d+: %[mx%] there is no mx.softmx; did you mean softmax%?", function() return mx.softmx(1) end)
fails("there is no mx.float31; did you mean float32?", function() return mx.zeros({3}, mx.float31) end)
fails("there is no mx.random.unifrom; did you mean uniform?", function() return mx.random.unifrom({3}) end)
fails("there is no mx.xyz$", function() return mx.xyz end)
assert(rawget(mx, "softmx") == nil and mx[1] == nil)
mx.mine = 3
assert(mx.mine == 3)
mx.mine = nil
-- a call of what is no function says what its line calls
fails("non%-function object; the line calls sin, nothing$", function() return nothing(math.sin(1)) end)
fails("non%-function object; the line calls missing$", function() return ({}).missing() end)
fails("non%-function object$", function() return ({})[1]() end)
fails("out of range", function() return mx.zeros({3})[7] end)
fails("is more than the largest buffer", function()
  return mx.eval(mx.broadcast_to(mx.zeros({1}), {1024, 1024, 1024, 1024}) + mx.arange(1024))
end)
fails("25.8 GB is more than", function() mx.eval(mx.zeros({1024 * 1024 * 1024, 1}) + mx.arange(6)) end)
-- a broadcast array takes no memory, printing it little; its copies are beyond the limit
local endless = mx.broadcast_to(mx.zeros({1}), {1024, 1024, 1024, 1024})
fails("more than the memory limit", mx.zeros, {1024, 1024, 1024, 1024})
assert(tostring(endless):find("[0, 0, 0, ..., 0, 0, 0]", 1, true))
fails("memory limit", endless.tolist, endless)
fails("2147483647", mx.zeros, {2 ^ 40})
fails("negative", mx.zeros, {-1})
-- MSL with errors: all are reported, with line and caret
local bad = mx.fast.metal_kernel{
  name = "bad", input_names = {"x"}, output_names = {"out"},
  source = "uint i = thread_position_in_grid.x;\nfloat v = unknown_name + 1;\nout[i] = v +;\n",
}
local good = mx.fast.metal_kernel{
  name = "good", input_names = {"x"}, output_names = {"out"},
  source = "uint i = thread_position_in_grid.x; out[i] = x[i + OFFSET] * 2;",
}
local x = mx.arange(64) * 1.0
local function launch(k, template)
  return k{inputs = {x}, template = template, grid = x, threadgroup = {32, 1, 1}, output_shapes = {x},
    output_dtypes = {mx.float32}}
end
fails("source:3", function() mx.eval(launch(bad)) end)
fails("%^", function() mx.eval(launch(bad)) end)
-- out of bounds: kernel, buffer, index and line are named
fails("good.*x%[1000%].*64 elements.*source:1", function() mx.eval(launch(good, {{"OFFSET", 1000}})) end)
same(launch(good, {{"OFFSET", 0}})[3], 6)
fails("inputs has 2 entries", good, {inputs = {x, x}, grid = x, threadgroup = {1, 1, 1}, output_shapes = {x},
  output_dtypes = {mx.float32}})
fails("limit of 1024 threads", function()
  mx.eval(good{inputs = {x}, template = {{"OFFSET", 0}}, grid = {4096, 1, 1}, threadgroup = {2048, 1, 1},
    output_shapes = {{4096}}, output_dtypes = {mx.float32}})
end)
