package jit_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/internal/brief"
	"github.com/mlxlua/mlxlua/metal/interp"
	"github.com/mlxlua/mlxlua/metal/jit"
	"github.com/mlxlua/mlxlua/metal/launch"
	"github.com/mlxlua/mlxlua/metal/msl"
)

// memCase is a kernel and a launch of it; buffers are copied for each run.
type memCase struct {
	name, text string
	grid, tg   [3]int
	buffers    [][]byte
	tgBytes    []int
}

// randomBytes returns n pseudo-random bytes.
func randomBytes(n int, seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 1))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// small returns n values of 4 bytes below limit.
func small(n int, limit uint32, seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 2))
	var b []byte
	for range n {
		b = binary.LittleEndian.AppendUint32(b, r.Uint32N(limit))
	}
	return b
}

// floatsOf returns n ordinary float32.
func floatsOf(n int, seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 3))
	var b []byte
	for range n {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(r.NormFloat64())))
	}
	return b
}

func (c memCase) run(r runner) ([][]byte, error) {
	bufs := make([][]byte, len(c.buffers))
	for i, b := range c.buffers {
		bufs[i] = append([]byte(nil), b...)
	}
	err := r(launch.Launch{Grid: c.grid, Threadgroup: c.tg, Buffers: bufs, ThreadgroupBytes: c.tgBytes}, 1)
	return bufs, err
}

// check runs a case on every executor; faults must have the same text, and buffers be equal where there is none.
func (c memCase) check(t *testing.T) {
	t.Helper()
	mod, err := msl.Compile(msl.Source{Name: "k", Text: c.text}, msl.Options{})
	require.NoError(t, err, c.text)
	k := mod.Kernels[0]
	if len(c.tgBytes) == 0 {
		c.tgBytes = make([]int, len(k.Params))
	}
	ref, err := interp.Prepare(k, mod.Files)
	require.NoError(t, err)
	want, wantErr := c.run(runs(ref.NewRun))
	for _, l := range levels(t) {
		p, err := jit.Prepare(k, mod.Files, jit.Options{Level: l})
		require.NoError(t, err, "%s %s", c.name, l)
		got, err := c.run(runs(p.NewRun))
		if wantErr != nil {
			require.EqualError(t, err, wantErr.Error(), "%s %s\n%s", c.name, l, c.text)
			continue
		}
		require.NoError(t, err, "%s %s\n%s", c.name, l, c.text)
		require.Empty(t, difference(k, want, got), "%s %s\n%s", c.name, l, c.text)
	}
}

// element types by their name in Metal, with their size.
var elements = []struct {
	name string
	size int
}{
	{"bool", 1}, {"char", 1}, {"uchar", 1}, {"short", 2}, {"ushort", 2}, {"int", 4}, {"uint", 4}, {"long", 8},
	{"ulong", 8}, {"half", 2}, {"bfloat", 2}, {"float", 4},
}

const head = "#include <metal_stdlib>\nusing namespace metal;\n"

// TestEveryElementAndPattern copies elements of every type through every way to address memory, in whole
// threadgroups and at the grid's edge.
func TestEveryElementAndPattern(t *testing.T) {
	t.Parallel()
	// Indices of the load and of the store; n is the number of threads.
	patterns := []struct {
		name, load, store string
		cross             bool
	}{
		{"consecutive", "i", "i", false},
		{"shifted", "i + 3", "i + 1", false},
		{"behind", "i + 40 - 8", "i", false},
		{"stride2", "2 * i", "i", false},
		{"stride3", "3 * i", "i", false},
		{"stride4", "4 * i + 1", "i", true},
		{"stride8", "8 * i + 5", "i", true},
		{"strided store", "i", "3 * i", false},
		{"repeated", "i / 4", "i", false},
		{"repeated8", "i / 8 + 2", "i", true},
		{"mod", "i % 8", "i", false},
		{"reversed", "n - 1 - i", "i", false},
		{"uniform", "n / 2", "i", false},
		{"uniform constant", "5", "i", false},
		{"gather", "x[i] % n", "i", false},
		{"gather5", "5 * (x[i] % n) + 1", "i", true},
		{"gather store", "i", "x[i] % n", false},
		{"wide", "ulong(x[i] % n) * ulong(x[1] % 3 + 1)", "i", false},
		{"wide store", "i", "ulong(x[i] % n) * ulong(x[1] % 3 + 1)", true},
		{"signed", "int(i) - 0", "int(i)", false},
		{"short index", "short(i & 31) + short(3)", "i", false},
		{"uchar index", "uchar(uchar(i) + uchar(200))", "i", false},
		{"same store", "i", "7", false},
		{"lane", "simd_lane", "i", false},
		{"lane stride", "simd_lane * 4 + i / 32", "i", true},
	}
	const n = 150
	x := small(n*8, 1<<30, 9)
	for _, e := range elements {
		for pn, p := range patterns {
			if testing.Short() && pn%3 != 0 {
				continue
			}
			cross := ""
			if p.cross {
				cross = "v0 = simd_shuffle(v0, ushort(i % 32));"
			}
			if e.name == "bool" || e.name == "long" || e.name == "ulong" {
				cross = strings.Replace(cross, "v0 = simd_shuffle(v0, ushort(i % 32))", "if (simd_sum(int(i)) == 0) v0 = 1", 1)
			}
			c := memCase{name: e.name + " " + p.name, grid: [3]int{n, 1, 1}, tg: [3]int{64, 1, 1}}
			c.text = head + fmt.Sprintf(`kernel void k(const device %[1]s* a [[buffer(0)]], device %[1]s* o [[buffer(1)]],
  const device uint* x [[buffer(2)]], uint i [[thread_position_in_grid]], uint n [[threads_per_grid]],
  uint simd_lane [[thread_index_in_simdgroup]]) {
  %[1]s v0 = a[%[2]s];
  %[3]s
  o[%[4]s] = v0;
}`, e.name, p.load, cross, p.store)
			c.buffers = [][]byte{elementBytes(e.name, 8*n*e.size, 1), make([]byte, 4*n*e.size), x}
			c.check(t)
		}
	}
}

// elementBytes returns bytes of elements; halves are numbers, since what conversions make of a NaN's payload is not
// fixed.
func elementBytes(name string, n int, seed uint64) []byte {
	b := randomBytes(n, seed)
	for i := 1; i < n; i += 2 {
		switch name {
		case "half":
			if b[i]&0x7c == 0x7c {
				b[i] &= 0xbf
			}
		case "bfloat":
			if b[i]&0x7f == 0x7f {
				b[i] &= 0xbf
			}
		case "float":
			if i%4 == 3 && b[i]&0x7f == 0x7f {
				b[i] &= 0xbf
			}
		}
	}
	return b
}

// TestUnderMasks loads and stores where only some lanes are active, in every element type.
func TestUnderMasks(t *testing.T) {
	t.Parallel()
	const n = 100
	for _, e := range elements {
		for _, cond := range []string{"i % 3 == 0", "x[i] & 1", "i < 37", "i > 90", "i == 77"} {
			for _, idx := range []string{"i", "4 * i", "x[i] % n", "3", "i / 4"} {
				c := memCase{name: e.name + " " + cond, grid: [3]int{n, 1, 1}, tg: [3]int{32, 1, 1}}
				c.text = head + fmt.Sprintf(`kernel void k(const device %[1]s* a [[buffer(0)]], device %[1]s* o [[buffer(1)]],
  const device uint* x [[buffer(2)]], uint i [[thread_position_in_grid]], uint n [[threads_per_grid]]) {
  if (%[2]s) { o[%[3]s] = a[%[3]s]; } else { o[n * 4 + i] = a[i + 5]; }
}`, e.name, cond, idx)
				c.buffers = [][]byte{elementBytes(e.name, 4*n*e.size, 4), make([]byte, 5*n*e.size), small(n, 1<<20, 3)}
				c.check(t)
			}
		}
	}
}

// TestStrides loads groups of neighbouring elements, as kernels do that give each lane a few consecutive ones.
func TestStrides(t *testing.T) {
	t.Parallel()
	for _, e := range []string{"float", "half", "bfloat", "uchar", "ushort", "uint", "char"} {
		for _, per := range []int{2, 3, 4, 8} {
			for _, used := range []int{per, per - 1} {
				c := memCase{name: fmt.Sprint(e, per, used), grid: [3]int{96, 1, 1}, tg: [3]int{32, 1, 1}}
				var sum, put strings.Builder
				for j := range used {
					fmt.Fprintf(&sum, "float(p[%d]) * %d.0f + ", j, j+1)
					fmt.Fprintf(&put, "o[%d * i + %d] = p[%d] + p[%d];\n", per, j, j, (j+1)%used)
				}
				size := map[string]int{"float": 4, "half": 2, "bfloat": 2, "uchar": 1, "ushort": 2, "uint": 4, "char": 1}[e]
				c.text = head + fmt.Sprintf(`kernel void k(const device %[1]s* a [[buffer(0)]], device float* s [[buffer(1)]],
  device %[1]s* o [[buffer(2)]], uint i [[thread_position_in_grid]], uint l [[thread_index_in_simdgroup]]) {
  const device %[1]s* p = a + %[2]d * i;
  s[i] = simd_sum(%[3]s 0.0f);
  %[4]s
}`, e, per, sum.String(), put.String())
				c.buffers = [][]byte{small(96*per*size/4, 0x30303030, 7), make([]byte, 96*4), make([]byte, 96*per*size)}
				c.check(t)
			}
		}
	}
}

// TestStridedStores: each lane stores a few consecutive elements, all lanes, some, and those at the grid's edge.
func TestStridedStores(t *testing.T) {
	t.Parallel()
	brief.OnlyValues(t)
	for _, e := range elements {
		for _, per := range []int{2, 4, 8, 16} {
			for _, cond := range []string{"true", "i % 3 != 0", "i < 37", "x[i] % 2 == 0"} {
				c := memCase{name: fmt.Sprint(e.name, per, cond), grid: [3]int{100, 1, 1}, tg: [3]int{64, 1, 1}}
				var get, put strings.Builder
				for j := range per {
					fmt.Fprintf(&get, "%s v%d = a[%d * i + %d];\n", e.name, j, per, j)
					fmt.Fprintf(&put, "o[%d * i + %d] = v%d;\n", per, per-1-j, j)
				}
				c.text = head + fmt.Sprintf(`kernel void k(const device %[1]s* a [[buffer(0)]], device %[1]s* o [[buffer(1)]],
  const device uint* x [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  %[2]s
  if (%[3]s) { %[4]s }
}`, e.name, get.String(), cond, put.String())
				c.buffers = [][]byte{elementBytes(e.name, 100*per*e.size, 8), make([]byte, 100*per*e.size), small(100, 99, 1)}
				c.check(t)
			}
		}
	}
}

// TestStoresOfAVariable: a store that waits for its neighbours stores the value of its own place.
func TestStoresOfAVariable(t *testing.T) {
	t.Parallel()
	c := memCase{name: "variable", grid: [3]int{64, 1, 1}, tg: [3]int{64, 1, 1}}
	c.text = head + `kernel void k(const device float* a [[buffer(0)]], device float* o [[buffer(1)]],
  uint i [[thread_position_in_grid]]) {
  float v = 0;
  for (uint j = 0; j < 3 + i % 4; j++) {
    o[4 * i] = v; v += a[i + j];
    o[4 * i + 1] = v; v *= 2;
    o[4 * i + 2] = v; v -= 1;
    o[4 * i + 3] = v;
  }
}`
	c.buffers = [][]byte{floatsOf(80, 1), make([]byte, 1024)}
	c.check(t)
}

// TestFaultTexts: what goes out of range says so in the reference executor's words.
func TestFaultTexts(t *testing.T) {
	t.Parallel()
	bodies := []string{
		"o[i] = a[i + 60];", "o[i] = a[i * 2];", "o[i] = a[x[i]];", "o[i + 90] = 1;", "o[x[i]] = 1;", "o[i] = a[7000000];",
		"o[200] = 3;", "o[i] = a[-1];", "o[i] = a[int(i) - 2];", "o[i] = a[ulong(x[i]) << 33];", "o[ulong(x[i]) << 33] = 1;",
		"o[i] = a[i - 1];", "const device float* p = a; if (i == 3) p = 0; o[i] = p[i];",
		"if (i == 50) o[i] = a[100];", "if (i >= 95) o[i] = a[i + 5];", "o[i] = ((const device char*)a)[i + 399];",
		"o[i] = *(const device float*)(((const device char*)a) + 397);",
		"float t[4]; t[i & 3] = 1; o[i] = t[i];", "float t[4]; t[i % 5] = 1; o[i] = t[0];",
		"threadgroup float t[8]; t[i & 7] = i; o[i] = t[i];",
		"o[i] = a[i + 0xfffffff0u];",
		"atomic_fetch_add_explicit((device atomic_uint*)x + 3 * i, 1u, memory_order_relaxed);",
		"atomic_fetch_add_explicit((device atomic_uint*)((device char*)x + 2), 1u, memory_order_relaxed);",
		"atomic_fetch_add_explicit((device atomic_uint*)((device char*)x + i), 1u, memory_order_relaxed);",
		"atomic_fetch_add_explicit((device atomic_uint*)x + 100, 1u, memory_order_relaxed);",
	}
	for n, body := range bodies {
		c := memCase{name: body, grid: [3]int{100, 1, 1}, tg: [3]int{100, 1, 1}}
		c.text = head + fmt.Sprintf(`kernel void k(const device float* a [[buffer(0)]], device float* o [[buffer(1)]],
  device uint* x [[buffer(2)]], uint i [[thread_position_in_grid]]) { %s }`, body)
		c.buffers = [][]byte{floatsOf(100, 1), make([]byte, 400), small(100, 103, 5+uint64(n))}
		c.check(t)
	}
}

// TestRowsInLoops: Loads of neighbouring elements, constant distances apart, which loops check together: within their
// buffers, across the end where no lane or some lane wants what is there, with stores in between, and after lanes have
// left.
func TestRowsInLoops(t *testing.T) {
	t.Parallel()
	bodies := []string{
		"for (uint j = 0; j < 3 + none; j++) { o[i] += p[0] * p[40]; p += 100; }",
		"for (uint j = 0; j < 4 + none; j++) { if (i < 30) { o[i] += p[0] - p[70]; } p += 100; }",
		"for (uint j = 0; j < 3 + none; j++) { o[i] += p[0] + p[64] + p[128]; p += 100; }",
		"for (uint j = 0; j < 5 + none; j++) { o[i] += p[0]; if (j == 3) break; o[i] += p[32]; p += 100; }",
		"p += 300;\n" +
			"  for (uint j = 0; j < 4 + none; j++) { if (i < 60) { o[i] += p[0] * p[40]; p -= 100; } else o[i] -= p[0]; }",
		"device float* q = o + i;\n" +
			"  for (uint j = 0; j < 4 + none; j++) { float v = q[0] + q[50]; q[100] = v; q[0] = v + q[100] + q[50]; }",
		"for (uint j = 0; j < 4 + none; j++) { float v = p[0]; if (i + 100 * j > 330) return; o[i] += v + p[70]; p += 100; }",
		"p += 40; for (int j = 3; j >= -1 - int(none); j--) { o[i] += p[40] + p[0]; p -= 20; }",
		"const device uint* y = x + i;\n" +
			"  for (uint j = 0; j < 4 + none; j++) { if (i < 80) { o[i] += float(y[20] + y[0]) + p[0] - p[20]; } }",
	}
	for n, body := range bodies {
		c := memCase{name: body, grid: [3]int{100, 1, 1}, tg: [3]int{100, 1, 1}}
		c.text = head + fmt.Sprintf(`kernel void k(const device float* a [[buffer(0)]], device float* o [[buffer(1)]],
  const device uint* x [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  const device float* p = a + i;
  uint none = x[0] >> 20; // which the compiler does not know
  %s
}`, body)
		c.buffers = [][]byte{floatsOf(400, 1), make([]byte, 800), small(100, 103, 5+uint64(n))}
		c.check(t)
	}
}

// TestPointers: before and behind where they point, wrapped indices, chosen between buffers, kept in arrays,
// compared.
func TestPointers(t *testing.T) {
	t.Parallel()
	bodies := []string{
		"const device float* p = a + 50; o[i] = p[int(i % 50) - 50];",
		"const device float* p = a + i; p++; o[i] = p[-1] + *p;",
		"const device float* p = (i & 1) ? a : b; o[i] = p[i];",
		"const device float* p = (x[0] & 1) ? a : b; o[i] = p[i];",
		"const device float* p = (x[0] & 1) ? a : b; o[i] = p[x[1] % 100];",
		"const device float* p[2] = {a, b}; o[i] = p[x[i] & 1][i];",
		"const device float* p = a; for (uint j = 0; j < i % 7; j++) p += 3; o[i] = *p;",
		"const device float* p = a; const device float* e = a + i; float s = 0; while (p < e) { s += *p; p++; } o[i] = s;",
		"const device float* p = a + i; o[i] = float(p - a) + float((a + 7) - p);",
		"const device float* p = a + i; o[i] = (p == a + 3) + 2 * (p < a + 50) + 4 * (p != a) + 8 * (a >= p);",
		"const device float* p = (x[i] & 1) ? a : b; o[i] = (p == a) + 2 * (p == b) + float(p - a == 0);",
		"uint j = i + 0xfffffff0u; o[i] = a[j + 16u];", "uint j = i - 1; o[i] = a[(j + 1) % 100];",
		"int j = int(i) - 100; o[i] = a[-j - 1];",
		"device float* p = o + 99; p[-int(i)] = a[i];",
		"device float* p = (i & 1) ? o : q; p[i] = a[i];",
		`float t[8]; for (int j = 0; j < 8; j++) t[j] = a[(i + j) % 100]; float s = 0; for (int j = 0;
  j < 8; j++) s += t[(j * 3 + x[i]) & 7]; o[i] = s;`,
		`float t[8]; for (int j = 0; j < 8; j++) t[j] = a[(i + j) % 100]; thread float* p = t + (x[i] & 3);
  o[i] = p[0] + p[x[0] & 3];`,
		"uchar t[5]; for (int j = 0; j < 5; j++) t[j] = uchar(x[(i + j) % 100]); o[i] = t[x[i] % 5];",
		"half t[6]; for (int j = 0; j < 6; j++) t[j] = half(a[(i + j) % 100]); o[i] = float(t[x[i] % 6]) + float(t[2]);",
		"float t[4] = {1, 2, 3, 4}; thread float* p = (i & 1) ? &t[1] : &t[2]; *p = a[i]; o[i] = t[0] + t[1] * t[2] - t[3];",
		"float u[2] = {1, 2}; float t[4] = {1, 2, 3, 4}; thread float* p = (i & 1) ? u : t; p[1] = a[i]; o[i] = t[1] + u[1];",
		"long t[3]; t[x[i] % 3] = i; t[(x[i] + 1) % 3] = 5; o[i] = float(t[0] + 2 * t[1] + 3 * t[2]);",
		"threadgroup float t[100]; t[i] = a[i]; threadgroup_barrier(mem_flags::mem_threadgroup); o[i] = t[99 - i] + t[3];",
		"threadgroup half t[100]; t[i] = half(a[i]); threadgroup_barrier(mem_flags::mem_threadgroup); o[i] = t[x[i] % 100];",
		`threadgroup float t[4][33]; if (i < 99) t[i / 33][i % 33] = a[i];
  threadgroup_barrier(mem_flags::mem_threadgroup); o[i] = t[i % 3][i / 4];`,
		"packed_float3 v = ((const device packed_float3*)a)[i / 4]; o[i] = v.x + v.y * v.z;",
		"float4 v = ((const device float4*)a)[i / 4]; ((device float4*)q)[i / 4] = v.wzyx; o[i] = v[i & 3];",
		"half4 v = ((const device half4*)x)[i / 4]; o[i] = isnan(v.x) ? 0.0f : float(v.y == v.y ? v.y : half(0));",
		`struct S { float f; uchar c; short h[2]; }; const device S* s = (const device S*)x + i % 30;
  o[i] = float(s->c) + float(s->h[i & 1]);`,
		`struct S { float f; uchar c; }; S s[3]; s[0].f = a[i]; s[1].c = uchar(i); s[x[i] % 3].f = 2;
  s[2].c = 1; o[i] = (x[i] % 3 == 0 ? s[0].f : 0) + s[1].c;`,
	}
	for n, body := range bodies {
		for _, shape := range [][2][3]int{{{100, 1, 1}, {100, 1, 1}}, {{10, 10, 1}, {10, 10, 1}}} {
			c := memCase{name: body, grid: shape[0], tg: shape[1]}
			c.text = head + fmt.Sprintf(`kernel void k(const device float* a [[buffer(0)]], const device float* b [[buffer(1)]],
  device float* o [[buffer(2)]], device float* q [[buffer(3)]], const device uint* x [[buffer(4)]],
  uint3 g [[thread_position_in_grid]], uint3 w [[threads_per_grid]]) { uint i = g.x + w.x * g.y; %s }`, body)
			c.buffers = [][]byte{floatsOf(101, 1), floatsOf(100, 2), make([]byte, 400), make([]byte, 400),
				small(100, 1<<20, uint64(n))}
			c.check(t)
		}
	}
}

// TestAtomics: every operation and type, on one address, on one for each lane, and on some; results used and not.
func TestAtomics(t *testing.T) {
	t.Parallel()
	type op struct{ name, types string }
	ops := []op{{"fetch_add", "int uint float"}, {"fetch_sub", "int uint float"}, {"fetch_min", "int uint"},
		{"fetch_max", "int uint"}, {"fetch_and", "int uint"}, {"fetch_or", "int uint"}, {"fetch_xor", "int uint"},
		{"exchange", "int uint float"}, {"store", "int uint float"}, {"load", "int uint float"},
		{"min", "ulong"}, {"max", "ulong"}}
	for _, o := range ops {
		for _, ty := range strings.Fields(o.types) {
			for _, idx := range []string{"3", "i", "x[i] % 50", "(x[i] % 50) * 2", "x[1] % 50"} {
				for _, value := range []string{"T(x[i] % 1000)", "T(5)", "T(x[3])"} {
					args := "p, v, memory_order_relaxed"
					if o.name == "load" {
						args = "p, memory_order_relaxed"
					}
					call := fmt.Sprintf("atomic_%s_explicit(%s)", o.name, args)
					for _, use := range []bool{false, true} {
						if use && (o.name == "store" || ty == "ulong") {
							continue
						}
						body := call + ";"
						if use {
							body = "r[i] = T(" + call + ");"
						}
						c := memCase{name: o.name + ty, grid: [3]int{100, 1, 1}, tg: [3]int{100, 1, 1}}
						c.text = head + fmt.Sprintf(`typedef %s T;
kernel void k(device atomic<T>* a [[buffer(0)]], device T* r [[buffer(1)]], const device uint* x [[buffer(2)]],
  uint i [[thread_position_in_grid]]) { device atomic<T>* p = a + (%s); T v = %s; if (i %% 7 != 3) { %s } }`,
							ty, idx, value, body)
						c.buffers = [][]byte{small(400, 1000, 1), make([]byte, 800), small(100, 1<<20, 3)}
						c.check(t)
					}
				}
			}
		}
	}
}

// TestCompareExchange and atomics in threadgroup memory.
func TestCompareExchange(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		`uint e = x[i] % 4; bool ok = atomic_compare_exchange_weak_explicit(a + x[i] % 10, &e, i, memory_order_relaxed,
  memory_order_relaxed); r[i] = e + (ok ? 1000u : 0u);`,
		`threadgroup atomic_uint t[4]; if (i < 4) atomic_store_explicit(t + i, i, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  r[i] = atomic_fetch_add_explicit(t + (x[i] & 3), x[i], memory_order_relaxed);
  atomic_fetch_max_explicit(t, x[i], memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  r[i] += atomic_load_explicit(t + (i & 3), memory_order_relaxed);`,
	} {
		c := memCase{name: "cas", grid: [3]int{64, 1, 1}, tg: [3]int{32, 1, 1}}
		c.text = head + fmt.Sprintf(`kernel void k(device atomic_uint* a [[buffer(0)]], device uint* r [[buffer(1)]],
  const device uint* x [[buffer(2)]], uint i [[thread_position_in_grid]]) { %s }`, body)
		c.buffers = [][]byte{small(10, 4, 1), make([]byte, 400), small(100, 1<<20, 3)}
		c.check(t)
	}
}
