package msl_test

import "testing"

// What further rules of the language come to, in kernels of their own.
func TestRuleKernels(t *testing.T) {
	t.Parallel()
	runKernels(t, ruleKernels)
}

var ruleKernels = []kernelCase{
	{name: "atomic bools are bytes", grid: [3]int{64, 1, 1}, group: [3]int{64, 1, 1}, in: []any{make([]byte, 12)},
		want: []int32{8, 8, 8, 8, 3, 1, 2, 1, 12, 1}, text: `
kernel void k(device atomic_int *out, device atomic_bool *flags, uint i [[thread_position_in_grid]]) {
  threadgroup atomic_bool mine[9];
  if (i < 9) atomic_store_explicit(&mine[i], false, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  // Of all threads that exchange one finds false, of those that compare one succeeds.
  if (!atomic_exchange_explicit(&mine[i & 7], true, memory_order_relaxed))
    atomic_fetch_add_explicit(&out[0], 1, memory_order_relaxed);
  if (!atomic_exchange_explicit(&flags[i & 7], true, memory_order_relaxed))
    atomic_fetch_add_explicit(&out[1], 1, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);
  bool expected = true;
  if (atomic_compare_exchange_weak_explicit(&mine[i & 7], &expected, false, memory_order_relaxed, memory_order_relaxed))
    atomic_fetch_add_explicit(&out[2], 1, memory_order_relaxed);
  else if (!expected && (expected = true, atomic_compare_exchange_weak_explicit(&flags[i & 7], &expected, false,
      memory_order_relaxed, memory_order_relaxed)))
    atomic_fetch_add_explicit(&out[3], 1, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);
  if (i == 0) {
    // The neighbours of a byte stay.
    device uchar *raw = (device uchar *)flags;
    raw[8] = 3; raw[9] = 1; raw[10] = 2; raw[11] = 255;
    bool seen = atomic_load_explicit(&flags[10], memory_order_relaxed);
    atomic_store_explicit(&flags[11], seen, memory_order_relaxed);
    int n = 0;
    for (int j = 0; j < 8; j++) n += raw[j] + atomic_load_explicit(&mine[j], memory_order_relaxed);
    for (int j = 0; j < 4; j++) atomic_store_explicit(&out[4 + j], raw[8 + j], memory_order_relaxed);
    atomic_store_explicit(&out[8], n + 12, memory_order_relaxed);
    atomic_store_explicit(&out[9], int(sizeof(atomic<bool>)), memory_order_relaxed);
  }
}`},
	{name: "fields that are references", in: []any{list(32, func(i int) float32 { return float32(i) })},
		want: list(32, func(i int) float32 { return float32((i+1)%32)*2 + float32(i) + 100 + 7 }), text: `
template <typename T, int N> struct Tile {
  threadgroup T (&s)[N];
  device const float &first;
  thread int &count;
  Tile(threadgroup T (&a)[N], device const float *x, thread int &n) : s(a), first(*x), count{n} {}
  T next(uint i) const { count += 1; return s[(i + 1) % N]; }
};
struct Pair { thread float &a; device float *out; float b = 7; void add(float x) { a += x; } };
struct Both : Pair { threadgroup float &t; };
kernel void k(device float *out, device const float *in, uint i [[thread_position_in_grid]]) {
  threadgroup float s[32];
  s[i] = in[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  int calls = 0;
  Tile<float, 32> tile(s, in + 3, calls);
  const Tile<float, 32> same = tile;
  float sum = tile.next(i) + same.next(i);
  float acc = 0;
  Pair p{acc, out};
  p.add(in[i]);
  auto [ra, ro, rb] = p;
  ra += 50 * calls;
  Both b{{acc, out}, s[i]};
  b.add(0);
  static_assert(sizeof(Pair) == 24 && sizeof(p.a) == 4 && sizeof(tile.s) == 128, "sizes");
  p.out[i] = sum + acc + rb + (tile.first - 3) + (&b.t - &s[i]);
}`},
	{name: "statements in parentheses", want: list(32, func(i int) int32 {
		s := 0
		for j := 0; j < i; j++ {
			if j == 20 {
				break
			}
			s += max(j, 3) * 2
		}
		if i == 7 {
			return int32(s)
		}
		return int32(s + 1000 + i)
	}), text: `
#define MAX(a, b) ({ auto _a = (a); auto _b = (b); _a > _b ? _a : _b; })
template <typename T> T twice(T x) { return ({ T y = x; y += x; y; }); }
kernel void k(device int *out, uint i [[thread_position_in_grid]]) {
  int s = 0;
  for (int j = 0; j < int(i); j++) {
    s += ({ if (j == 20) break; int m = MAX(j, MAX(3, 1)); twice(m); });
  }
  out[i] = s;
  static_assert(sizeof(({ char c = 1; c; })) == 1, "a char");
  int n = ({ if (i == 7) return; ({ ; }); 1000; }) + ({ int l[2] = {0, int(i)}; l + 1; })[0];
  out[i] += n;
}`},
	{name: "default members of aggregates",
		want: list(32, func(i int) int32 { return int32(i + (i + 1) + 2 + (5 + 6 + 2) + 14) }), text: `
struct Outer {
  struct Inner { int x; int y = x + 1; enum Kind { A = 1, B = 2 }; Kind kind = B; };
  Inner in;
  int z = in.x;
};
constexpr Outer fixed = {{5}};
kernel void k(device int *out, uint i [[thread_position_in_grid]]) {
  Outer o{{int(i)}};
  Outer list[2] = {{{.x = 1}}, {{3}, 10}};
  static_assert(fixed.in.y == 6 && fixed.z == 5, "constants too");
  out[i] = o.in.x + o.in.y + o.in.kind + (fixed.z + fixed.in.y + fixed.in.kind) + list[0].z + list[1].z + list[1].in.x;
}`},
	{name: "sizes of addresses", want: list(32, func(i int) int32 { return int32(i + 1 + 4 + 8) }), text: `
kernel void k(device int *out, uint i [[thread_position_in_grid]]) {
  int a = i;
  a += 1;
  decltype(&a) p = nullptr;
  static_assert(sizeof(*p) == 4 && sizeof(p[1]) == 4, "what a pointer points to");
  int n = sizeof(*&a);
  auto q = sizeof(&a);
  out[i] = a + n + int(q);
}`},
	{name: "partial specialisations with packs and defaults",
		want: list(32, func(i int) int32 { return int32(i + 2 + 123) }), text: `
template <typename... T> struct Tuple;
template <> struct Tuple<> {};
template <typename H, typename... T> struct Tuple<H, T...> { H head; Tuple<T...> tail; };
template <typename T, typename U = float> struct S { static constexpr int v = 1; };
template <typename T> struct S<T *> { static constexpr int v = 2; }; // and U is float
template <typename T> struct S<T, int> { static constexpr int v = 3; };
kernel void k(device int *out, uint i [[thread_position_in_grid]]) {
  Tuple<int, float> t{int(i), {2.0f, {}}};
  out[i] = t.head + int(t.tail.head) + S<int *, half>::v * 100 + S<int *>::v * 10 + S<half, int>::v;
}`},
	{name: "constructors of a base", want: list(32, func(i int) int32 { return int32(i + 7 + 2*7 + 5 + 1) }), text: `
struct V {
  int x;
  V(int a) : x(a) {}
  V(int a, int b) : V(a + b) {}
  operator int() const { return x; }
};
struct W : V { using V::V; int y = 5; int twice() const { return 2 * x; } };
kernel void k(device int *out, uint i [[thread_position_in_grid]]) {
  W w(3, 4), one{1};
  out[i] = i + w + w.twice() + w.y + one;
}`},
	{name: "names of the simd header", want: list(32, func(i int) float32 { return float32(i) + 5 }), text: `
#include <simd/simd.h>
struct Shared { vector_float3 p; simd_uint2 n; matrix_float4x4 m; };
kernel void k(device float *out, uint i [[thread_position_in_grid]]) {
  Shared s = {{1, 2, 3}, {4, 5}, matrix_float4x4(2.0f)};
  static_assert(sizeof(Shared) == 96, "as the program's");
  simd::float4 v = s.m * simd::float4(1, 0, 0, 1);
  out[i] = i + s.p.z + v.w + simd_float4x4(0).columns[0].x;
}`},
	{name: "functions as values", want: list(32, func(i int) float32 {
		x := float32(i)
		return 2*x + x*x + 3*x + x + x*x
	}), text: `
template <typename F> float twice(F f, float x) { return f(x) + f(x); }
float same(float x) { return x; }
float square(float x) { return x * x; }
template <typename T> T triple(T x) { return x * 3; }
template <typename F> struct Map { F f; float operator()(float x) const { return f(x); } };
kernel void k(device float *out, uint i [[thread_position_in_grid]]) {
  auto g = square;
  auto h = &same;
  Map<decltype(g)> m{g}, n{square};
  out[i] = twice(same, i) + m(i) + twice(triple<float>, i) / 2 + h(i) + n(i);
}`},
	{name: "decltype(auto)", want: list(32, func(i int) int32 { return int32(i/2 + 5 + 3) }), text: `
decltype(auto) half_of(thread int &x) { x /= 2; return (x); }
template <typename F> decltype(auto) call(F f, thread int &x) { return f(x); }
struct S { int v; decltype(auto) get() thread { return (v); } decltype(auto) value() const { return v; } };
int square(int x) { return x * x; }
auto pick() { return square; }
kernel void k(device int *out, uint i [[thread_position_in_grid]]) {
  int x = i, y = 2;
  half_of(x) += 0;
  S s{4};
  s.get() += 1;
  call([](thread int &z) -> thread int & { return z; }, y) += 1;
  out[i] = x + s.value() + y * (pick()(2) - 3);
}`},
	{name: "ranges of designators", want: list(32, func(i int) float32 { return float32(i)*2 + 5 + 8 }), text: `
kernel void k(device float *out, uint i [[thread_position_in_grid]]) {
  float a[5] = {[0 ... 4] = 1.0f}, b[4] = {[1 ... 2] = float(i)};
  struct P { int x, y; } p[3] = {[0 ... 1] = {1, 2}, {2, 0}};
  int calls = 0, c[3] = {[0 ... 2] = ++calls};
  out[i] = a[0] + a[1] + a[2] + a[3] + a[4] + b[0] + b[1] + b[2] + b[3];
  out[i] += p[0].y + p[1].y + p[2].x + calls + c[2];
}`},
	{name: "constructors named with their arguments", want: list(32, func(i int) int32 { return int32(i + 3) }), text: `
template <typename T> struct Indexed {
  uint i;
  T val;
  constexpr Indexed<T>() threadgroup = default;
  constexpr Indexed<T>() = default;
  Indexed<T>(uint n, T v) : i(n), val(v) {}
  Indexed<T> next() const { return Indexed<T>(i + 1, val); }
};
template <typename T> struct metal::_numeric_limits_impl<Indexed<T>> {
  static constexpr Indexed<T> max() { return Indexed<T>(0, numeric_limits<T>::max()); }
};
kernel void k(device int *out, uint i [[thread_position_in_grid]]) {
  threadgroup Indexed<int> shared[32];
  shared[i] = Indexed<int>(i, 2).next();
  out[i] = shared[i].i + shared[i].val + (numeric_limits<Indexed<int>>::max().val == INT_MAX ? 0 : 100);
}`},
	{name: "templates chosen by a function's type", kernel: "both",
		want: list(32, func(i int) float32 { return float32(i)*11 + 2 }), text: `
typedef void(one_t)(device float *out, uint i);
typedef void(two_t)(device float *out, uint i, float x);
template <typename T> void one(device float *out, T i) { out[i] += i; }
template <typename T, typename U> void two(device float *out, U i, T x) { out[i] += i * x; }
template <one_t f> void call(device float *out, uint i) { f(out, i); }
template <two_t f> void call(device float *out, uint i) { f(out, i, 10); }
typedef decltype(call<one<uint>>) call_t;
template <call_t f> kernel void run(device float *out, uint i [[thread_position_in_grid]]) { out[i] = 2; f(out, i); }
template [[host_name("k")]] kernel decltype(run<call<one<uint>>>) run<call<one<uint>>>;
template [[host_name("other")]] kernel decltype(run<call<two<float>>>) run<call<two<float>>>;
kernel void both(device float *out, uint i [[thread_position_in_grid]]) {
  out[i] = 2;
  call<one<uint>>(out, i);
  call<two<float>>(out, i);
}`},
	{name: "an overload beside the library's",
		want: list(32, func(i int) float32 { return float32(i^1)*3 + 0.75 }), text: `
METAL_FUNC int64_t simd_shuffle_xor(int64_t x, ushort m) {
  return as_type<int64_t>(simd_shuffle_xor(as_type<uint2>(x), m));
}
template <typename T> struct Box { T v; };
template <typename T> Box<T> simd_shuffle_xor(Box<T> b, ushort m) { return Box<T>{simd_shuffle_xor(b.v, m)}; }
kernel void k(device float *out, uint i [[thread_position_in_grid]]) {
  __extension__ union { float f; uint u; } b;
  b.f = i + 0.25f;
  out[i] = simd_shuffle_xor(b.f, 1) + simd_shuffle_xor(int64_t(i), 1) + simd_shuffle_xor(Box<float>{i + 0.5f}, 1).v;
}`},
}
