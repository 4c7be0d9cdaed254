// grid 100 1 1 threadgroup 32 1 1 seed 2006775
struct S { int a; float b; short c; ushort d; int e; float f; uchar g[4]; };
struct P { float x; int y; half z; uchar w;
  void add(P o) { x += o.x; y ^= o.y; z = o.z; w += o.w; } };
template <typename T> T canon(T v) { return v; }
template <typename T, int N> T poly(T x,
	T y) { for (int i = 0; i < N; ++i) { if (x == y) return T(i); x = T(x * y + T(i)); } return x; }
kernel void k(device const int *gi [[buffer(0)]], device const float *gf [[buffer(1)]], constant int *ci [[buffer(2)]], constant float *cf [[buffer(3)]], device const S *gs [[buffer(4)]], device const half *gh [[buffer(5)]], device const uchar *gb [[buffer(6)]], device int *oi [[buffer(7)]], device float *of [[buffer(8)]], device ulong *ol [[buffer(9)]], device half *oh [[buffer(10)]], device uchar *ob [[buffer(11)]], device atomic_uint *au [[buffer(12)]], device atomic_int *ai [[buffer(13)]], device atomic_uint *own [[buffer(14)]], 
    uint3 gp [[thread_position_in_grid]], uint3 gs3 [[threads_per_grid]],
    uint lane [[thread_index_in_simdgroup]], uint tid [[thread_index_in_threadgroup]],
    uint quad [[quadgroup_index_in_threadgroup]], uint sgs [[simdgroups_per_threadgroup]]) {
  uint gid = gp.x + gs3.x * (gp.y + gs3.y * gp.z);
  int x10 = int(lane);
  P s11 = {float(rint(float(float(gf[(0 + int(x10 + x10)) & 255])))), int(quad_prefix_inclusive_sum(x10)), half(int(float(gs[19].b))), uchar(int(x10 << (int(12) & int(7))))};
  oi[gid * 16 + 15] = int(canon(s11.w));
}