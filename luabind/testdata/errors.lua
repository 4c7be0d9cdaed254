-- Bad input: each a clear error, and the state lives on.
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
fails("there is no mx.xyz; help%(mx%) lists what there is$", function() return mx.xyz end)
assert(rawget(mx, "softmx") == nil and mx[1] == nil)
mx.mine = 3
assert(mx.mine == 3)
mx.mine = nil
-- a call of what is no function says what is called
fails("attempt to call global 'nothing' %(a nil value%)$", function() return nothing(math.sin(1)) end)
fails("attempt to call field 'missing' %(a nil value%)$", function() return ({}).missing() end)
fails("attempt to call field '%?' %(a nil value%)$", function() return ({})[1]() end)
fails("out of range", function() return mx.zeros({3})[7] end)
fails("is more than the largest buffer", function()
  return mx.eval(mx.broadcast_to(mx.zeros({1}), {1024, 1024, 1024, 1024}) + mx.arange(1024))
end)
fails("25.8 TB is more than", function() mx.eval(mx.zeros({1024 * 1024 * 1024, 1}) + mx.arange(6000)) end)
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
-- what the Lua engine says of arrays where it wants something else, and what to write instead
local byName = "; write a:item%(%) < b of an array of one element, mx.less%(a, b%) element by element$"
fails("attempt to compare array with number" .. byName, function() return mx.zeros({2}) < 1 end)
fails("attempt to compare number with array" .. byName, function() if mx.zeros({2}) > 1 then end end)
fails("attempt to compare nil with array" .. byName, function() return mx.zeros({2}) >= nil end)
fails("attempt to compare array with table" .. byName, function() return mx.zeros({2}) < {1} end)
fails("attempt to call an array value; for row in x:rows%(%) do ... end goes through an array$",
  function() for row in mx.zeros({2}) do end end)
fails("attempt to call a table value; for i, x in ipairs%(t%) do", function() for row in {mx.zeros({2})} do end end)
fails("attempt to index upvalue 'dtype' %(a dtype value%)$", function()
  local dtype = mx.float32
  return (function() dtype.x = 1 end)()
end)
fails("attempt to perform arithmetic on field 'dtype' %(a dtype value%)$", function() return mx.zeros({2}).dtype * 2 end)
fails("attempt to compare two dtype values$", function() return mx.float32 < mx.float16 end)
fails("attempt to call local 'x' %(an array value%)$", function() local x = mx.zeros({2}) return x(1) end)
fails("bad argument #1 to 'ipairs' %(table expected, got array%)", function() for _ in ipairs(mx.zeros({2})) do end end)
fails("to 'ipairs' .*; for row in x:rows%(%) do", function() for _ in ipairs(mx.zeros({2})) do end end)
fails("got array%); x:item%(%) is the number", function() return math.sqrt(mx.array(4)) end)
fails("got array%); x:item%(%) is the number", function() return ("%g"):format(mx.array(4)) end)
-- names of other libraries, of other modules, and no far-fetched guesses
fails("there is no mx.unsqueeze; mx.expand_dims does that$", function() return mx.unsqueeze end)
fails("no method or property \"unsqueeze\"; mx.expand_dims does that$", function() return mx.zeros({1}).unsqueeze end)
fails("there is no mx.clamp; mx.clip does that$", function() return mx.clamp end)
fails("there is no mx.randn; mx.random.normal does that$", function() return mx.randn end)
fails("there is no mx.random.randn; mx.random.normal does that$", function() return mx.random.randn end)
fails("there is no mx.nn.matmul; there is mx.matmul$", function() return mx.nn.matmul end)
fails("there is no mx.linalg.nrom; did you mean norm", function() return mx.linalg.nrom end)
fails("there is no mx.linalg.jordan; help%(mx.linalg%) lists what there is$", function() return mx.linalg.jordan end)
-- what Python counts from 0, and what is a call elsewhere
local shape = mx.zeros({2, 3}).shape
fails("%[shape%] there is no dimension 0: .* x.shape%[1%] is the first, and x:dim%(0%)", function() return shape[0] end)
fails("there is no dimension %-1: .* x:dim%(%-1%)", function() return shape[-1] end)
assert(shape[3] == nil and shape.name == nil and mx.zeros(shape):dim(-1) == 3)
fails("; size of an array is a property: x.size$", function() return mx.zeros({2}):size() end)
-- Python's constants and functions
fails("True is Python: write true$", function() return mx.sum(mx.zeros({2}), {keepdims = True}) end)
fails("None is Python: write nil$", function() return None end)
assert(rawget(_G, "False") == nil and undefined == nil)
fails("call global 'len' %(a nil value%); Lua has no len: write #x$", function() return len(mx.zeros({2})) end)
fails("call global 'len' %(a nil value%); Lua has no len", function() for _ in range(len({})) do end end)
fails("call global 'range' %(a nil value%); Lua has no range: write for i", function() for _ in range(3) do end end)
fails("call method 'append' %(a nil value%); Lua has no append", function() local list = {} list:append(1) end)
fails("; Lua has no max: write math.max%(a, b%), or mx.max%(x%) of arrays$", function() return max(1, 2) end)
fails("call global 'missing' %(a nil value%)$", function() return mx.max(missing(1)) end)
-- syntax errors: name, line, what; a kernel's nested index that ended its text is pointed out
local function refused(pattern, text)
  local f, why = loadstring(text, "chunk")
  assert(f == nil and why:find(pattern), why)
end
refused("^%[string \"chunk\"%]:2: syntax error near '='$", "x = 1\ny = = 2")
refused("^%[string \"chunk\"%]: syntax error at EOF$", "x = ")
-- Python's and C's syntax
for text, hint in pairs({
  ["x = a @ b"] = "no @: write mx.matmul%(a, b%)$", ["x = a // b"] = "no //: write mx.floor_divide",
  ["if a != b then end"] = "no !=: write a ~= b",
  ["x += 1"] = "no %+=: write x = x %+ y$", ["x = a ** 2"] = "write a ^ b$",
  ["if a && b then end"] = "no &: write a and b",
  ["x = !a"] = "no !: write not a", ["y = x[1:2]"] = "; a slice is a text",
  ["import mlx"] = 'no import: write local mx = require%("mx"%)', ["def f(x): return x"] = "no def: write function f%(x%)",
  ["f(lambda x: x)"] = "no lambda: write function%(x%) return", ["f((2, 3))"] = "; a tuple is written {1, 2}",
  ["x = {1: 2}"] = "; a dict is written", ["# text"] = "no #: comments begin", ["x = a ? b : c"] = "no %?: write a and b or c",
  ["x = [1, 2]"] = "; a list is written {1, 2}$", ["y = f(x, axis=1)"] = "; keywords go into a table",
  ["x = a b c"] = "^%[string \"chunk\"%]:1: [^;]*$", ["f() = 1 -- a != b"] = "^%[string \"chunk\"%]:1: [^;]*$",
}) do refused(hint, text) end
refused("^%[string \"chunk\"%]:4: syntax error near 'w'; if line 3 is in a text", [==[
k = {source = [[
  uint i = 0;
  float v = a[b[i]];
  float w = 1;
  o[i] = v;
]]}]==])
refused("; if line 3 is in a text", [==[
s = "[[" -- [[ y[z[1]]
k = {source = [[ switch (i) {
    case 0: o[i] = 1; [[fallthrough]];
]]}]==])
refused("^%[string \"chunk\"%]:2: syntax error near '='$", "x = [[ a[b[1] ]\n]] = 2")
-- a kernel's attributes are in its signature only where they are named, and are suggested all the same
fails("'thread_position_in_gird' is not declared: did you mean 'thread_position_in_grid'%?", function()
  mx.eval(launch(mx.fast.metal_kernel{name = "typo", input_names = {"x"}, output_names = {"out"},
    source = "out[thread_position_in_gird.x] = x[0];"}))
end)
-- templates are a list of pairs
fails("template has the key \"N\", want a list of pairs: {{\"N\", value}}", function()
  mx.eval(good{inputs = {x}, template = {OFFSET = 0, N = 1}, grid = x, threadgroup = {1, 1, 1}, output_shapes = {x},
    output_dtypes = {mx.float32}})
end)
-- what a kernel needs for a gradient, what a compiled function's array needs to leave it
fails("metal_kernel has no gradient: give it one with custom_function", function()
  mx.grad(function(v) return launch(good, {{"OFFSET", 0}}):sum() + mx.sum(v) end)(x)
  mx.grad(function(v)
    return good{inputs = {v}, template = {{"OFFSET", 0}}, grid = v, threadgroup = {32, 1, 1}, output_shapes = {v},
      output_dtypes = {mx.float32}}:sum()
  end)(x)
end)
KEPT = {n = mx.array(0)}
fails("[compile] KEPT.n is set to an array of the trace, made at testdata/errors.lua:", mx.compile(function(v)
  KEPT.n = KEPT.n + v
  return KEPT.n
end), mx.array(1))
local count = mx.compile(function(v) KEPT[#KEPT + 1] = v + 1 return v end)
fails("belongs to a compile trace that has ended: return it from the function instead of keeping it", function()
  count(mx.array(1))
  return KEPT[1] + 1
end)
fails("belongs to a compile trace that has ended: return it from the function", function() mx.eval(KEPT) end)
-- functions of Go and Lua that call each other without end
local function again() return (("x"):gsub("x", again)) end
fails("stack overflow: Go and Lua functions call each other too deeply", again)
local function sorted() table.sort({2, 1}, sorted) end
fails("stack overflow: Go and Lua functions call each other too deeply", sorted)
-- a tree that holds one table twice, forty times over
local tree = {mx.array(1)}
for _ = 1, 40 do tree = {tree, tree} end
local none = {1}
for _ = 1, 40 do none = {none, none} end
local function second(a) return mx.sum(a) end
for name, f in pairs{grad = mx.grad(second), compile = mx.compile(second), vmap = mx.vmap(second)} do
  local where = ": does it hold one table in many places?"
  fails("[" .. name .. "] a tree has more than 1048576 arrays" .. where, f, mx.ones({2}), tree)
  fails("[" .. name .. "] a tree has more than 4194304 entries" .. where, f, mx.ones({2}), none)
end
fails("[vmap] a tree has more than 4194304 entries", mx.vmap(function(x) return x, none end), mx.ones({2}))
-- where the order does not matter, each table is visited once; also one that holds itself
tree.tree = tree
mx.eval(tree, none)
mx.async_eval(none, tree)
local kept = mx.scope(function() local x = mx.ones({2}) + 1; mx.keep({none, tree}); return {tree, none, {x}} end)
assert(kept[3][1]:tolist()[1] == 2)
-- functions that are values have a text
assert(tostring(mx.fast.metal_kernel{name = "half", input_names = {"x", "y"}, output_names = {"out"}, source = ";"}) ==
  "metal_kernel half(x, y) -> out")
assert(tostring(mx.compile(print)) == "compiled" and tostring(mx.custom_function(print)) == "custom_function")
assert(tostring(mx.zeros({2}):at(0)) == "at")
-- reductions of nothing name the function that was called
for _, name in ipairs({"max", "min", "argmax", "logsumexp"}) do
  fails("%[" .. name .. "%] cannot reduce axis 0 of shape %(0, 3%)", mx[name], mx.zeros({0, 3}), 0)
end
