package kerneltest

import (
	"fmt"
	"strings"
)

// generator writes one program.
type generator struct {
	*text
	reach  Reach
	scope  []local  // variables in scope
	arrays []local  // thread arrays in scope
	tgs    []local  // threadgroup arrays: readable between two barriers
	funcs  []fn     // helpers so far
	rounds int      // how often the current place may run
	loops  []string // the loops around: "" if lanes may not leave them early
	inFunc bool     // no buffers, no positions
	result string   // the type a helper returns
	even   bool     // control flow here is the same for the whole threadgroup
	nest   int      // of indices in indices
	calls  int      // of the math library, which is long
	wild   bool     // accesses may be out of range
}

type local struct {
	name, typ string
	len       int
	fixed     bool // not to be assigned
}

type fn struct {
	name, result string
	params       []string // "&" before the type of a reference
}

var (
	intTypes   = []string{"char", "uchar", "short", "ushort", "int", "uint", "long", "ulong"}
	floatTypes = []string{"half", "bfloat", "float", "double"}
	vecTypes   = []string{"int2", "int4", "uint3", "float2", "float3", "float4", "half4", "short2", "uchar4",
		"half2", "bfloat4", "half3", "ushort4", "ulong2", "char2", "char4", "uchar2", "short4", "ushort2", "bfloat2", "long2"}
)

func isInt(t string) bool {
	for _, s := range intTypes {
		if s == t {
			return true
		}
	}
	return false
}

// vecOf takes a vector type apart; n is 1 for scalars.
func vecOf(t string) (elem string, n int) {
	if c := t[len(t)-1]; c >= '2' && c <= '4' {
		return t[:len(t)-1], int(c - '0')
	}
	return t, 1
}

// scalarType picks a type, the usual ones more often.
func (g *generator) scalarType() string {
	switch g.n(10) {
	case 0, 1, 2:
		return g.pick("int", "uint")
	case 3, 4, 5:
		return "float"
	case 6:
		return g.pick(floatTypes...)
	case 7:
		return "bool"
	}
	return g.pick(intTypes...)
}

const header = `#include <metal_stdlib>
using namespace metal;
struct S { int a; float b; short c; ushort d; int e; float f; uchar g[4]; };
struct P { float x; int y; half z; uchar w;
  float sum() const { return x + float(y & 1023); }
  void add(P o) { x += o.x; y ^= o.y; z = o.z; w += o.w; } };
float canon(float v) { return isnan(v) ? NAN : v; }
half canon(half v) { return isnan(v) ? half(NAN) : v; }
bfloat canon(bfloat v) { return isnan(float(v)) ? bfloat(NAN) : v; }
double canon(double v) { return isnan(v) ? double(NAN) : v; }
template <typename T> T canon(T v) { return v; }
template <typename T, int N> T poly(T x,
	T y) { for (int i = 0; i < N; ++i) { if (x == y) return T(i); x = T(x * y + T(i)); } return x; }
constant int tableInts[16] = {5, -3, 1 << 20, 0, 7, 7, -1, 2147483647, 12, 13, 14, 1, 2, 3, 4, 65536};
constant float tableFloats[8] = {0.5f, -2, 1e10f, 3, 0, 1e-3f, 7, -0.25f};
constant half tableHalves[4] = {1.5h, -2.0h, 0.25h, 1024.0h};
struct Row { short at; uchar by[3]; float scale; };
constant Row tableRows[4] = {{1, {2, 3, 4}, 0.5f}, {-5, {6, 7, 8}, 2}, {9, {10, 11, 12}, -3}, {13, {0, 255, 1}, 4}};
template <typename T> T dotOf(device const T *p, device const T *q, int n, int s) {
  T a = 0; for (int i = 0; i < n; ++i) a += p[i * s] * q[i]; return a; }
template <typename T> T sumOf(thread const T *p, int n) { T a = 0; for (int i = 0; i < n; ++i) a += p[i]; return a; }
template <typename T> void addTo(thread T *p, T v, int n) { for (int i = 0; i < n; ++i) p[i] = T(p[i] + v * T(i)); }
template <typename T> T tgSum(threadgroup const T *p, uint n, uint s) {
  T a = 0; for (uint i = 0; i < n; i += s) a += p[i]; return a; }
void inner(thread float &o, float v) { o = v * 0.5f + o; }
void outer(thread float &o, thread int &n, float v) {
  inner(o, v + 1); if (n & 1) { inner(o, o); return; } for (int i = 0; i < (n & 3); ++i) inner(o, float(i)); n += 3; }
template <typename T> void swapIf(bool c, thread T &a, thread T &b) { if (c) { T t = a; a = b; b = t; } }
`

// program writes the whole text.
func (g *generator) program(threadgroup [3]int) string {
	g.b.WriteString(header)
	g.rounds = 1
	for range g.n(4) {
		g.helper()
	}
	g.line("kernel void k(%s", params())
	g.line("    uint3 gp [[thread_position_in_grid]], uint3 gs3 [[threads_per_grid]],")
	g.line("    uint lane [[thread_index_in_simdgroup]], uint tid [[thread_index_in_threadgroup]],")
	g.line("    uint3 tp [[thread_position_in_threadgroup]], uint3 tgp [[threadgroup_position_in_grid]],")
	g.line("    uint3 tgs [[threads_per_threadgroup]], uint sg [[simdgroup_index_in_threadgroup]],")
	g.open("    uint quad [[quadgroup_index_in_threadgroup]], uint sgs [[simdgroups_per_threadgroup]])")
	g.line("uint gid = gp.x + gs3.x * (gp.y + gs3.y * gp.z);")
	for _, v := range []string{"gid", "lane", "tid", "sg", "quad", "sgs", "tp.x", "tp.y", "tgp.x", "tgp.z",
		"tgs.x", "gp.x", "gp.y"} {
		g.scope = append(g.scope, local{name: v, typ: "uint", fixed: true})
	}
	g.even = true
	g.wild = g.chance(8) && g.reach == Threadgroups
	threads := threadgroup[0] * threadgroup[1] * threadgroup[2]
	if g.chance(60) && g.reach == Threadgroups {
		g.line("threadgroup int ti[%d];", threads)
		g.line("threadgroup float tf[%d];", threads)
		if g.chance(50) {
			g.line("threadgroup atomic_int ta[4];")
			g.line("threadgroup atomic_bool tl[8];")
			g.tgs = append(g.tgs, local{name: "ta", len: 4})
		}
		if threads%32 == 0 && g.chance(30) {
			g.line("threadgroup float tm[64];")
			g.tgs = append(g.tgs, local{name: "tm", typ: "float", len: 64})
		}
		if threads <= 512 && g.chance(40) {
			g.line("threadgroup P ts[%d];", threads)
			g.tgs = append(g.tgs, local{name: "ts", typ: "P", len: threads})
		}
		g.tgs = append(g.tgs, local{name: "ti", typ: "int", len: threads}, local{name: "tf", typ: "float",
			len: threads})
	}
	for range 2 + g.n(4) {
		g.declare()
	}
	g.stmts(2 + g.n(1+g.n(20)))
	g.results()
	g.close("")
	return g.b.String()
}

// results stores what the variables hold.
func (g *generator) results() {
	var at [4]int
	for _, l := range g.scope {
		e, n := vecOf(l.typ)
		for i := range n {
			v := l.name
			if n > 1 {
				v += "." + "xyzw"[i:i+1]
			}
			g.put(e, v, &at)
		}
	}
	for _, a := range g.arrays {
		for i := range a.len {
			g.put(a.typ, fmt.Sprintf("%s[%d]", a.name, i), &at)
		}
	}
}

// put stores a value into the outputs, mixing what does not fit.
func (g *generator) put(t, v string, at *[4]int) {
	out, kind, width := "oi", 0, "int"
	switch {
	case t == "float", t == "bfloat":
		out, kind, width = "of", 1, "float"
	case t == "long", t == "ulong":
		out, kind, width = "ol", 2, "ulong"
	case t == "half":
		out, kind, width = "oh", 3, "half"
	case t == "double":
		out, kind, width = "ol", 2, "as_type<ulong>"
	case t == "P" || t == "S":
		return
	}
	if at[kind] >= slots {
		if kind == 1 || kind == 3 {
			g.line("oi[gid * %d + %d] ^= as_type<int>(float(canon(%s)));", slots, at[kind]%slots, v)
		} else {
			if t == "double" {
				v = "as_type<ulong>(canon(" + v + "))"
			}
			g.line("ol[gid * %d + %d] += ulong(%s);", slots, at[kind]%slots, v)
		}
		at[kind]++
		return
	}
	g.line("%s[gid * %d + %d] = %s(canon(%s));", out, slots, at[kind], width, v)
	at[kind]++
}

// helper writes a function.
func (g *generator) helper() {
	f := fn{name: g.fresh("f"), result: g.scalarType()}
	if g.chance(15) {
		f.result = g.pick(vecTypes...)
	}
	saved := *g
	g.scope, g.arrays, g.tgs, g.loops, g.inFunc, g.even, g.result = nil, nil, nil, nil, true, false, f.result
	g.rounds = 8
	var ps []string
	for range 1 + g.n(3) {
		t, name := g.scalarType(), g.fresh("p")
		if g.chance(20) {
			f.params, ps = append(f.params, "&"+t), append(ps, "thread "+t+" &"+name)
		} else {
			f.params, ps = append(f.params, t), append(ps, t+" "+name)
		}
		g.scope = append(g.scope, local{name: name, typ: t})
	}
	g.open("%s %s(%s)", f.result, f.name, strings.Join(ps, ", "))
	g.declare()
	g.stmts(2 + g.n(4))
	g.line("return %s;", g.expr(f.result, 2))
	g.close("")
	calls := g.calls
	*g = saved
	g.calls = calls
	g.funcs = append(g.funcs, f)
}

// declare introduces a variable.
func (g *generator) declare() {
	switch k := g.n(20); {
	case k < 2:
		t, name, n := g.pick("int", "float", "uint", "half", "uchar", "long"), g.fresh("a"), 1<<g.n(4)
		init := "{}"
		if g.chance(50) {
			init = "{" + g.expr(t, 1) + "}"
		}
		g.line("%s %s[%d] = %s;", t, name, n, init)
		g.arrays = append(g.arrays, local{name: name, typ: t, len: n})
	case k < 5:
		t, name := g.pick(vecTypes...), g.fresh("v")
		g.line("%s %s = %s;", t, name, g.expr(t, 2))
		g.scope = append(g.scope, local{name: name, typ: t})
	case k < 6:
		name := g.fresh("s")
		g.line("P %s = {%s, %s, half(%s), uchar(%s)};", name, g.expr("float", 1), g.expr("int", 1),
			g.expr("int", 1), g.expr("int", 1))
		g.scope = append(g.scope, local{name: name + ".x", typ: "float"}, local{name: name + ".y", typ: "int"},
			local{name: name + ".z", typ: "half"}, local{name: name + ".w", typ: "uchar"}, local{name: name,
				typ: "P", fixed: true})
	default:
		t, name := g.scalarType(), g.fresh("x")
		g.line("%s %s = %s;", t, name, g.expr(t, 3))
		g.scope = append(g.scope, local{name: name, typ: t})
	}
}

// stmts writes statements in a scope of their own variables, which end with it unless it is the outermost.
func (g *generator) stmts(n int) {
	for range n {
		g.stmt()
	}
}

func (g *generator) block(n int) {
	vars, arrays := len(g.scope), len(g.arrays)
	g.stmts(n)
	g.scope, g.arrays = g.scope[:vars], g.arrays[:arrays]
}
