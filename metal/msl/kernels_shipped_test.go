package msl_test

import "testing"

// What kernels of libraries that ship for Metal rely on, in kernels of their own.
func TestShippedKernels(t *testing.T) {
	t.Parallel()
	runKernels(t, shippedKernels)
}

var shippedKernels = []kernelCase{
	{name: "a deleted template with specialisations", grid: one, want: []int32{7, 20, 3}, text: `
template <typename A, typename B> inline B conv(A v) = delete;
template <> inline float conv<float, float>(float v) { return v; }
template <> inline int conv<uchar, int>(uchar v) { return v * 10; }
int pick(float) = delete;
int pick(int v) { return v; }
kernel void k(device int *out [[buffer(0)]]) {
  out[0] = conv<float, float>(7.0f); out[1] = conv<uchar, int>(2); out[2] = pick(3);
}`},
	{name: "linkage", grid: one, want: []int32{5, 6, 7, 8}, text: `
extern "C" struct Params { int a; int b; };
extern "C" int twice(int x);
extern "C" { int thrice(int x) { return 3 * x; } constant int base = 7; namespace inner { constant int deep = 8; } }
extern "C++" int twice(int x) { return 2 * x; }
extern "C" kernel void k(device int *out [[buffer(0)]]) {
  Params p = {5, 3}; out[0] = p.a; out[1] = twice(p.b); out[2] = base + 0 * thrice(1); out[3] = inner::deep;
}`},
	{name: "thread beside another address space", grid: one, in: []any{[]int32{4, 5, 6, 7}}, want: []int32{4, 6, 15, 4},
		text: `
int sum(thread device const int *const *rows, thread const int &n) {
  int s = 0;
  for (int i = 0; i < n; i++) s += *rows[i];
  return s;
}
kernel void k(device int *out [[buffer(0)]], device const int *in [[buffer(1)]]) {
  thread const device int *p[3];
  for (int i = 0; i < 3; i++) p[i] = in + i;
  out[0] = p[0][0]; out[1] = *p[2]; out[2] = sum(p, 3);
  device thread int *q = out; out[3] = q[0];
}`},
	{name: "functions of functions, declared before", grid: one, want: []int32{14, 12, 9, 8, 31}, text: `
typedef int (*Unary)(int);
int apply(int (*f)(int), int x);
int through(int (*f)(int), int x) { return (*f)(x) + apply(f, x); }
int nested(int (*g)(int (*)(int), int), Unary f) { return g(f, 4); }
template <typename T> T fold(T (&f)(T), T x);
int apply(Unary f, const int x) { return (**f)(x); }
template <typename T> T fold(T (&f)(T), T x) { return (*f)(f(x)); }
int more(const int x) { return x + 5; }
int both(Unary f, int x) { return apply(f, x) * 10 + 1; }
int minus(int x) { return x - 2; }
kernel void k(device int *out [[buffer(0)]]) {
  out[0] = through(more, 2); out[1] = fold(more, 2); out[2] = nested(apply, more); out[3] = (*more)(3);
  out[4] = both(minus, 5);
}`},
	{name: "threadgroup parameters without an index", group: [3]int{4, 1, 1}, grid: [3]int{4, 1, 1}, shared: []int{16, 32},
		want: []int32{30, 21, 12, 3}, text: `
kernel void k(device int *out [[buffer(0)]], threadgroup int *a, threadgroup int *b,
              uint i [[thread_index_in_threadgroup]]) {
  a[i] = i; b[i] = 10 * i; b[i + 4] = 5;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = b[3 - i] + a[i] + (b[7] == 5 ? 0 : 100);
}`},
	{name: "asserts do nothing", grid: one, want: []int32{1, 2}, text: `
#include <metal_assert>
template <int N> int half_of() { assert(N % 2 == 0 && "even"); return N / 2; }
kernel void k(device int *out [[buffer(0)]]) {
  assert(out[0] == 99); out[0] = half_of<2>(); metal::vec<int, 2> v(1, 2);
  if (v.x) assert(metal::vec<int, 2>(1).x == 1); else out[0] = 5;
  out[1] = v.y;
}`},
	{name: "constant pointers to tables", grid: one, want: []int32{3, 4, 8, 2, 3, 8, 6, 2}, text: `
constant int table[4] = {1, 2, 3, 4};
constant int grid[2][2] = {{5, 6}, {7, 8}};
struct S { int a; int b; };
constant S one = {1, 2};
constant const int *constant tail = table + 2;
namespace far { constant int grid[2] = {5, 6}; constexpr constant int *constant last = &grid[1]; }
struct Lists { static constexpr constant int *first = table; static constexpr constant S *s = &one; };
template <typename T> int second() { constexpr auto p = T::first + 1; return *p; }
kernel void k(device int *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  constexpr constant int *p = table; constexpr constant int *q = table + 1;
  constexpr constant S *s = &one;
  out[0] = p[2 + i]; out[1] = q[2]; constexpr constant int (*g)[2] = grid; out[2] = g[1][1]; out[3] = s->b;
  out[4] = tail[i]; out[5] = tail[1] * second<Lists>(); out[6] = *far::last; out[7] = Lists::s->b;
}`},
	{name: "sequences of integers", grid: one, want: []int32{18, 5, 0, 3, 6, 9, 64}, text: `
template <int N> struct Int { static constexpr constant int value = N; };
template <int step, typename F, int... Is> constexpr void each(F f, metal::integer_sequence<int, Is...>) {
  (f(Int<Is * step>{}), ...);
}
template <size_t... I> int squares(metal::index_sequence<I...>) { return (int(I * I) + ... + 0); }
template <typename... T> int count(T...) { return int(metal::index_sequence_for<T...>::size()); }
kernel void k(device int *out [[buffer(0)]]) {
  int s = 0;
  each<3>([&](auto i) { s += decltype(i)::value; out[2 + decltype(i)::value / 3] = decltype(i)::value; },
          metal::make_integer_sequence<int, 4>{});
  out[0] = s; out[1] = squares(metal::make_index_sequence<3>{}) * int(metal::make_index_sequence<0>::size() + 1);
  out[6] = count(1, 2.0f) * 32;
}`},
	{name: "coherent parameters", grid: one, in: []any{[]int32{9, 4}}, want: []int32{9, 13}, text: `
struct Data { int a, b; };
kernel void k(coherent device int *out [[buffer(0)]], coherent device Data &d [[buffer(1)]]) {
  out[0] = d.a; out[1] = d.a + d.b;
}`},
	{name: "atomics by their other name", grid: [3]int{64, 1, 1}, group: [3]int{64, 1, 1}, want: []int32{64, 32}, text: `
void add(threadgroup metal::_atomic<uint> *n) { metal::atomic_fetch_add_explicit(n, 1u, metal::memory_order_relaxed); }
kernel void k(device int *out [[buffer(0)]], uint i [[thread_position_in_threadgroup]]) {
  threadgroup metal::_atomic<uint> n[2];
  if (i < 2) metal::atomic_store_explicit(&n[i], 0u, metal::memory_order_relaxed);
  threadgroup_barrier(metal::mem_flags::mem_threadgroup);
  add(&n[0]); if (i & 1) add(&n[1]);
  threadgroup_barrier(metal::mem_flags::mem_threadgroup);
  if (i < 2) out[i] = metal::atomic_load_explicit(&n[i], metal::memory_order_relaxed);
}`},
	{name: "vectors by clang's attribute", grid: one, want: []int32{3, 16, 5}, text: `
typedef float f4 __attribute__((ext_vector_type(4)));
using s2 = short __attribute__((ext_vector_type(2)));
kernel void k(device int *out [[buffer(0)]]) {
  f4 v = {1, 2, 3, 4}; out[0] = v.z; out[1] = sizeof(f4); s2 s(2, 3); out[2] = s.x + s[1];
}`},
	{name: "indices in braces", grid: one, want: []int32{6, 7, 1}, text: `
struct Coord { int row; int col; };
struct Tile {
  device int *p;
  device int &operator[](Coord at) thread const { return p[at.row * 2 + at.col]; }
};
struct Pick { int operator[](int2 at) const { return at.x * 10 + at.y; } };
kernel void k(device int *out [[buffer(0)]]) {
  Tile t = {out}; int r = 0; t[{r, 0}] = 6; t[{r, 1}] = t[{0, 0}] + 1; Pick p; out[2] = p[{1, 5}] - 14;
}`},
	{name: "one of several templates as a value", grid: one, want: []int32{0, 1, 2, 10, 11, 12, 100}, text: `
struct Row { static constexpr constant bool rows = true; };
struct Col { static constexpr constant bool rows = false; };
template <typename L, typename T> METAL_FUNC static typename metal::enable_if<L::rows, void>::type
put(int i, int j, device T *p, const int scale) { p[i * 3 + j] = i * scale + j; }
template <typename L, typename T> METAL_FUNC static typename metal::enable_if<!L::rows, void>::type
put(int i, int j, device T *p, const int scale) { p[i + j] = 10 * scale; }
template <int N> struct Each {
  template <class F, typename... Args> static METAL_FUNC void run(F f, int i, Args... args) {
    Each<N - 1>::run(f, i, args...); f(i, N - 1, args...);
  }
};
template <> struct Each<0> { template <class F, typename... Args> static METAL_FUNC void run(F, int, Args...) {} };
kernel void k(device int *out [[buffer(0)]]) {
  Each<3>::run(put<Row, int>, 0, out, 10); Each<3>::run(put<Row, int>, 1, out, 10);
  Each<1>::run(put<Col, int>, 6, out, 10);
}`},
	{name: "a kernel template declared before its definition", grid: [3]int{2, 1, 1}, in: []any{[]int32{5, 6}},
		want: []int32{10, 12}, kernel: "k_int", text: `
template <typename T, typename F> kernel void k(device T *out, constant T *in, uint i);
struct Twice { template <typename T> T operator()(T x) { return x + x; } };
template [[host_name("k_int")]] kernel void k<int, Twice>(device int *out, constant int *in, uint i);
template <typename T, typename F> kernel void k(device T *out [[buffer(0)]], constant T *in [[buffer(1)]],
                                                uint i [[thread_position_in_grid]]) { out[i] = F()(in[i]); }`},
	{name: "overloaded kernel templates", grid: [3]int{2, 1, 1}, in: []any{[]int32{5, 6}, []int32{3}},
		want: []int32{15, 18}, kernel: "scaled", text: `
template <typename T> kernel void k(device T *out, constant T *in, uint i [[thread_position_in_grid]]) {
  out[i] = in[i];
}
template <typename T> kernel void k(device T *out, constant T *in, constant T &by, uint i [[thread_position_in_grid]]) {
  out[i] = in[i] * by;
}
template [[host_name("plain")]] kernel void k<int>(device int *out, constant int *in, uint i);
template [[host_name("scaled")]] kernel void k<int>(device int *out, constant int *in, constant int &by, uint i);`},
	{name: "parameters that are functions", grid: one, want: []int32{7, 9, 1, 2, 1, 12, 5}, text: `
static inline bool true_op(bool, bool) { return true; }
uchar most(uchar a, uchar b) { return a > b ? a : b; }
template <typename T> T total(T a, T b) { return a + b; }
template <typename T> T apply(T a, T b, T (*op)(T, T)) { return op(a, b); }
template <typename A, typename B> int other(A a, B b, int (&op)(A, B)) { return op(a, b); }
int sub(int a, short b) { return a - b; }
int unused(int (*op)(int)) { return op(1); }
int plain(uchar a, uchar (*op)(uchar, uchar)) { return op(a, 7); }
struct S { static int go(uchar x, uchar (*op)(uchar, uchar)) { return apply(x, uchar(3), op); } };
kernel void k(device int *out [[buffer(0)]]) {
  out[0] = plain(3, most); out[1] = S::go(9, &most); out[2] = apply<bool>(false, false, true_op);
  out[3] = apply(uchar(1), uchar(2), most); out[4] = other(4, short(3), sub); out[5] = plain(5, total<uchar>);
  out[6] = apply(2, 3, total<int>);
}`},
	{name: "bfloat is there", grid: one, want: []int32{1, 0x3f80}, text: `
#if defined(__HAVE_BFLOAT__)
typedef bfloat mine;
#else
#error no bfloat
#endif
kernel void k(device int *out [[buffer(0)]]) { out[0] = __HAVE_BFLOAT__; out[1] = as_type<ushort>(mine(1)); }`},
}
