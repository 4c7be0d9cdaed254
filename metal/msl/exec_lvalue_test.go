package msl_test

import "testing"

// What C++14 says of lvalues that expressions yield ([expr.cond], [expr.ass], [expr.comma], [expr.pre.incr]): whoever
// writes to one changes the object. The functions of this text are plain C++ but for the word thread, and a compiler of
// C++ says the same of them.
const lvalueText = `
struct P {
  float x; float y;
  void set(float v) { x = v; }
  P thread &with(float v) { y = v; return *this; }
  float get() const { return x + y; }
};
struct Q : P { float z; };
struct Big {
  int a[100];
  void put(int i, int v) { a[i] = v; }
  int sum() const { return a[0] + 10 * a[1] + 100 * a[99]; }
};
struct Bits { unsigned a : 3; unsigned b : 5; unsigned c : 9; };
struct Refs { thread int &r; int own; };
struct Num {
  int v;
  Num thread &operator+=(int k) { v += k; return *this; }
  Num thread &operator++() { ++v; return *this; }
  int thread &operator[](int i) { v += i; return v; }
};
inline Num thread &operator-=(thread Num &a, int k) { a.v -= k; return a; }
inline void assign(thread float &r, float v) { r = v; }
inline void assign(thread float *p, float v) { *p = v; }
inline thread float &pick(bool c, thread float &a, thread float &b) { return c ? a : b; }
inline thread P &pickP(int c, thread P &a, thread P &b, thread P &d) {
  if (c == 0) return c > 0 ? b : a;
  return c == 1 ? b : (c == 2 ? d : a);
}
template <typename T> inline void put(thread T &r, T v) { r = v; }
template <typename T> inline int byValue(T r) { r = 9; return int(r); }
inline float method(bool c) { P p{1, 2}, q{3, 4}; (c ? p : q).set(9); return p.x * 10 + q.x; }
inline float chained(bool c) {
  P p{1, 2}, q{3, 4}; (c ? p : q).with(7).set(9); return p.x * 1000 + p.y * 100 + q.x * 10 + q.y;
}
inline float field(bool c) {
  P p{1, 2}, q{3, 4}; (c ? p : q).x = 5; (c ? q : p).y += 1; return p.x * 1000 + p.y * 100 + q.x * 10 + q.y;
}
inline float fields(bool c) {
  P p{1, 2}, q{3, 4}; (c ? p.x : q.y) = 8; return p.x * 1000 + p.y * 100 + q.x * 10 + q.y;
}
inline float fixed() { P p{1, 2}, q{3, 4}; (true ? p : q).set(9); (false ? p : q).y = 6; return p.x * 10 + q.y; }
inline float whole(bool c) { P p{1, 2}, q{3, 4}, r{5, 6}; (c ? p : q) = r; return p.get() * 100 + q.get(); }
inline float nested(int k) {
  P p{1, 1}, q{2, 2}, r{3, 3};
  (k == 0 ? p : k == 1 ? q : r).set(7);
  ((k & 1) == 0 ? (k == 0 ? q : p) : r).y = 8;
  return p.x * 100000 + p.y * 10000 + q.x * 1000 + q.y * 100 + r.x * 10 + r.y;
}
inline int compound(bool c) {
  int a = 3, b = 5; (c ? a : b) += 10; (c ? b : a) <<= 2; (c ? a : b) *= (c ? 2 : 3); return a * 100 + b;
}
inline int increments(bool c) {
  int a = 3, b = 5; int x = ++(c ? a : b), y = (c ? b : a)--; ++ ++(c ? a : b);
  return a * 1000 + b * 100 + x * 10 + y;
}
inline int references(bool c) {
  int a = 3, b = 5; thread int &r = c ? a : b; c = !c; r = 7; a += 10; b += 20;
  auto &s = c ? a : b; s++; const thread int &t = c ? b : a; a += 1; b += 1;
  return ((r * 32 + s) * 32 + t) * 64 + a + b;
}
inline int addresses(bool c) {
  int a = 3, b = 5; thread int *p = &(c ? a : b); *p = 6; p = &(c ? b : a); (*p)++; return a * 10 + b;
}
inline int arrays(bool c, int i) {
  int a[4] = {1, 2, 3, 4}, b[4] = {5, 6, 7, 8};
  (c ? a : b)[i] = 9; (c ? a[i + 1] : b[i]) += 1; (c ? a[0] : b[3])++;
  static_assert(sizeof(c ? a : b) == 16, "an array");
  return (a[0] + a[1] * 10 + a[2] * 100 + a[3] * 1000) * 31 + b[0] + b[1] * 10 + b[2] * 100 + b[3] * 1000;
}
inline int order(bool c) {
  int a[3] = {1, 2, 3}, i = 0, n = 0; (c ? a[i++] : a[i += 2]) = 10; ++(c ? a[n++] : a[n]);
  return a[0] + 10 * a[1] + 100 * a[2] + 10000 * i + 100000 * n;
}
inline float passed(bool c) {
  float a = 1, b = 2; assign(c ? a : b, 5); assign(&(c ? b : a), 6); put(c ? a : b, a + 1);
  put<float>((c, c ? b : a), b + 3); return a * 10 + b;
}
inline int copied(bool c) {
  int a = 1, b = 2; int n = byValue(c ? a : b); int d = c ? a : b; d = 7; return a * 100 + b * 10 + n;
}
inline float returned(bool c) { float a = 1, b = 2; pick(c, a, b) = 7; pick(!c, a, b) += 1; return a * 10 + b; }
inline float manyReturns(int k) {
  P p{1, 2}, q{3, 4}, r{5, 6}; pickP(k, p, q, r).set(9); return p.x * 100 + q.x * 10 + r.x;
}
inline int commas() {
  int a = 1, b = 2; (a, b) = 5; (a++, b) += a; (a = 7, b)++; int n = (a, ++b); return a * 100 + b * 10 + (n == b);
}
inline int assignments() {
  int a = 1, b = 2; (a = b) = 7; (b += 3) *= 2; ++(a = 4); ++ ++b; (--a)++; return a * 100 + b;
}
inline int both(bool c) {
  int a = 1, b = 2, d = 3; ((c ? a : b) = d) = 8; (d, c ? b : a) = 6; (c ? ++a : (b += 2)) += 10;
  (c ? (a, b) : d) += 1; return a * 10000 + b * 100 + d;
}
inline int bits(bool c) {
  Bits p{1, 2, 3}, q{4, 5, 6}; (c ? p.a : q.b) = 7; (c ? p.c : q.c) += 100; (c ? q : p).b = 30;
  return int(p.a + 10 * p.b + 1000 * p.c) + int(q.a + 10 * q.b + 1000 * q.c) * 3;
}
inline int references2(bool c) {
  int m = 1, n = 2; Refs p{m, 5}, q{n, 6}; (c ? p : q).r = 9; (c ? q : p).own = 8; (c ? p.r : q.own) += 1;
  return m * 1000 + n * 100 + p.own * 10 + q.own;
}
inline int operators(bool c) {
  Num a{1}, b{2}; (c ? a : b) += 10; (c ? b : a) -= 1; ++(c ? a : b); (c ? a : b)[3] *= 2; return a.v * 100 + b.v;
}
inline int big(bool c) {
  Big a{}, b{}; (c ? a : b).put(1, 3); (c ? b : a).a[99] = 4; (c ? a.a : b.a)[0] = 5;
  return a.sum() * 1000 + b.sum();
}
inline float derived(bool c) { Q q{}; P p{1, 2}; q.x = 3; (c ? p : q).set(9); return p.x * 10 + q.x; }
inline float derivedFixed() {
  Q q{}; P p{1, 2}; q.x = 3; (true ? q : p).set(9); (false ? q : p).y++; return q.x * 10 + p.y;
}
inline int readonly(bool c) { int a = 1; const int b = 2; const thread int &r = c ? a : b; a = 5; return r; }
inline int lambdas(bool c) {
  int a = 1, b = 2; auto f = [&](bool k) -> thread int & { return k ? a : b; }; f(c) = 7;
  auto g = [&r = c ? b : a](int v) { r = v; }; g(8); return a * 10 + b;
}
inline float bindings(bool c) {
  P p{1, 2}, q{3, 4}; auto &[s, t] = c ? p : q; s = 7; t += 1; return p.x * 1000 + p.y * 100 + q.x * 10 + q.y;
}
inline int ranges(bool c) {
  int a[2] = {1, 2}, b[2] = {3, 4}; for (auto &x : c ? a : b) x += 5;
  return a[0] * 1000 + a[1] * 100 + b[0] * 10 + b[1];
}
inline int casts(bool c) {
  int a = 1, b = 2; int k = 3; static_cast<thread int &>(c ? a : b) = 7;
  const_cast<thread int &>(c ? (const thread int &)a : k) = 6; return a * 100 + b * 10 + k;
}
inline int mixed(bool c) { int a = 1; short s = 2; int r = (c ? a : s) + (c ? a : 5); a = 9; return r; }
inline int loops() {
  int a = 0, b = 0; for (int i = 0; i < 5; i++) { (i & 1 ? a : b) += i; for (int j = 0; j < i;
  j++) ++(j > 1 ? b : a); } return a * 100 + b;
}
constexpr int folded(int k) { int a = 1, b = 2; (k ? a : b) = 7; ++(k ? b : a); (a, b) += 1; return a * 10 + b; }
inline int self() { int n = 0, x = 3; (++n, n > 0 ? x : n) += 2; int d = (n == 1 ?: x); return x * 10 + d; }
`

var lvalueRows = []row{
	{"method(c)", 93}, {"method(n)", 19}, {"chained(c)", 9734}, {"chained(n)", 1297}, {"field(c)", 5235},
	{"field(n)", 1354},
	{"fields(c)", 8234}, {"fields(n)", 1238}, {"fixed()", 96}, {"whole(c)", 1107}, {"whole(n)", 311},
	{"nested(in[0])", 712833}, {"nested(in[1])", 117238}, {"nested(in[2])", 182273},
	{"compound(c)", 2620}, {"compound(n)", 1245}, {"increments(c)", 6445}, {"increments(n)", 2863},
	{"references(c)", 1236141}, {"references(n)", 1867563}, {"addresses(c)", 66}, {"addresses(n)", 46},
	{"arrays(c, in[1])", 148017}, {"arrays(n, in[1])", 143756}, {"order(c)", 110331}, {"order(n)", 21022},
	{"passed(c)", 69}, {"passed(n)", 107}, {"copied(c)", 129}, {"copied(n)", 129}, {"returned(c)", 73},
	{"returned(n)", 27},
	{"manyReturns(in[0])", 935}, {"manyReturns(in[1])", 195}, {"manyReturns(in[2])", 139},
	{"manyReturns(in[3])", 935},
	{"commas()", 791}, {"assignments()", 512}, {"both(c)", 190703}, {"both(n)", 62004}, {"bits(c)", 121939},
	{"bits(n)", 321523},
	{"references2(c)", 10258}, {"references2(n)", 1987}, {"operators(c)", 3001}, {"operators(n)", 32},
	{"big(c)", 35400}, {"big(n)", 400035},
	{"derivedFixed()", 93}, {"derived(c)", 93}, {"derived(n)", 19}, {"readonly(c)", 5}, {"readonly(n)", 2},
	{"lambdas(c)", 78},
	{"lambdas(n)", 87},
	{"bindings(c)", 7334}, {"bindings(n)", 1275}, {"ranges(c)", 6734}, {"ranges(n)", 1289}, {"casts(c)", 623},
	{"casts(n)", 176}, {"mixed(c)", 2}, {"mixed(n)", 7}, {"loops()", 1109}, {"folded(1)", 74},
	{"folded(in[0])", 28}, {"self()", 51},
}

func TestLvalues(t *testing.T) {
	t.Parallel()
	runRows(t, lvalueText, "bool c = in[1] == 1, n = in[0] == 1;", lvalueRows)
}

// The same in every address space, in kernels whose lanes choose differently.
func TestLvalueSpaces(t *testing.T) {
	t.Parallel()
	runKernels(t, lvalueKernels)
}

// spaceCase is a kernel that does the same things to structures of one address space, which are all of buffer s behind
// the pointer d or a copy of them.
func spaceCase(name, space, begin, end string) kernelCase {
	in := make([]float32, 32*4)
	want := make([]float32, 32*4)
	for i := range 32 {
		s := in[4*i : 4*i+4]
		for j := range s {
			s[j] = float32(4*i + j)
		}
		p := [2][2]float32{{s[0], s[1]}, {s[2], s[3]}}
		k := i & 1        // (c ? d[0] : d[1]) with c = i odd is p[1-k]
		p[1-k][0] = 10    // set
		p[1-k][1] += 3    // .y += 3
		p[k][0]++         // ++
		p[k][1] = p[k][0] // by reference
		p[1-k][1] *= 2    // through the pointer
		if i%3 == 0 {     // nested: whole assignment
			p[0] = p[1]
		} else if i%3 == 1 {
			p[1] = p[0]
		}
		copy(want[4*i:], []float32{p[0][0], p[0][1], p[1][0], p[1][1]})
	}
	return kernelCase{name: name, in: []any{in}, want: want, text: `
struct P { float x; float y; void set(float v) ` + space + ` { x = v; } float get() const ` + space + ` { return x; } };
` + space + ` P &choose(bool c, ` + space + ` P *d) { return c ? d[0] : d[1]; }
template <typename R> void copyTo(` + space + ` R &to, float v) { to = v; }
kernel void k(device float *out, device P *s, uint i [[thread_position_in_grid]]) {
  ` + begin + `
  bool c = i & 1;
  (c ? d[0] : d[1]).set(10);
  (c ? d[0] : d[1]).y += 3;
  ++choose(!c, d).x;
  ` + space + ` float &r = c ? d[1].y : d[0].y;
  r = (c ? d[1] : d[0]).get();
  ` + space + ` P *p = &(c ? *d : *(d + 1));
  copyTo((c, c ? p->y : d[1].y), p->y * 2);
  (i % 3 == 0 ? d[0] : i % 3 == 1 ? d[1] : d[0]) = i % 3 == 0 ? d[1] : d[0];
  ` + end + `
  for (int j = 0; j < 2; j++) { out[4 * i + 2 * j] = s[2 * i + j].x; out[4 * i + 2 * j + 1] = s[2 * i + j].y; }
}`}
}

var lvalueKernels = []kernelCase{
	spaceCase("device", "device", "device P *d = s + 2 * i;", ""),
	spaceCase("thread", "thread", "P t[2]; thread P *d = t;\n"+
		"  for (int j = 0; j < 2; j++) { t[j].x = s[2 * i + j].x; t[j].y = s[2 * i + j].y; }",
		"for (int j = 0; j < 2; j++) { s[2 * i + j].x = t[j].x; s[2 * i + j].y = t[j].y; }"),
	spaceCase("threadgroup", "threadgroup", "threadgroup P t[64]; threadgroup P *d = t + 2 * i;\n"+
		"  for (int j = 0; j < 2; j++) { d[j].x = s[2 * i + j].x; d[j].y = s[2 * i + j].y; }",
		"for (int j = 0; j < 2; j++) { s[2 * i + j].x = d[j].x; s[2 * i + j].y = d[j].y; }"),
	{name: "constant", in: []any{[]float32{1, 2, 3, 4, 5, 6, 7, 8}}, want: list(32, func(i int) float32 {
		if i&1 == 1 {
			return 1 + 100 + 12 + 20 + 10000
		}
		return 5 + 600 + 13 + 30 + 20000
	}), text: `
struct P { float x; float y; float get() const constant { return x; } };
constant float table[4] = {10, 20, 30, 40};
constant P one = {100, 12};
constant P two = {600, 13};
constant float &which(bool c, constant P *d) { return c ? d[0].x : d[2].x; }
kernel void k(device float *out, constant P *s, uint i [[thread_position_in_grid]]) {
  bool c = i & 1;
  constant P *p = &(c ? one : two);
  constant float &t = c ? table[1] : table[2];
  out[i] = which(c, s) + (c ? one : two).get() + p->y + t + (&(c ? s[1] : s[2]) - s) * 10000;
}`},
	{name: "a side that is not chosen is not touched", in: []any{[]float32{1, 2}}, want: list(32, func(i int) float32 {
		if i == 5 {
			return 7
		}
		return 3
	}), text: `
struct P { float x; void set(float v) device { x = v; } };
kernel void k(device float *out, device float *in, uint i [[thread_position_in_grid]]) {
  float mine = 3;
  device P *none = nullptr;
  device P *o = (device P *)out;
  (i == 5 ? o[i] : *(i == 5 ? none : o + i)).set(1);
  (i != 5 ? o[i] : (o + 5)[i == 5 ? 0 : 1 << 20]).x += 2;
  if (i == 5) (i == 5 ? o[i] : none[i]).x = 7;
}`},
	{name: "vectors and matrices", want: list(32, func(i int) float32 {
		v, w := [4]float32{1, 2, 3, 4}, [4]float32{5, 6, 7, 8}
		x, y := &v, &w
		if i&1 == 0 {
			x, y = y, x
		}
		x[0] = 9
		x[1], x[3] = 20, 30
		y[i&3] += 100
		*x, y[2] = [4]float32{x[0] * 2, x[1] * 2, x[2] * 2, x[3] * 2}, 1
		return v[0] + v[1]*2 + v[2]*3 + v[3]*4 + (w[0]+w[1]*2+w[2]*3+w[3]*4)*5
	}), text: `
kernel void k(device float *out, uint i [[thread_position_in_grid]]) {
  float4 v(1, 2, 3, 4), w(5, 6, 7, 8);
  float2x2 m(1), n(2);
  bool c = i & 1;
  (c ? v : w).x = 9;
  (c ? v : w).yw = float2(20, 30);
  (c ? w : v)[i & 3] += 100;
  (c ? v : w) *= 2;
  (c ? m : n)[1][0] = 1;
  (c ? w : v)[2] = (c ? m : n)[1].x;
  out[i] = dot(v, float4(1, 2, 3, 4)) + dot(w, float4(1, 2, 3, 4)) * 5;
}`},
	{name: "atomics", want: []int32{48, 16}, text: `
kernel void k(device atomic_int *out, uint i [[thread_position_in_grid]]) {
  threadgroup atomic_int t[2];
  if (i < 2) atomic_store_explicit(&(i ? t[1] : t[0]), 0, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  atomic_fetch_add_explicit(&(i & 1 ? t[0] : t[1]), i & 1 ? 3 : 1, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  int sum = atomic_load_explicit(&(i ? t[1] : t[0]), memory_order_relaxed);
  if (i < 2) atomic_store_explicit(&out[i], sum, memory_order_relaxed);
}`},
}

// Sides of unlike types, value categories or address spaces are read: ?: is no lvalue then, and its type says so.
func TestConditionalTypes(t *testing.T) {
	t.Parallel()
	runRows(t, `
struct P { float x; };
struct Q : P { float y; };
template <typename T> constexpr int kind() { return 0; }
template <> constexpr int kind<thread int &>() { return 1; }
template <> constexpr int kind<const thread int &>() { return 2; }
template <> constexpr int kind<device int &>() { return 3; }
template <> constexpr int kind<int>() { return 4; }
template <> constexpr int kind<float>() { return 5; }
template <> constexpr int kind<thread P &>() { return 6; }
template <> constexpr int kind<P>() { return 7; }
template <> constexpr int kind<thread float2 &>() { return 8; }
template <> constexpr int kind<float2>() { return 9; }
template <> constexpr int kind<const constant float &>() { return 10; }
#define KIND(...) kind<decltype(__VA_ARGS__)>()
`, `int a = 1, b = 2; const int k = 3; short s = 4; float f = 5; P p{1}; Q q{}; float4 v(1), w(2); device int *d = in;
bool c = in[1] == 1; float2 u;`, []row{
		{"KIND(c ? a : b)", 1}, {"KIND(true ? a : b)", 1}, {"KIND((c ? a : b))", 1}, {"KIND(c ? a : k)", 2},
		{"KIND(c ? k : a)", 2},
		{"KIND(c ? d[0] : d[1])", 3}, {"KIND(c ? a : d[1])", 4}, {"KIND(c ? a : 1)", 4}, {"KIND(c ? a : s)", 4},
		{"KIND(c ? a : f)", 5}, {"KIND(c ? p : q)", 6}, {"KIND(c ? q : p)", 6}, {"KIND(true ? q : p)", 6},
		{"KIND(c ? p : P{2})", 7},
		{"KIND(c ? v.xy : w.zw)", 9},
		{"KIND(c ? u : v.xy)", 9}, {"KIND(c ? cf[0] : cf[1])", 10}, {"KIND((1, a))", 1}, {"KIND(a = 2)", 1},
		{"KIND(a += 2)", 1},
		{"KIND(++a)", 1},
		{"KIND(a++)", 4}, {"KIND(c ? ++a : (b = 2))", 1}, {"KIND(c ? a++ : b)", 4}, {"a * 100 + b * 10 + k", 123},
	})
}
