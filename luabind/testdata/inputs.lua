-- Inputs of kernels are read-only, but for mutable_inputs.
local function kernel(source, more)
  local cfg = {name = "k", input_names = {"x", "n"}, output_names = {"out"}, source = source}
  for key, v in pairs(more or {}) do cfg[key] = v end
  return mx.fast.metal_kernel(cfg)
end
local function call(k, x, n, shape)
  return k{inputs = {x, n or mx.array(0, mx.int32)}, grid = {16, 1, 1}, threadgroup = {16, 1, 1},
    output_shapes = {shape or {16}}, output_dtypes = {mx.float32}}
end
local only = "which is an input: kernels only read those, but for mutable_inputs"
local x = mx.arange(16):astype(mx.float32)
local count = mx.arange(16):astype(mx.int32)
mx.eval(x, count)
-- what is seen in the text
for _, source in ipairs({
  "*(device float*)x = 1e6f;",
  "const_cast<device float*>(x)[thread_position_in_grid.x] = 1;",
  "struct S {device float* p;}; S s; s.p = (device float*)x; s.p[3] = 2;",
  "device float* p[2] = {(device float*)x, (device float*)x + 4}; p[1][n] = 2;",
  "atomic_fetch_add_explicit((device atomic_float*)x, 1.0f, memory_order_relaxed);",
  "for (int i = 0; i < n; i++) ((device float*)x)[i] = 0;",
}) do
  fails("error MSL0346", function() mx.eval(call(kernel(source), x)) end)
  fails(only, function() mx.eval(call(kernel(source), x)) end)
end
fails("cannot be assigned to", function() mx.eval(call(kernel("x[0] = 1;"), x)) end)
-- what is seen when it runs, with the kernel's name and the line
for _, source in ipairs({
  "\ndevice float* p = n == 0 ? (device float*)x : out; p[thread_position_in_grid.x] = 7;",
  "\ndevice float* p[2] = {out, (device float*)x}; p[1 + n][thread_position_in_grid.x] = 2;",
  "\nulong q = (ulong)x; *(device float*)(q + ulong(4 * n)) = 3;",
  "\ndevice float* p = out; if (n == 0) p = (device float*)x; for (int i = 0; i < 4; i++) p[i] = i;",
}) do
  fails("%[custom_kernel_k%] write of x%[0%], " .. only .. " %(source:2:", function() mx.eval(call(kernel(source), x)) end)
end
fails("%[custom_kernel_k%] atomic access of x%[0%], " .. only .. " %(source:1:", function()
  mx.eval(call(kernel("atomic_fetch_add_explicit((device atomic_float*)(n == 0 ? (device float*)x : out), 1.0f, " ..
    "memory_order_relaxed);"), x))
end)
-- what goes out of its bounds stays out of what lies beside
fails("out of range", function() mx.eval(call(kernel("out[long(n) - 64] = 1;"), x)) end)
-- macros of a header do not make inputs writable
fails("the header changes what const means", function()
  mx.eval(call(kernel("x[0] = 1; out[0] = 1;", {header = "#define const"}), x))
end)
fails("its signature 3: the header changes it", function()
  mx.eval(call(kernel("(void)x;", {header = "#define custom_kernel_k(...) custom_kernel_k(device float* x)"}), x))
end)
same(x, mx.arange(16):tolist())
same(call(kernel("out[thread_position_in_grid.x] = atomic_load_explicit((device atomic_float*)x + 3, " ..
  "memory_order_relaxed);"), x), mx.full({16}, 3):tolist())

-- mutable_inputs: the call changes a copy, which is a further result
local step = kernel("uint i = thread_position_in_grid.x; out[i] = x[i]; x[i] += 1 + n;", {mutable_inputs = {"x"}})
assert(tostring(step) == "metal_kernel k(x, n) -> out, x", tostring(step))
local out, changed = call(step, x)
same(out, mx.arange(16):tolist())
same(changed, (mx.arange(16) + 1):tolist())
same(x, mx.arange(16):tolist())
-- in their order, of any size and dtype, without other outputs, 0-d ones as references
local two = mx.fast.metal_kernel{name = "two", input_names = {"a", "b", "c"}, output_names = {}, mutable_inputs = {"c", "a"},
  source = "a[0] += b[0]; c += 2; a[1] = a_shape[0] * 10 + a_strides[0];"}
local function both(a, b, c)
  return two{inputs = {a, b, c}, grid = {1, 1, 1}, threadgroup = {1, 1, 1}, output_shapes = {}, output_dtypes = {}}
end
local c, a = both(mx.array({5, 6, 7}, mx.int32), mx.array({0.5}), mx.array(3, mx.float16))
same(c, 5)
same(a, {5, 31, 7})
assert(a.dtype == mx.int32 and c.dtype == mx.float16)
-- one array as two mutable inputs, and as another input beside
local s = mx.array({1, 2, 3}) * 1
mx.eval(s)
c, a = both(s, s, mx.array(1))
same(a, {2, 31, 3})
same(s, {1, 2, 3})
local twice = mx.fast.metal_kernel{name = "twice", input_names = {"a", "b"}, output_names = {}, mutable_inputs = {"a", "b"},
  source = "a[0] = 10; b[1] = 20;"}
local function fresh() return mx.array({1, 2, 3}) * 1 end
local y = fresh()
local p, q = twice{inputs = {y, y}, grid = {1, 1, 1}, threadgroup = {1, 1, 1}, output_shapes = {}, output_dtypes = {}}
y = nil
same(p, {10, 2, 3})
same(q, {1, 20, 3})
-- also where nobody else holds it: what the kernel reads beside is what it was
local spread = mx.fast.metal_kernel{name = "spread", input_names = {"a", "b"}, output_names = {"o"}, mutable_inputs = {"a"},
  source = "uint i = thread_position_in_grid.x; a[i] = 10; threadgroup_barrier(mem_flags::mem_device); o[i] = b[31 - i];"}
local function spreads(v)
  return spread{inputs = {v, v}, grid = {32, 1, 1}, threadgroup = {32, 1, 1}, output_shapes = {{32}},
    output_dtypes = {mx.float32}}
end
p, q = mx.compile(function(v) return spreads(v + 0) end)(mx.ones({32}))
assert(p:sum():item() == 32 and q:sum():item() == 320)
-- views of one buffer, as an input and as a mutable one
local whole = mx.arange(8):astype(mx.float32)
mx.eval(whole)
local shift = mx.fast.metal_kernel{name = "shift", input_names = {"from", "to"}, output_names = {}, mutable_inputs = {"to"},
  source = "uint i = thread_position_in_grid.x; to[i] = from[i];"}
same(shift{inputs = {whole["0:6"], whole["2:8"]}, grid = {6, 1, 1}, threadgroup = {6, 1, 1}, output_shapes = {},
  output_dtypes = {}}, {0, 1, 2, 3, 4, 5})
same(whole, {0, 1, 2, 3, 4, 5, 6, 7})
-- transposed and broadcast ones are made row-contiguous
same(shift{inputs = {mx.array({{9, 8}, {7, 6}}), mx.array({{1, 2}, {3, 4}}).T}, grid = {2, 1, 1}, threadgroup = {2, 1, 1},
  output_shapes = {}, output_dtypes = {}}, {{9, 8}, {2, 4}})
same(shift{inputs = {mx.array({9, 8}), mx.zeros({3})}, grid = {2, 1, 1}, threadgroup = {2, 1, 1}, output_shapes = {},
  output_dtypes = {}}, {9, 8, 0})

-- the buffer itself where nobody else holds it
local n = 1024 * 1024
local bump = mx.fast.metal_kernel{name = "bump", input_names = {"x"}, output_names = {}, mutable_inputs = {"x"},
  source = "x[thread_position_in_grid.x] += 1;"}
local function bumped(v)
  return bump{inputs = {v}, grid = v, threadgroup = {256, 1, 1}, output_shapes = {}, output_dtypes = {}}
end
local chain = mx.compile(function(v)
  v = v + 1
  for _ = 1, 10 do v = bumped(v) end
  return v
end)
local state = mx.zeros({n})
mx.eval(state, chain(state))
mx.synchronize()
mx.reset_peak_memory()
local before = mx.get_active_memory()
state = chain(state)
mx.eval(state)
assert(mx.get_peak_memory() - before < 2 * 4 * n, "a copy was made: " .. mx.get_peak_memory() - before)
assert(state:sum():item() == 11 * n)
local held = state
state = bumped(state)
mx.eval(state)
assert(held:sum():item() == 11 * n and state:sum():item() == 12 * n)

-- compiled, exported, batched, differentiated
for _, options in ipairs({{shapeless = false}, {shapeless = true}}) do
  local f = mx.compile(function(v) local o, w = call(step, v * 2, mx.array(1, mx.int32), v); return o + w, v end, options)
  for _ = 1, 2 do
    local r, same_v = f(x)
    same(r, (mx.arange(16) * 4 + 2):tolist())
    same(same_v, mx.arange(16):tolist())
  end
end
local file = os.tmpname()
mx.export_function(file, function(v) return call(step, v) end, x)
local imported = mx.import_function(file)
os.remove(file)
out, changed = imported(x)
if type(out) == "table" then out, changed = out[1], out[2] end
same(out, mx.arange(16):tolist())
same(changed, (mx.arange(16) + 1):tolist())
local double = mx.custom_function(function(v) local o, w = call(step, v); return o + w end)
double:vjp(function(_, cotangent) return cotangent * 2 end)
same(mx.grad(function(v) return mx.sum(double(v)) end)(x), mx.full({16}, 2):tolist())
fails("metal_kernel", function() mx.eval(mx.grad(function(v) return mx.sum((call(step, v))) end)(x)) end)

-- what is wrong with a declaration
local function declares(message, names)
  fails(message, function() kernel("", {mutable_inputs = names}) end)
end
declares('mutable_inputs has "y", which is none of the inputs x, n', {"y"})
declares('mutable_inputs has "x" twice', {"x", "x"})
declares('mutable_inputs is the string "x", want a table of names', "x")
fails("needs at least one output", function() kernel("", {output_names = {}}) end)
