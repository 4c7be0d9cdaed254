// What is no lvalue, or one that cannot be written to or bound: each line says what is wrong there.
#include <metal_stdlib>
using namespace metal;
struct Bits { uint a : 3; uint b : 5; };
inline void inc(thread uint &x) { x++; }
inline void inc(thread float2 &x) { x += 1; }
inline void incTwo(thread float2 &x) { x += 1; }
inline void incBits(thread uint &x) { x++; }
inline float look(thread const float2 &x) { return x.x; }
inline thread int &where(bool c, thread int &a) { return c ? a : 3; } /* ERROR "MSL0308: a value of type int cannot be bound to int&" */
kernel void k(device float *o, device int *d, constant int *f, uint i [[thread_position_in_grid]]) {
  Bits p{1, 2};
  int a = 1, b = 2;
  const int fixed = 3;
  float4 v(1), w(2);
  bool c = i & 1;
  where(c, a);
  incBits(p.a); /* ERROR "MSL0311: a bit-field has no address: it cannot be bound to uint&" */
  incBits(c ? p.a : p.b); /* ERROR "MSL0311: a bit-field has no address: it cannot be bound to uint&" */
  incTwo(v.xy); /* ERROR "MSL0311: several components of a vector have no address: they cannot be bound to float2&" */
  incTwo(c ? v.xy : w.zw); /* ERROR "MSL0308: a value of type float2 cannot be bound to float2&" */
  inc(v.xy); /* ERROR "MSL0306: no function 'inc' takes .float2." */
  thread float2 &r = v.xz; /* ERROR "MSL0311: several components of a vector have no address" */
  o[1] = look(v.xy) + look(c ? v.xy : w.xy);
  (c ? a : 1) = 2; /* ERROR "MSL0311: .*must be an object, not a value of type int" */
  (c ? a : d[0]) = 3; /* ERROR "MSL0311: .*must be an object, not a value of type int" */
  (c ? a : o[0])++; /* ERROR "MSL0311: .*must be an object, not a value of type float" */
  (c ? v.xy : w.zw) = 3; /* ERROR "MSL0311: .*must be an object, not a value of type float2" */
  (c ? v : w).xx = float2(3); /* ERROR "MSL0314: a component is named twice" */
  (c ? a : fixed) = 4; /* ERROR "MSL0310: an object of type const int cannot be assigned to" */
  (c ? f[0] : f[1]) += 1; /* ERROR "MSL0310: the constant address space is read-only" */
  (c ? d[0] : f[1]) = 1; /* ERROR "MSL0311: .*must be an object, not a value of type int" */
  o[2] = *&(c ? p.a : p.b); /* ERROR "MSL0311: a bit-field has no address" */
  thread int &s = c ? a : 3; /* ERROR "MSL0308: a value of type int cannot be bound to int&" */
  thread int &t = c ? a : o[0]; /* ERROR "MSL0308: a value of type float cannot be bound to int&" */
  thread int &u = c ? d[0] : d[1]; /* ERROR "MSL0312: an object in device memory cannot be bound to int&" */
  (a, 3) = 4; /* ERROR "MSL0311: .*must be an object, not a value of type int" */
  a++ = 4; /* ERROR "MSL0311: .*must be an object, not a value of type int" */
  (c ? a++ : b) = 4; /* ERROR "MSL0311: .*must be an object, not a value of type int" */
}
