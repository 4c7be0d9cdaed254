package msl_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal/launch"
	"github.com/mlxlua/mlxlua/metal/msl"
)

// row is an expression and what C++14 and the Metal specification say it yields.
type row struct {
	expr string
	want float64
}

// runRows compiles `pre` and one assignment for each row, runs one SIMD-group of one thread, and compares.
func runRows(t *testing.T, pre, body string, rows []row) {
	t.Helper()
	var b strings.Builder
	b.WriteString("#include <metal_stdlib>\nusing namespace metal;\n" + pre)
	b.WriteString("\nkernel void k(device float *out [[buffer(0)]], device int *in [[buffer(1)]],\n")
	b.WriteString("              constant float *cf [[buffer(2)]], uint lane [[thread_index_in_simdgroup]]) {\n" +
		body + "\n")
	for i, r := range rows {
		fmt.Fprintf(&b, "#line %d \"row\"\nout[%d] = float(%s);\n", i, i, r.expr)
	}
	b.WriteString("}\n")
	mod, err := msl.Compile(msl.Source{Name: "test", Text: b.String()}, msl.Options{})
	require.NoError(t, err)
	require.NoError(t, mod.Verify())
	prog, err := prepare(mod.Kernels[0], mod.Files)
	require.NoError(t, err)
	out := make([]byte, 4*len(rows))
	in := make([]byte, 64*4)
	cf := make([]byte, 64*4)
	for i := range 64 {
		binary.LittleEndian.PutUint32(in[4*i:], uint32(i))
		binary.LittleEndian.PutUint32(cf[4*i:], math.Float32bits(float32(i)+0.5))
	}
	err = prog.Run(launch.Launch{Grid: [3]int{1, 1, 1}, Threadgroup: [3]int{1, 1, 1}, Buffers: [][]byte{out, in, cf}})
	require.NoError(t, err)
	for i, r := range rows {
		got := float64(math.Float32frombits(binary.LittleEndian.Uint32(out[4*i:])))
		if math.IsNaN(r.want) {
			require.True(t, math.IsNaN(got), "row %d: %s = %v, want NaN", i, r.expr, got)
			continue
		}
		require.Equal(t, r.want, got, "row %d: %s", i, r.expr)
	}
}

func TestArithmetic(t *testing.T) {
	t.Parallel()
	runRows(t, "", `
  int i7 = 7; uint u3 = 3; short s = -5; uchar uc = 250; char c = -3; half h = 2048; float f = 1.5f; bool tr = true;
  long big = 1l << 40; ulong ub = ~0ul; bfloat bf = 1.0bf; int m1 = -1; ushort us = 65535;`, []row{
		{"i7 / 2", 3}, {"-i7 / 2", -3}, {"-i7 % 4", -3}, {"i7 % -4", 3}, {"i7 << 2", 28}, {"-i7 >> 1", -4},
		{"(u3 - 4) > 0", 1}, {"uc + uc", 500}, {"uchar(uc + uc)", 244}, {"s * s", 25}, {"c >> 1", -2},
		{"m1 > u3", 1}, {"m1 < i7", 1}, {"us + 1", 65536}, {"ushort(us + 1)", 0}, {"big >> 38", 4},
		{"ub == ulong(m1)", 1}, {"h + half(1)", 2048}, {"h + 1.0f", 2049}, {"h + 1", 2048}, {"bf + 1", 2},
		{"bf + bfloat(0.00390625f)", 1}, {"bf + h", 2049}, {"tr + tr", 2}, {"!tr", 0}, {"~i7", -8}, {"+uc", 250},
		{"i7 == 7 ? 1.5 : 2", 1.5}, {"true ? 1 : 2.5f", 1}, {"sizeof(true ? 1 : 2.5f)", 4}, {"5 & 6 | 8 ^ 3", 15},
		{"1 + 2 * 3 - 4 / 2", 5},
		{"(i7 > 3) + (i7 < 3)", 1}, {"int(2.9f) + int(-2.9f)", 0}, {"uint(3.7f)", 3}, {"0x7fffffff + 1 < 0", 1},
		{"0xffffffff > 0", 1}, {"sizeof(0xffffffff)", 4}, {"sizeof(4294967295)", 8}, {"1'000'000", 1000000}, {"0b101", 5},
		{"1e3", 1000}, {"0x1p4", 16}, {"1.5h + 1.5h", 3}, {"sizeof(1.5h)", 2}, {"sizeof('a')", 1}, {"'a'", 97},
		{"i7++ + i7", 15}, {"--i7", 7}, {"(i7 += 3, i7)", 10}, {"i7 -= 3", 7}, {"(s += 70000, s)", 4459}, {"f *= 2", 3},
		{"uc += 10", 4}, {"(c = 200, c)", -56}, {"as_type<int>(1.0f)", 1065353216}, {"as_type<float>(0x40000000)", 2},
		{"as_type<ushort>(half(1))", 15360}, {"as_type<uint>(ushort2(1, 2))", 131073},
		{"as_type<half2>(0x3c004000u).y", 1},
		{"u3 << 33u", 6}, {"1 << 31 >> 31", -1}, {"INT_MAX", 2147483648.0}, {"7 / 2.0f", 3.5}, {"1 / 3 * 3", 0},
	})
}

func TestControlFlow(t *testing.T) {
	t.Parallel()
	runRows(t, `
int early(int x) { if (x < 0) return -1; if (x == 0) { return 0; } for (int i = 0; i < 10;
  i++) { if (i == x) return i * 10; } return 99; }
int sw(int x) { int r = 0; switch (x) { case 0: r += 1; case 1: r += 10; break; case 2: case 3: r += 100;
  break; default: r = 7; } return r; }
int loopy(int n) { int s = 0, i = 0; while (true) { i++; if (i > n) break; if (i % 2) continue; s += i;
  } do { s++; } while (s < 3); return s; }
int nested(int n) { int c = 0; for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) { if (j > i) break;
  if (i == 3) continue; c++; } return c; }
int comma(int n) { int s = 0; for (int i = 0, j = n; i < j; i++, j--) s += j - i; return s; }
void out3(thread int &a, thread int *b, int c) { a = c; *b = c * 2; }
int shadow(int x) { int y = x; { int x = 5; y += x; } return y + x; }
int deflt(int a, int b = 10, int c = 100) { return a + b + c; }
void leave(thread int &v, int n, int m) { for (int i = 0; i < 100; i++) { if (i * i > n) return; v = i;
  if (i > m) break; } v = -1; }
int left(int n, int m) { int v = 7; leave(v, n, m); return v; }
`, `
  int a = 0, b = 0; out3(a, &b, 21);
  int sideA = 0; bool sc = false && (sideA = 1); bool sd = true || (sideA = 2);
  int arr[4] = {1, 2}; int arr2[2][3] = {{1, 2, 3}, {4, 5, 6}}; int arr3[] = {7, 8, 9};
  for (int i = 0; i < 4; i++) arr[i] += i;
  int sum2 = 0; for (int i = 0; i < 2; i++) for (int j = 0; j < 3; j++) sum2 += arr2[i][j] * (i + 1);
  float fa[3]; fa[0] = 1; fa[1] = fa[0] + 1; fa[2] = fa[0] + fa[1];
  thread int *pp = arr + 1; pp[1] = 50; *pp++ = 40; pp += 1;`, []row{
		{"early(-5)", -1}, {"early(0)", 0}, {"early(3)", 30}, {"early(50)", 99}, {"early(in[4])", 40},
		{"sw(0)", 11}, {"sw(1)", 10}, {"sw(2)", 100}, {"sw(3)", 100}, {"sw(9)", 7}, {"sw(in[1])", 10},
		{"loopy(6)", 13}, {"loopy(1)", 3}, {"nested(5)", 11}, {"comma(5)", 9}, {"a", 21}, {"b", 42}, {"sideA", 0},
		{"sc", 0}, {"sd", 1}, {"arr[0]", 1}, {"arr[1]", 40}, {"arr[2]", 50}, {"arr[3]", 3}, {"sum2", 36},
		{"arr2[1][2]", 6},
		{"sizeof(arr3) / sizeof(int)", 3}, {"fa[2]", 3}, {"pp - arr", 3}, {"*pp", 3}, {"shadow(2)", 9}, {"deflt(1)", 111},
		{"left(in[9], in[9])", 3}, {"left(in[9], in[1])", -1},
		{"deflt(1, 2)", 103}, {"(in + 5)[2]", 7}, {"*(in + 9)", 9}, {"&in[8] - in", 8}, {"cf[3]", 3.5}, {"in[in[3]]", 3},
	})
}

func TestVectors(t *testing.T) {
	t.Parallel()
	runRows(t, "", `
  float4 v = float4(1, 2, 3, 4); float3 w = v.xyz; w.zx = float2(10, 20); v.w *= 2; v.xy += float2(0.5f);
  int2 iv = int2(7, -7) / 2; uint3 uu = uint3(5); float4 mix4 = float4(v.xy, 9, w.z); half2 hh = half2(v.xw);
  vec<float, 3> gv = {1, 2, 3}; packed_float3 pf = w;
  int idx = in[2]; float dyn = v[idx]; v[idx] = 77; float4 arr[2] = {float4(1), float4(2)}; arr[in[1]].y = 5;
  device float4 *p4 = (device float4 *)out; bool3 cmp = w > 5.0f; float4 sp = 2.0f * v;`, []row{
		{"v.x", 1.5}, {"v.y", 2.5}, {"v.z", 77}, {"v.w", 8}, {"w.x", 20}, {"w.y", 2}, {"w.z", 10}, {"w.r", 20},
		{"iv.x", 3}, {"iv.y", -3}, {"uu.y", 5}, {"mix4.x", 1.5}, {"mix4.z", 9}, {"mix4.w", 10}, {"hh.y", 8}, {"gv[1]", 2},
		{"pf.x", 20}, {"sizeof(packed_float3)", 12}, {"sizeof(float3)", 16}, {"sizeof(half4)", 8}, {"dyn", 3},
		{"arr[1].y", 5}, {"arr[0].y", 1}, {"cmp.x", 1}, {"cmp.y", 0}, {"any(cmp)", 1}, {"all(cmp)", 0}, {"sp.x", 3},
		{"(v.xy * v.yx).x", 3.75}, {"-w.y", -2}, {"(int3(w) % 3).x", 2},
		{"select(float2(1), float2(2), bool2(true, false)).x", 2},
		{"select(float2(1), float2(2), bool2(true, false)).y", 1}, {"max(float2(1, 5), 3.0f).x", 3},
		{"min(uint2(1, 5), uint2(3)).y", 3},
		{"clamp(7.0f, 0.0f, 5.0f)", 5}, {"v.xyzw.wzyx.x", 8}, {"float3(v.x, v.yz).z", 77}, {"(uint2(3, 4) << 1).y", 8},
		{"fma(float2(2), float2(3), float2(4)).y", 10}, {"sqrt(float2(4, 9)).y", 3}, {"popcount(uint2(7, 1)).x", 3},
		{"int(float2(2.5).y)", 2}, {"float2(int2(3, 4)).y", 4}, {"rint(2.5f)", 2}, {"abs(-3)", 3}, {"abs(short(-3))", 3},
	})
}

func TestStructs(t *testing.T) {
	t.Parallel()
	runRows(t, `
struct P { float x, y; float len2() const { return x * x + y * y; } void scale(float s) { x *= s; y *= s; } };
struct C { float re, im; C() : re(0), im(0) {} C(float r) : re(r), im(0) {} C(float r, float i) : re(r), im(i) {}
  operator float() const { return re; } C operator+(C o) const { return C(re + o.re, im + o.im); }
  thread C &operator+=(const thread C &o) { re += o.re; im += o.im; return *this; } };
C operator*(C a, C b) { return C(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re); }
bool operator==(C a, C b) { return a.re == b.re && a.im == b.im; }
template <typename T, int N = 2> struct Arr { T v[N]; static constexpr constant int size = N;
  thread T &operator[](int i) { return v[i]; }
  T sum() const { T s = 0; for (int i = 0; i < N; i++) s += v[i]; return s; } };
template <typename T> struct Arr<T, 1> { T v[1]; T sum() const { return T(-1); } };
template <typename T> struct Traits { static constexpr constant int id = 0; using wide = T; };
template <> struct Traits<half> { static constexpr constant int id = 1; using wide = float; };
template <typename T> struct Traits<device T *> { static constexpr constant int id = 2; };
enum Color { Red, Green = 5, Blue }; enum class Kind : uchar { A = 1, B };
struct Outer { P p; int a[3]; struct In { int q = 4; } in; };
struct Base { int b = 3; int get() const { return b; } }; struct Derived : Base { int d = 4; };
union U { float f; uint u; };
struct Fn { int k; int operator()(int x) const { return x * k; } };
namespace ns { constant int kk = 12; namespace in { int f() { return kk; } } struct Q { int z; };
  int adl(Q q) { return q.z; } }
`, `
  P p = {3, 4}; p.scale(2); P q = p; q.x = 0; C c1(1, 2), c2 = 3.0f; C c3 = c1 * c1 + c2; c3 += C(10, 1);
  Arr<int, 3> ar = {{1, 2, 3}}; ar[1] = 20; Arr<float> ar2; ar2[0] = 1; ar2[1] = 5; Arr<int, 1> one;
  Outer o = {{1, 2}, {3, 4, 5}}; o.a[in[1]] += 6; Derived d; d.b += 1; U u; u.f = 1.0f; Fn fn{5};
  auto lam = [&](int x) { return x + o.a[0]; }; int acc = 0; auto add = [&acc](auto x) { acc += int(x); };
  add(2); add(3.5f);
  ns::Q qq = {9}; P ps[2] = {{1, 2}, {3, 4}}; thread P *pp = &ps[1]; pp->y = 40; const P cp = {7, 8}; C cz;`, []row{
		{"p.len2()", 100}, {"q.len2()", 64}, {"p.x", 6}, {"c3.re", 10}, {"c3.im", 5}, {"float(c3)", 10},
		{"c1 == C(1, 2)", 1},
		{"ar.sum()", 24}, {"ar2.sum()", 6}, {"one.sum()", -1}, {"Arr<int, 3>::size", 3}, {"Traits<float>::id", 0},
		{"Traits<half>::id", 1}, {"Traits<device int *>::id", 2}, {"sizeof(Traits<half>::wide)", 4}, {"Blue", 6},
		{"int(Kind::B)", 2}, {"o.a[1]", 10}, {"o.in.q", 4}, {"o.p.y", 2}, {"d.get()", 4}, {"d.d", 4},
		{"u.u == 0x3f800000", 1},
		{"fn(3)", 15}, {"lam(1)", 4}, {"acc", 5}, {"ns::in::f()", 12}, {"adl(qq)", 9}, {"ps[1].y", 40}, {"pp[-1].y", 2},
		{"cp.len2()", 113}, {"sizeof(Outer)", 24}, {"cz.re", 0}, {"C(5) + 1", 6}, {"P{1, 2}.y", 2}, {"c1.re * 2", 2},
	})
}

func TestTemplates(t *testing.T) {
	t.Parallel()
	runRows(t, `
template <typename T> T twice(T x) { return x + x; }
template <typename T, typename U> auto mixed(T a, U b) -> decltype(a + b) { return a + b; }
template <int N> int fact() { return N * fact<N - 1>(); }
template <> int fact<0>() { return 1; }
template <typename T, int N> T total(const thread T (&a)[N]) { T s = 0; for (int i = 0; i < N; ++i) s += a[i];
  return s; }
template <typename T> T first(const device T *p) { return p[0]; }
template <typename T> T first(constant T *p) { return p[1]; }
template <typename... Ts> int count(Ts... ts) { return sizeof...(Ts); }
template <typename T> T sumAll(T x) { return x; }
template <typename T, typename... R> T sumAll(T x, R... r) { return x + sumAll(r...); }
template <typename T> int kind(T) { if constexpr (metal::is_same_v<T, float>) return 1;
  else if constexpr (metal::is_integral_v<T>) return 2; else return 3; }
template <typename T, typename = metal::enable_if_t<metal::is_floating_point_v<T>>> int sf(T) { return 1; }
template <typename T, metal::enable_if_t<metal::is_integral_v<T>, int> = 0> int sf(T) { return 2; }
template <bool B, typename T> struct Sel { static T get(T a, T b) { return B ? a : b; } };
template <template <typename> class F, typename T> T app(T x) { return F<T>()(x); }
template <typename T> struct Inc { T operator()(T x) { return x + 1; } };
template <typename T> constexpr constant T pi = T(3.5f);
constexpr int cfib(int n) { return n < 2 ? n : cfib(n - 1) + cfib(n - 2); }
constexpr int cloop(int n) { int s = 0; for (int i = 0; i < n; i++) { if (i % 2) continue; s += i; } return s; }
template <typename T> using V4 = vec<T, 4>;
constant int table[] = {10, 20, 30};
constant constexpr float ftab[2][2] = {{1, 2}, {3, 4}};
template <typename Op, typename T> T red(Op op, T a, T b) { return op(a, b); }
`, `
  int a5[] = {1, 2, 3, 4, 5}; int cc[cfib(6)]; V4<int> v4 = V4<int>(1, 2, 3, 4); const int local = 3;
  int sized[local * 2];
  static_assert(cloop(10) == 20, "loop"); static_assert(sizeof(cc) == 32, "fib");`, []row{
		{"twice(3)", 6}, {"twice(1.5f)", 3}, {"twice<int>(2.7f)", 4}, {"mixed(1, 2.5f)", 3.5}, {"fact<5>()", 120},
		{"total(a5)", 15},
		{"first(in + 3)", 3}, {"first(cf)", 1.5}, {"count()", 0}, {"count(1, 2.0f, true)", 3}, {"sumAll(1, 2, 3, 4)", 10},
		{"kind(1.0f)", 1}, {"kind(1)", 2}, {"kind(half(1))", 3}, {"sf(1.0f)", 1}, {"sf(1)", 2},
		{"Sel<true, int>::get(3, 4)", 3},
		{"Sel<false, int>::get(3, 4)", 4}, {"app<Inc>(4)", 5}, {"pi<float>", 3.5}, {"pi<int>", 3}, {"v4.z", 3},
		{"sizeof(sized)", 24},
		{"table[1]", 20}, {"table[in[2]]", 30}, {"ftab[1][0]", 3}, {"ftab[in[1]][in[1]]", 4},
		{"red([](int a, int b) { return a * b; }, 3, 4)", 12},
		{"cfib(10)", 55}, {"sizeof(cc) / sizeof(cc[0])", 8},
	})
}
