// grid 300 1 1 threadgroup 96 1 1 seed 800019583
struct S { int a; float b; short c; ushort d; int e; float f; uchar g[4]; };
template <typename T, int N> T poly(T x,
	T y) { for (int i = 0; i < N; ++i) { if (x == y) return T(i); x = T(x * y + T(i)); } return x; }
bfloat f1(float p2) {
  return bfloat(-2.610e+00f);
}
kernel void k(device const int *gi [[buffer(0)]], device const float *gf [[buffer(1)]], constant int *ci [[buffer(2)]], constant float *cf [[buffer(3)]], device const S *gs [[buffer(4)]], device const half *gh [[buffer(5)]], device const uchar *gb [[buffer(6)]], device int *oi [[buffer(7)]], device float *of [[buffer(8)]], device ulong *ol [[buffer(9)]], device half *oh [[buffer(10)]], device uchar *ob [[buffer(11)]], device atomic_uint *au [[buffer(12)]], device atomic_int *ai [[buffer(13)]], device atomic_uint *own [[buffer(14)]], device const float *gm [[buffer(15)]], device const uint *gw [[buffer(16)]], device const half *gq [[buffer(17)]], device const bfloat *gz [[buffer(18)]], device float *om [[buffer(19)]], device atomic_float *fa [[buffer(20)]], device atomic_bool *fl [[buffer(21)]], 
    uint3 gp [[thread_position_in_grid]], uint3 gs3 [[threads_per_grid]],
    uint lane [[thread_index_in_simdgroup]], uint tid [[thread_index_in_threadgroup]],
    uint3 tp [[thread_position_in_threadgroup]], uint3 tgp [[threadgroup_position_in_grid]],
    uint3 tgs [[threads_per_threadgroup]], uint sg [[simdgroup_index_in_threadgroup]],
    uint quad [[quadgroup_index_in_threadgroup]], uint sgs [[simdgroups_per_threadgroup]]) {
  uint gid = gp.x + gs3.x * (gp.y + gs3.y * gp.z);
  float x30 = (!(bool(gf[163])) ? select(float(float(gb[47])), select(float(-3.301e+00f), float(-3.456e+00f), bool(((device const uint *)gb)[30])), isinf(float(ci[24]))) : float(-5.145e+00f));
  int x31 = int(quad_product(uchar(uchar(f1(x30)) * uchar(x30))));
  if ((short(short(gi[(gid + 255) & 255]) >> (short(gi[(0 + x31) & 255]) & short(7))) <= short(short(3) - short(19)))) {
    if ((ci[5] & 1) == 0) {
      for (uint k46 = lane * 1; k46 + 1 <= 256; k46 += 32) {
        if ((float(-2.480e+00f) > float(gz[143]))) break;
      }
    } else {
      for (int i49 = 0; i49 < (tgp.x == 0 && sg == 0 ? 4153 : 3); ++i49) {
      }
    }
  }
  float m54 = 0;
  atomic_exchange_explicit(&fl[(0 + int(x31 * x31)) & 3], true, memory_order_relaxed);
  m54 = float(gz[(gid * 2) & 255]);
  for (int i88 = 0; i88 < int((0u + lane) % 4); ++i88) {
    if (tgs.x > 16) {
      if ((float(min(float(m54), float(m54))) > float(-x30))) {
        atomic_exchange_explicit(&fl[4 + ((0 + (true ? x31 : int(15))) & 3)], false, memory_order_relaxed);
      }
    }
  }
}