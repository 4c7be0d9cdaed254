package luabind

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/tensor"
)

// kernelOf is how a script begins: call(body) runs a kernel of 64 threads, and gives its output.
const kernelOf = `
local function call(body) return mx.fast.metal_kernel{name = "k", input_names = {"x"}, output_names = {"o"},
  header = [[
struct S { float p; float q; };
float piece(float a) { if (a > 3) return 1; if (a > 2) { return 2; } return a; }
void into(float a, thread float& r) { r = a; }
void fill(float a, thread float* r) { for (int i = 0; i < 3; i++) r[i] = a + i; }
]],
  source = "uint i = thread_position_in_grid.x; uint l = thread_position_in_threadgroup.x; " .. body}{
  inputs = {mx.arange(64):astype(mx.float32)}, grid = {64, 1, 1}, threadgroup = {64, 1, 1}, output_shapes = {{64}},
  output_dtypes = {mx.float32}} end
`

// where is how every message of the validation layer names the command and the script's line.
const where = `in kernel custom_kernel_k \[metal_kernel fire.lua:2\], command \d+`

// TestValidationMessages: what a kernel does wrong, and the message: it names kernel, buffer or variable, command and
// line.
func TestValidationMessages(t *testing.T) {
	mine := `buffer of metal_kernel made at fire.lua:2 \(#\d+, 256 bytes\), `
	for name, c := range map[string]struct{ body, want string }{
		"out of bounds, written": {"o[i + 8] = x[i];",
			`write of o\[64\] is out of range: o has 64 elements .*` + mine + where},
		"out of bounds, read": {"o[i] = x[int(i) - 1];", `read of x\[-1\] is out of range: x has 64 elements ` +
			`\(source:1:\d+\): buffer of astype made at fire.lua:\d+ \(#\d+, \d+ bytes\), ` + where},
		"race on device memory": {"o[i / 40] = x[i];",
			`race on device memory: write of o\[0\], which another thread of the SIMD-group ` +
				`wrote with no barrier between them .*` + mine + where},
		"race on threadgroup memory": {"threadgroup float t[64]; t[l] = x[i]; " +
			"threadgroup_barrier(mem_flags::mem_threadgroup);" +
			" o[i] = t[l ^ 32]; t[l] = 3;", `race on threadgroup memory: read of t\[0\], which another SIMD-group wrote .*` +
			where},
		"unset device memory": {"o[i] += x[i];", `read of device memory o\[0\] before anything was written to it .*` +
			`buffer of metal_kernel made at fire.lua:2 \(#\d+, 256 bytes\), which this kernel ` +
			`itself is to write: no earlier command wrote that element`},
		"unset threadgroup memory": {"threadgroup float t[64]; o[i] = t[l];",
			`read of threadgroup memory t\[0\] before anything was written to it .*` + where},
		"unset array": {"float a[4]; a[0] = 1; o[i] = a[i % 4];",
			`read of thread memory a\[1\] before anything was written to it \(source:1:\d+\), ` + where},
		"unset variable": {"float y; o[i] = y + x[i];",
			`read of the variable y before anything was assigned to it .*` + where},
		"on one way": {"float y; if (x[i] > 3) y = 2; o[i] = y;", `read of the variable y before .*` + where},
		"unset sum": {"float y; for (int j = 0; j < 4; j++) y += x[i]; o[i] = y;",
			`read of the variable y .*` + where},
		"the next round": {"float s = 0; for (int j = 0; j < 4; j++) { float y; if (j == 0) y = 1; s += y; } o[i] = s;",
			`read of the variable y .*` + where},
		"the next round of a long loop": {"float s = 0; for (int j = 0; j < x[i] + 90; j++) { float2 y; if (j == 0) y = 1; " +
			"s += y.x; } o[i] = s;", `read of the variable y .*` + where},
		"an element":           {"float a[4]; a[0] = 1; o[i] = a[1];", `read of the variable a before .*` + where},
		"a branch":             {"bool v; if (v) o[i] = 1; else o[i] = 0;", `read of the variable v .*` + where},
		"a loop":               {"int n; for (int j = 0; j < n; j++) o[i] = 1;", `read of the variable n .*` + where},
		"an address":           {"uint v; o[v] = 1;", `read of the variable v .*` + where},
		"computed with a part": {"float4 v; v.x = x[i]; o[i] = v.y + 1;", `read of the variable v .*` + where},
		"another lane's": {"float v; if (l == 3) v = 1; o[i] = simd_shuffle(v, 4);",
			`read of the variable v .*` + where},
		"a sum of lanes": {"float v; if (l == 3) v = 1; o[i] = simd_sum(v);", `read of the variable v .*` + where},
		"through threadgroup memory": {"threadgroup float t[64]; float s; t[l] = s; o[i] = t[l];",
			`read of the variable s .*` + where},
		"a part of a structure": {"S s; s.p = 1; o[i] = s.q;",
			`64 of the 64 elements of float32 \(64,\) were never written, the first at 0, by kernel custom_kernel_k .*`},
		"threads that never ran": {"if (i < 40) o[i] = x[i];",
			`24 of the 64 elements of float32 \(64,\) were never written, ` +
				`the first at 40, by kernel custom_kernel_k \[metal_kernel fire.lua:2\], command \d+`},
		"a barrier that some do not reach": {"if (l < 5) threadgroup_barrier(mem_flags::mem_none); o[i] = 1;",
			`barrier is not reached by all threads: 27 of the 32 .*` + where},
	} {
		t.Run(name, func(t *testing.T) {
			withDevice(t, metal.DeviceOptions{Validate: true})
			for range 3 {
				err := runLua(t, kernelOf+`call("`+c.body+`"):tolist()`)
				require.Error(t, err)
				require.Regexp(t, c.want, err.Error())
			}
		})
	}
}

// TestValidationOfRightKernels: what is right in C++ is right here, although values pass through things that are
// partly unset.
func TestValidationOfRightKernels(t *testing.T) {
	withDevice(t, metal.DeviceOptions{Validate: true})
	for name, c := range map[string]struct {
		body string
		want string // the element at index i
	}{
		"a vector in part": {"float4 v; v.x = x[i]; float4 w = v; o[i] = w.x;", "i"},
		"a structure in part": {"S a[4]; a[i % 4].p = x[i]; S b[4]; b[(i + 1) % 4] = a[i % 4]; o[i] = b[(i + 1) % 4].p;",
			"i"},
		"a structure in threadgroup memory": {"threadgroup S t[64]; S s; s.p = x[i]; t[l] = s; o[i] = t[l].p;", "i"},
		"a part of a structure in threadgroup memory": {"threadgroup S t[64]; t[l].p = x[i]; S s = t[l]; t[l ^ 1 ^ 1] = s; " +
			"o[i] = s.p;", "i"},
		"a guarded value": {"float m = 0, n; bool s = false; if (i > 5) { n = 3; s = true; } o[i] = s ? n : m;",
			"i > 5 and 3 or 0"},
		"a guarded condition": {"bool b; bool c = i < 32; if (c) b = x[i] > 3; o[i] = c && b ? 1 : 0;",
			"i > 3 and i < 32 and 1 or 0"},
		"the other order": {"bool b; bool c = i < 32; if (c) b = x[i] > 3; o[i] = !c || b ? 1 : 0;", "i > 3 and 1 or 0"},
		"the first round sets it": {"float m; for (int j = 0; j < 4; j++) { if (j == 0) m = x[i]; else m += j; } o[i] = m;",
			"i + 6"},
		"a new one each round": {"float s = 0; for (int j = 0; j < x[i]; j++) { float y, z[2]; " +
			"if (j >= 0) y = 1; z[j % 2] = 1; " +
			"s += y * z[j % 2]; } o[i] = s;", "i"},
		"every case": {"float m; switch (i % 3) { case 0: m = 1; break; case 1: m = 2; break; default: m = 3; } o[i] = m;",
			"i % 3 + 1"},
		"early returns": {"o[i] = piece(x[i]);", "i > 3 and 1 or i > 2 and 2 or i"},
		"by reference":  {"float h; into(x[i], h); o[i] = h;", "i"},
		"by pointer":    {"float h[3]; fill(x[i], h); o[i] = h[0] + h[i % 3];", "2 * i + i % 3"},
		"active lanes": {"float m; o[i] = 0; if (l % 32 < 5) { m = 1; o[i] = simd_sum(m); }",
			"i % 32 < 5 and 5 or 0"},
		"the first lane":    {"float m; if (l % 32 == 0) m = 7; m = simd_broadcast_first(m); o[i] = m;", "7"},
		"half":              {"half h; if (i >= 0) h = half(i % 8); o[i] = h * h;", "(i % 8) * (i % 8)"},
		"one value for all": {"o[0] = 5; o[i] = i == 0 ? 5 : x[i];", "i == 0 and 5 or i"},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, runLua(t, kernelOf+`local got = call("`+c.body+`"):tolist()
for i = 0, 63 do local want = `+c.want+` if got[i + 1] ~= want then error(i .. ": " .. got[i + 1]) end end`))
		})
	}
}

// TestSmallArraysEndWhereTheyEnd: no padding hides an access beyond the end of an array of a few bytes.
func TestSmallArraysEndWhereTheyEnd(t *testing.T) {
	for _, validate := range []bool{false, true} {
		withDevice(t, metal.DeviceOptions{Validate: validate})
		require.NoError(t, runLua(t, `
local function run(n, dtype, body) return mx.fast.metal_kernel{name = "k", input_names = {"x"}, output_names = {"o"},
  source = body}{inputs = {mx.full({n}, 1, dtype) * 1}, grid = {1, 1, 1}, threadgroup = {1, 1, 1},
  output_shapes = {{n}}, output_dtypes = {dtype}}:tolist() end
for _, n in ipairs({1, 2, 3, 5, 9}) do for _, dtype in ipairs({mx.bool, mx.float16, mx.float32, mx.int64}) do
  local ok, e = pcall(run, n, dtype, "o[" .. n .. "] = 1;")
  assert(not ok and tostring(e):find("write of o[" .. n .. "] is out of range: o has " .. n .. " elements", 1, true),
    tostring(e))
  ok, e = pcall(run, n, dtype, "for (int i = 0; i < " .. n .. "; i++) o[i] = x[i + 1];")
  assert(not ok and tostring(e):find("read of x[" .. n .. "] is out of range: x has " .. n .. " elements", 1, true),
    tostring(e))
end end
`))
	}
}

// TestRecursionIntoACompiledFunction: a compiled function that calls itself ends with an error, and soon.
func TestRecursionIntoACompiledFunction(t *testing.T) {
	t.Parallel()
	require.NoError(t, runLua(t, `
local f
f = mx.compile(function(x) return f(x) end)
local ok, e = pcall(f, mx.ones({2}))
assert(not ok and tostring(e):find("stack overflow"), tostring(e))
f = mx.compile(function(x) return x + 1 end)
assert(f(mx.ones({2})):tolist()[2] == 2)
`))
}

// sliced is programs whose kernels read and write overlapping slices of one parent, which is donated; and kernels of
// several outputs of which some are dropped.
const sliced = `
local n = 8192
local function seq(a, b, f) local t = {} for i = a, b do t[#t + 1] = f(i) end return t end
local k = mx.fast.metal_kernel{name = "h", input_names = {"x", "y"}, output_names = {"o", "p"},
  source = "uint i = thread_position_in_grid.x; o[i] = x[i] + y[i]; p[i] = x[i] - y[i];"}
local function two(x, y, m) return k{inputs = {x, y}, grid = {m, 1, 1}, threadgroup = {256, 1, 1},
  output_shapes = {{m}, {m}}, output_dtypes = {mx.float32, mx.float32}} end
for round = 1, 2 do
  local x = mx.arange(n):astype(mx.float32) * 1
  local a, b = two(x["0:4096"], x["2048:6144"], 4096)
  local c, d = two(a["1024:3072"], b["0:2048"], 2048)
  local e = c * 2 + d
  x:free() a:free()
  mx.eval(e, b)
  same(e, seq(0, 2047, function(i) local a, b = 2 * i + 4096, -2048 return (a + b) * 2 + (a - b) end))
  same(b, seq(0, 4095, function() return -2048 end))

  local p = mx.arange(n):astype(mx.float32) + 1
  local low, high = p["0:4096"], p["4096:"]
  local q = p:at("0:4096"):set(high)
  p:free()
  local r = q:at("4096:"):set(low)
  q:free()
  mx.eval(r)
  same(r, seq(0, n - 1, function(i) return i < 4096 and i + 4097 or i - 4095 end))
  same(low, seq(0, 4095, function(i) return i + 1 end))

  local s = mx.arange(n):astype(mx.float32) * 1
  local t = s:at("1:"):set(s[":-1"])
  s:free()
  local u = t:at(":-1"):add(t["1:"])
  t:free()
  mx.eval(u)
  local function shifted(i) return math.max(i - 1, 0) end
  same(u, seq(0, n - 1, function(i) return shifted(i) + (i < n - 1 and shifted(i + 1) or 0) end))

  local v = mx.arange(4096):astype(mx.float32):reshape({64, 64})
  local w = v * 2
  local z = w + 1
  local sum = mx.sum(w.T + mx.exp(z * 0), 0)
  w:free()
  mx.eval(sum, z)
  same(z:reshape({-1}), seq(0, 4095, function(i) return 2 * i + 1 end))
  same(sum, seq(0, 63, function(i) return 64 * (128 * i + 1) + 63 * 64 end))

  local g = mx.zeros({n}) + 0
  local h = g:at("::2"):set(1)
  g:free()
  local m = h:at("::-1"):add(h)
  h:free()
  mx.eval(m)
  same(m, seq(0, n - 1, function() return 1 end))
end
`

// TestSlicesOfOneParent: slices are right under validation, fused or not, and a missing barrier is found.
func TestSlicesOfOneParent(t *testing.T) {
	for _, fuse := range []bool{true, false} {
		before := tensor.SetFusion(fuse)
		t.Cleanup(func() { tensor.SetFusion(before) })
		for _, validate := range []bool{true, false} {
			withDevice(t, metal.DeviceOptions{Validate: validate})
			require.NoError(t, runLua(t, sliced))
		}
		withDevice(t, metal.DeviceOptions{Validate: true, Ablate: metal.Ablations{DropRAW: true}})
		require.ErrorContains(t, runLua(t, sliced), "[validate] missing barrier (read after write)")
	}
}
