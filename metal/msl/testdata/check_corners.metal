// Bit-fields, designators, bindings, objects that ?: chooses, calls of itself: each line says what is wrong there.
#include <metal_stdlib>
using namespace metal;
void inLoop(int n, device float *p) {
  for (int i = 0; i < 2; i++) { inLoop(n - 1, p); } /* ERROR "MSL0320: .*calls itself" */
}
void notLast(int n, device float *p) { if (n) { notLast(n - 1, p); } p[n] = 1; } /* ERROR "MSL0320: .*calls itself" */
struct Fields { int low : 3; bool on : 1; union { int i; float f; } u; };
struct WideField { int a : 33; }; /* ERROR "MSL0303: a bit-field of 33 bits: int has 1 to 32" */
struct FloatField { float a : 3; }; /* ERROR "MSL0303: a bit-field of type float" */
struct alignas(3) Odd { int a; }; /* ERROR "MSL0303: an alignment of 3" */
kernel void k(device float *y [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  WideField wide; FloatField no; Odd odd; inLoop(3, y); notLast(3, y);
  Fields bits = {.low = 1, .hi = 2}; /* ERROR "MSL0313: Fields has no field 'hi'" */
  Fields good; thread int *bit = &good.low; /* ERROR "MSL0311: a bit-field has no address" */
  int few[2] = {[2] = 1}; /* ERROR "MSL0318: int.2. has no element 2" */
  auto [first, second, third] = float2(1); /* ERROR "MSL0333: 3 names for the 2 parts of float2" */
  auto [only] = 1; /* ERROR "MSL0303: a structured binding of int: it has no parts" */
  (i == 0 ? y[0] : y[1]) = float2(1); /* ERROR "MSL0308: .*float2 does not convert to float" */
  (i == 0 ? 1.0f : y[1]) = 1; /* ERROR "MSL0311: .*must be an object" */
}
