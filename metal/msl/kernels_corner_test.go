package msl_test

import (
	"testing"

	"github.com/mlxlua/mlxlua/metal/msl"
)

// Corners of the language that kernels use now and then.
func TestCornerKernels(t *testing.T) {
	t.Parallel()
	runKernels(t, cornerKernels)
}

var one = [3]int{1, 1, 1}

var cornerKernels = []kernelCase{
	{name: "?: as an object", grid: [3]int{2, 1, 1}, want: []int32{15, 2, 9, 71, 1, 25, 3, 8}, text: `
kernel void k(device int *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  int a = 1, b = 2, c = 3, d = 7;
  (i == 0 ? a : b) = 5; (i == 0 ? a : b) += 10; (i == 0 ? a : b)++; --(i == 0 ? a : b);
  thread int &r = i == 0 ? c : d; r = 9 - i; thread int *p = &(i == 0 ? d : d); *p = *p * 10 + 1;
  if (i) { b += 10; d /= 10; }
  out[4 * i] = a; out[4 * i + 1] = b; out[4 * i + 2] = c; out[4 * i + 3] = d;
}`},
	{name: "designators", grid: one, want: []int32{3, 0, 5, 2, 7, 9, 0, 4, 8, 6, 0x3f800000, 7, 11}, text: `
struct P { int x, y, z; };
struct Q { P p; int w[2]; };
struct D { int a = 7; int b = 8; };
union U { float f; int i; };
constant P fixed = {.y = 11};
kernel void k(device int *out [[buffer(0)]]) {
  P p = {.x = 3, .z = 5}; out[0] = p.x; out[1] = p.y; out[2] = p.z;
  Q q = {.p = {.y = 2}, .w = {7, 9}}; out[3] = q.p.y; out[4] = q.w[0]; out[5] = q.w[1];
  int a[] = {[1] = 4, 8, [4] = 6}; out[6] = a[0]; out[7] = a[1]; out[8] = a[2]; out[9] = a[4] + a[3] + sizeof(a) - 20;
  U u = {.f = 1}; out[10] = u.i; D d = {.b = 1}; out[11] = d.a; out[12] = fixed.y;
}`},
	{name: "structured bindings", grid: one, want: []int32{1, 2, 30, 4, 5, 6, 40, 1, 2, 9, 86, 34}, text: `
struct P { int x; int y; };
P make(int a) { return {a, a + 1}; }
kernel void k(device int *out [[buffer(0)]]) {
  P p = {1, 2}; auto [a, b] = p; out[0] = a; out[1] = b; auto &[c, d] = p; c = 30; out[2] = p.x;
  int arr[2] = {4, 5}; auto [e, f] = arr; arr[0] = 0; out[3] = e; out[4] = f;
  const auto [x, y] = make(5); out[5] = y; auto &[g, h] = arr; g = 40; out[6] = arr[0];
  auto [s, t, u] = int3(1, 2, 9); out[7] = s; out[8] = t; out[9] = u;
  P all[] = {{1, 2}, {3, 4}}; for (auto &[m, n] : all) { m *= 10; n += m; }
  out[10] = 0; for (const auto [m, n] : all) { out[10] += m + n; } out[11] = all[1].y;
}`},
	{name: "words for operators", grid: one, want: []int32{1, 0, 1, 6, 5, 1, 7, 1, -6, 3}, text: `
#if defined(NONE) or not defined(__METAL_VERSION__)
#error not reached
#endif
kernel void k(device int *out [[buffer(0)]]) {
  int x = 4; x or_eq 3; out[6] = x; x and_eq 3; out[9] = x; bool2 v(false, true);
  out[0] = not false; out[1] = true and false; out[2] = true or false; out[3] = 5 xor 3; out[4] = 5 bitand 7;
  out[5] = 1 not_eq 2; out[7] = (not v).x; out[8] = compl 5;
}`},
	{name: "attributes of classes", grid: one, want: []int32{16, 16, 32, 5, 8, 33, 2, 13, 32}, text: `
struct alignas(16) A { float x; };
struct B { char c; alignas(16) float f; };
struct __attribute__((packed)) C { char c; int i; };
struct D { char c; int i; };
struct E { ushort a; ulong b; packed_short3 c; D d; uchar e; } __attribute__((packed));
struct F { char c; } __attribute__((aligned(32)));
kernel void k(device int *out [[buffer(0)]]) {
  C c[2] = {{1, 2}, {3, 33}}; E e = {1, 2, packed_short3(3, 4, 13), {5, 6}, 7};
  out[0] = sizeof(A); out[1] = alignof(A); out[2] = sizeof(B); out[3] = sizeof(C); out[4] = sizeof(D);
  thread C *p = c; out[5] = p[1].i; out[6] = e.b; out[7] = e.c[2]; out[8] = sizeof(F) + sizeof(E) - 25;
}`},
	{name: "objects built by constant constructors", grid: one, want: []int32{0, 1, 4, 9, 3}, text: `
struct Squares { int v[4]; constexpr Squares() : v() { for (int i = 0; i < 4; i++) v[i] = i * i; } };
constant constexpr Squares squares; constant Squares again;
kernel void k(device int *out [[buffer(0)]]) {
  for (int j = 0; j < 4; j++) out[j] = squares.v[j];
  constexpr Squares own; out[4] = own.v[2] - again.v[1];
}`},
	{name: "lambdas that change their copies", grid: one, want: []int32{2, 3, 1}, text: `
kernel void k(device int *out [[buffer(0)]]) {
  int c = 1; auto f = [c]() mutable { c++; return c; }; out[0] = f(); out[1] = f(); out[2] = c;
}`},
	{name: "forwarding references", grid: one, want: []int32{4, 3, 9, 1, 2}, text: `
template <typename T> int take(T &&x) { return x + 1; }
template <typename T> void set(T &&x) { x = 9; }
int which(thread int &) { return 1; }
int which(thread int &&) { return 2; }
kernel void k(device int *out [[buffer(0)]]) {
  int a = 3; out[0] = take(a); out[1] = take(2); set(a); out[2] = a; out[3] = which(a); out[4] = which(5);
}`},
	{name: "optional arguments of macros", grid: one, want: []int32{0, 3, 6, 7}, text: `
#define CALL(f, ...) f(0 __VA_OPT__(,) __VA_ARGS__)
#define LIST(x, ...) {x __VA_OPT__(+ sizeof(#__VA_ARGS__))}
int f(int a, int b = 0, int c = 0) { return a + b + c; }
kernel void k(device int *out [[buffer(0)]]) {
  out[0] = CALL(f); out[1] = CALL(f, 1, 2); int a[1] = LIST(2, abc); int b[1] = LIST(7); out[2] = a[0]; out[3] = b[0];
}`},
	{name: "rows by pointers and references", grid: one, want: []float32{3, 40, 5, 9, 7, 65504, 2147483647}, text: `
float second(float (thread *row)[2]) { return (*row)[1]; }
float first(const float (thread &row)[2]) { return row[0]; }
template <typename T, int N> void add(T (thread *rows)[N], int n, T v) {
  for (int i = 0; i < n; i++) for (int j = 0; j < N; j++) rows[i][j] += v; }
kernel void k(device float *out [[buffer(0)]]) {
  float a[3][2] = {{1, 2}, {3, 40}, {5, 6}}; threadgroup float t[2][2];
  out[0] = first(a[1]); out[1] = second(a + 1); float (thread *last)[2] = &a[2]; out[2] = (*last)[0];
  float (threadgroup *p)[2] = t; p[1][1] = 9; out[3] = t[1][1]; add(a, 2, 1.0f); add(a + 1, 1, 3.0f); out[4] = a[1][0];
  float (device *rows)[2] = reinterpret_cast<float (device *)[2]>(out); rows[2][1] = __FLT16_MAX__;
  out[6] = __INT_MAX__;
}`},
	{name: "function constants that may be missing", grid: one,
		constants: []msl.FunctionConstant{{Name: "a", Values: []any{true}}, {Index: 2, Values: []any{7.0}}},
		want:      []int32{7, 1, 0, 3, 5}, text: `
constant bool a [[function_constant(0)]]; constant int b [[function_constant(1)]];
constant int c [[function_constant(2)]];
constant bool has_b = is_function_constant_defined(b); constant int b_or_3 = has_b ? b : 3;
constant int c_or_4 = is_function_constant_defined(c) ? c : 4;
kernel void k(device int *out [[buffer(0)]], device int *extra [[buffer(1), function_constant(has_b)]]) {
  out[0] = c_or_4; out[1] = a; out[2] = has_b; out[3] = b_or_3; out[4] = 5;
  if (has_b) { out[4] = b + extra[0]; }
}`},
	{name: "logs and enums without names", grid: one, want: []int32{9, 3, 5, 2, 8}, text: `
#include <metal_logging>
constant os_log logger("subsystem", "category");
enum { A, B = 5 }; typedef enum { X = 4, Y } E; struct N { typedef enum { Z = 2 } Q; };
int f() { enum { L = 3 } v = L; return v; }
kernel void k(device int *out [[buffer(0)]]) {
  E e = X; logger.log("value %d", int(e)); os_log_default.log_error("%f", 1.5f);
  out[0] = B + e; out[1] = f(); out[2] = Y; out[3] = N::Z; out[4] = BFLT_MANT_DIG;
}`},
	{name: "calls of itself at the end", want: list(32, func(i int) int32 { return int32(i*(i+1)/2 + i%7) }), text: `
void sum(int n, thread int *acc) { *acc += n; if (n <= 0) return; sum(n - 1, acc); }
struct Ring {
  int at = 0, size;
  void next() { at++; }
  void next(int n) {
    at += n;
    if (at >= size) { int extra = at - size; at = 0; if (extra > 0) { next(extra); } }
  }
};
kernel void k(device int *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  int a = 0; sum(i, &a); Ring r{0, 7}; r.next(i); out[i] = a + r.at;
}`},
	{name: "auto keeps packed vectors packed", grid: one, in: []any{[]float32{1, 2, 3, 4, 5, 6}},
		want: []int32{12, 12, 16, 6, 16, 5}, text: `
kernel void k(device int *out [[buffer(0)]], device packed_float3 *p [[buffer(1)]]) {
  auto q = p[0]; out[0] = sizeof(q); out[1] = sizeof(p[0]); out[2] = sizeof(p[0] + q); q += p[1]; q.x = 6;
  out[3] = q[0]; auto r = float3(q); out[4] = sizeof(r); const auto s = p[1]; out[5] = dot(float3(0, 1, 0), s);
}`},
	{name: "members of a base by its name", grid: one, want: []int32{4, 5, 2, 3}, text: `
template <typename T> struct A { T v; T get() { return v; } };
template <typename T> struct B : A<T> { using A<T>::get; using A<T>::v; T two() { return v + this->get(); } };
struct S { int f() thread { return 1; } int f() constant { return 2; } int f() threadgroup { return 3; } };
constant S fixed = {};
kernel void k(device int *out [[buffer(0)]]) {
  B<int> b; b.v = 2; out[0] = b.two(); out[1] = b.A<int>::get() + 3;
  threadgroup S g; out[2] = fixed.f(); out[3] = g.f();
}`},
}
