// Vectors of more than four components: each line says what is wrong there.
#include <metal_stdlib>
using namespace metal;
kernel void wide(device float *y [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  vec<float, 8> v(1);
  v = exp(v); /* ERROR "MSL0306: no function 'exp' takes .vec<float, 8>.: Metal's library has vectors of at most 4" */
  y[i] = dot(v, v); /* ERROR "MSL0306: no function 'dot' takes .vec<float, 8>, vec<float, 8>." */
  y[i] = simd_sum(v)[0]; /* ERROR "MSL0306: no function 'simd_sum' takes" */
  y[i] = v.s7; /* ERROR "MSL0314: vec<float, 8> has no component 's7': it has .xyzw, and .i. for each" */
  y[i] = v[8]; /* ERROR "MSL0314: vec<float, 8> has no component 8" */
  packed_vec<float, 8> p; /* ERROR "MSL0325: packed_vec has 1 to 4 components" */
  vec<float, 8> few(1, 2, 3); /* ERROR "MSL0305: vec<float, 8> has 8 components, but 3 are given" */
  vec<int, 8> ints = v; /* ERROR "MSL0308: .*vec<float, 8> does not convert to vec<int, 8>" */
  v = v + vec<float, 4>(1); /* ERROR "MSL0309: . is not defined on vec<float, 8> and float4" */
}
