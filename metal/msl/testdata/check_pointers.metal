// Pointers where C++14 wants a value: each line says what is wrong there.
#include <metal_stdlib>
using namespace metal;
enum E { EA }; enum class K : char { X }; struct S { int x; }; struct Sub : S { int y; };
struct Num { int v; explicit operator bool() const { return v; } };
kernel void k(constant int *n [[buffer(0)]], device float *y [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  device const float *c = y; thread int *t = nullptr; S s; thread S *ps = &s; Sub sub; thread Sub *pd = &sub;
  y[0] = (uint)n; /* ERROR "MSL0326: a cast from constant const int\* to uint loses bits of the address: index the pointer, as in p.0." */
  y[0] = uint(n); /* ERROR "MSL0326: a cast from constant const int\* to uint loses bits" */
  y[0] = (int)n; /* ERROR "MSL0326: a cast from constant const int\* to int loses bits" */
  y[0] = (short)y; /* ERROR "MSL0326: a cast from device float\* to short loses bits" */
  y[0] = reinterpret_cast<uint>(n); /* ERROR "MSL0326: a cast from constant const int\* to uint loses bits" */
  y[0] = static_cast<uint>(n); /* ERROR "MSL0326: a cast from constant const int\* to uint: index the pointer" */
  y[0] = (float)n; /* ERROR "MSL0326: a cast from constant const int\* to float: index the pointer" */
  y[0] = (int)nullptr; /* ERROR "MSL0326: a cast from nullptr_t to int loses bits" */
  int a(n); /* ERROR "MSL0308: .*constant const int\* does not convert to int: index the pointer" */
  int b = n; /* ERROR "MSL0308: .*constant const int\* does not convert to int" */
  float4 v = n; /* ERROR "MSL0308: .*constant const int\* does not convert to float4: index the pointer" */
  bool b1 = nullptr; /* ERROR "MSL0308: .*nullptr_t does not convert to bool" */
  bool b2{n}; /* ERROR "MSL0323: in braces constant const int\* does not convert to bool" */
  E e(1); /* ERROR "MSL0308: .*int does not convert to E" */
  K kk(1); /* ERROR "MSL0308: .*int does not convert to K" */
  y[0] = n * 2; /* ERROR "MSL0309: \* is not defined on constant const int\* and int: index the pointer" */
  y[0] = 2 / n; /* ERROR "MSL0309: / is not defined on int and constant const int\*" */
  y[0] = n % 2; /* ERROR "MSL0309: % is not defined" */
  y[0] = n & 1; /* ERROR "MSL0309: & is not defined" */
  y[0] = n | 1; /* ERROR "MSL0309: | is not defined" */
  y[0] = n ^ 1; /* ERROR "MSL0309: .*is not defined" */
  y[0] = n << 1; /* ERROR "MSL0309: << is not defined" */
  y[0] = 1 >> n; /* ERROR "MSL0309: >> is not defined" */
  y[0] = n + n; /* ERROR "MSL0309: .*is not defined" */
  y[0] = 1 - n; /* ERROR "MSL0309: - is not defined" */
  y[0] = n + 1.0f; /* ERROR "MSL0309: .*is not defined" */
  y[0] = -n; /* ERROR "MSL0309: - is not defined on constant const int\*: index the pointer" */
  y[0] = ~n; /* ERROR "MSL0309: ~ is not defined on constant const int\*" */
  y[0] = n > 0; /* ERROR "MSL0309: > is not defined on constant const int\* and int" */
  y[0] = n < nullptr; /* ERROR "MSL0309: < is not defined" */
  y[0] = n == 5; /* ERROR "MSL0309: == is not defined" */
  y[0] = i < n; /* ERROR "MSL0309: < is not defined on uint and constant const int\*" */
  y[0] = t == ps; /* ERROR "MSL0309: == is not defined on int\* and S\*" */
  y[0] = y - reinterpret_cast<device int *>(y); /* ERROR "MSL0309: - is not defined on device float\* and device int\*" */
  y[0] = i ? n : i; /* ERROR "MSL0308: \?: has the unlike types constant const int\* and uint" */
  y[0] = i ? n : true; /* ERROR "MSL0308: \?: has the unlike types constant const int\* and bool" */
  y[0] = i ? t : ps; /* ERROR "MSL0308: \?: has the unlike types" */
  y[0] = max(n, 1); /* ERROR "MSL0306: .max. does not take" */
  y[n] = 1; /* ERROR "MSL0309: an index of type constant const int\*" */
  y[0] += n; /* ERROR "MSL0309: .*is not defined on float and constant const int\*" */
  *static_cast<device float *>(c) = 1; /* ERROR "MSL0326: static_cast from device const float\* to device float\* would drop const" */
  *reinterpret_cast<device int *>(c) = 1; /* ERROR "MSL0326: reinterpret_cast .* would drop const" */
  y[0] = reinterpret_cast<float>(y[1]); /* ERROR "MSL0326: reinterpret_cast from float to float: use as_type" */
  float4 kv = static_cast<float4>(K::X); /* ERROR "MSL0326: a cast from K to float4" */
  y[0] = y == fmax; /* ERROR "MSL0309: == has the function 'fmax' as an operand: it is not called" */
  int4 whole(1); float4 parts(1);
  whole = whole % 2.0f; /* ERROR "MSL0309: % is not defined on int4 and float: write fmod" */
  whole = 2.0f & whole; /* ERROR "MSL0309: & is not defined on float and int4" */
  whole ^= y[0]; /* ERROR "MSL0309: .*is not defined on int4 and float" */
  int4 listed = {parts}; /* ERROR "MSL0308: a braced list: float4 does not convert to int4" */
  // All of this is C++.
  y[0] = n[0] + *n + *(n + 1) + *(1 + n) + (n + 2 - n) + (n == nullptr) + (0 != n) + (n < n + 1) + !n + (n && y);
  y[1] = (ulong)n + (long)y + reinterpret_cast<ulong>(n) + (bool)n + static_cast<bool>(y) + (long)nullptr + -EA + ~EA;
  if (n) y[2] = 1;
  bool direct(nullptr), number(Num{3}); bool copied = n; int part(2.5f); uint counted(EA); E same(EA);
  y[3] = direct + copied + number + part + counted + same + (nullptr == nullptr) + (ps == pd) + (i ? ps : pd)->x;
  device const void *any = i ? (device const void *)c : y; y[4] = any == y;
}
