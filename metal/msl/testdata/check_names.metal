// Names, types and calls: each line says what the compiler finds there.
#include <metal_stdlib>
using namespace metal;
struct S { int a; int get() const { return a; } void set(int x) { a = x; } };
struct Incomplete;
enum class Kind { A, B };
void helper(device float *p) { *p = 1; }
float two(float a, float b) { return a + b; }
template <typename T> T same(T a, T b) { return a; }
int forever(int n) { return forever(n - 1); } /* ERROR "MSL0320: .*calls itself" */
int noValue(int n) { n = 1; } /* ERROR "MSL0321: noValue.int. returns no value" */
constant int size = 4;
int global = 1; /* ERROR "MSL0312: .*must be in the constant address space" */
static_assert(sizeof(S) == 8, "two ints"); /* ERROR "MSL0317: static_assert failed: two ints" */
kernel void k(device const float *x [[buffer(0)]], device float *y [[buffer(1)]], constant float *c [[buffer(2)]],
              uint3 gid [[thread_position_in_grid]]) {
  uint i = gid.x;
  y[i] = lenght(float2(1)); /* ERROR "MSL0301: 'lenght' is not declared: did you mean 'length'" */
  y[i] = metal::nothing(1); /* ERROR "MSL0301: 'nothing' does not exist in 'metal'" */
  y[i] = two(1); /* ERROR "MSL0305: two.float, float. takes 2 arguments, not 1" */
  y[i] = same(1, 2.0f); /* ERROR "MSL0306: no function 'same' takes .int, float." */
  y[i] = max(1.0f); /* ERROR "MSL0305: 'max' takes 2 arguments, not 1" */
  y[i] = global;
  x[i] = 1; /* ERROR "MSL0310: .*const float cannot be assigned" */
  c[0] = 2; /* ERROR "MSL0310: the constant address space is read-only" */
  two(1, 2) = 3; /* ERROR "MSL0311: .*must be an object" */
  threadgroup float t[100];
  helper(t); /* ERROR "MSL0312: argument 1 of helper.*threadgroup memory.* no pointer to device memory" */
  device float *q = t; /* ERROR "MSL0312: .*threadgroup memory" */
  thread float *z = x; /* ERROR "MSL0312: .*device memory.*thread memory" */
  device float *w = x; /* ERROR "MSL0308: .*would drop const" */
  thread float &r = y[0]; /* ERROR "MSL0312: an object in device memory cannot be bound" */
  const S s = {1};
  s.set(3); /* ERROR "MSL0310: the method S::set.int. is not const" */
  y[i] = s.b; /* ERROR "MSL0313: S has no member 'b'" */
  y[i] = s->a; /* ERROR "MSL0309: -> needs a pointer" */
  Incomplete inc; /* ERROR "MSL0304: .*incomplete type Incomplete" */
  float4 v; v.q = 1; /* ERROR "MSL0314: float4 has no component 'q'" */
  v.xx = float2(1); /* ERROR "MSL0314: a component is named twice" */
  float3 v3 = v; /* ERROR "MSL0308: .*float4 does not convert to float3" */
  float2 v2 = int2(1); /* ERROR "MSL0308: .*int2 does not convert to float2" */
  v = v + float3(1); /* ERROR "MSL0309: . is not defined on float4 and float3" */
  int kind = Kind::A; /* ERROR "MSL0308: .*Kind does not convert to int" */
  if (v > 1.0f) {} /* ERROR "MSL0308: a condition of type bool4: use any.. or all" */
  y[i] = i << 1.5f; /* ERROR "MSL0309: << is not defined on uint and float" */
  y[i] = 5 % 2.0f; /* ERROR "MSL0309: % is not defined on int and float" */
  int a[2] = {1.5f, 2}; /* ERROR "MSL0323: in braces float does not convert to int" */
  int b[i]; /* ERROR "MSL0316: the size of an array is not constant" */
  const int unset; /* ERROR "MSL0334: the constant 'unset' has no value" */
  constexpr int runtime = gid.y; /* ERROR "MSL0316: the value of 'runtime' is not constant" */
  int twice = 1;
  float twice = 2; /* ERROR "MSL0319: 'twice' is declared twice" */
  threadgroup_barrier(3); /* ERROR "MSL0308: the flags of a barrier" */
  atomic_fetch_add_explicit(y, 1, memory_order_relaxed); /* ERROR "MSL0308: .*needs a pointer to an atomic object" */
  half h = as_type<half>(1.0f); /* ERROR "MSL0326: as_type from float to half" */
  device int *cast = (device int *)t; /* ERROR "MSL0312: a cast from a pointer to threadgroup memory" */
  switch (i) { case 1: case 1: break; } /* ERROR "MSL0319: .*two labels of this value" */
  auto nothing = helper(y); /* ERROR "MSL0308: an expression of type void has no value" */
  y[i] = y; /* ERROR "MSL0308: an assignment: device float. does not convert to float" */
  vec<float, 65> v65; /* ERROR "MSL0325: vec has 1 to 64 components" */
  undeclared = 1; /* ERROR "MSL0301: 'undeclared' is not declared" */
  return 1; /* ERROR "MSL0322: a kernel returns no value" */
}
