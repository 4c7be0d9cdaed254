package msl_test

import (
	"math"
	"testing"
)

// Vectors of more than four components: Metal's vec<T, N> is Clang's T __attribute__((ext_vector_type(N))) for every N.
// Published kernels move eight halves at once with them and keep the fragments of matrices in them.
func TestWideVectors(t *testing.T) {
	t.Parallel()
	runKernels(t, wideKernels)
}

// sixteenths are numbers that every float type holds exactly.
func sixteenths(n int) []float32 { return list(n, func(i int) float32 { return float32(i%64)/16 - 2 }) }

var wideKernels = []kernelCase{
	{name: "eight at once", in: []any{sixteenths(256)}, want: func() []float32 {
		in, out := sixteenths(256), make([]float32, 256)
		for i := range 32 {
			for j := range 8 {
				x := in[8*i+j]
				out[8*i+j] = (x+in[8*((i+1)%32)+7-j])*2 - 0.5
			}
			out[8*i+i%8] += 100
			out[8*i] = -out[8*i]
		}
		return out
	}(), text: `
#include <metal_extended_vector>
typedef vec<float, 8> f8;
kernel void k(device float *out, device const float *in, uint i [[thread_position_in_grid]]) {
  threadgroup f8 tile[32];
  const device f8 *rows = reinterpret_cast<const device f8 *>(in);
  tile[i] = rows[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const f8 next = *(threadgroup f8 *)((threadgroup float *)tile + 8 * ((i + 1) % 32));
  f8 v = tile[i];
  for (int j = 0; j < 8; ++j) v[j] += next[7 - j];
  v = v * 2.0f - f8(0.5f);
  v[i % 8] += 100;
  v.x = -v.x;
  *(device f8 *)(out + 8 * i) = v;
}`},
	{name: "halves and bytes", in: []any{list(32, func(i int) uint32 { return uint32(i) * 0x01020408 })},
		want: func() []float32 {
			out := make([]float32, 32)
			for i := range out {
				w := uint32(i) * 0x01020408
				var low, high float32
				for b := range 4 {
					x := byte(w >> (8 * b))
					low += float32(x & 15)
					high += float32(x >> 4)
				}
				out[i] = low + 1000*high + float32(w>>24)/256
			}
			return out
		}(), text: `
template <typename T, int N> T sum(vec<T, N> v) {
  T s = 0;
  for (int i = 0; i < N; i++) s += v[i];
  return s;
}
kernel void k(device float *out, device const uint *in, uint i [[thread_position_in_grid]]) {
  const uchar4 b = as_type<uchar4>(in[i]);
  vec<uchar, 8> nibbles(b & uchar4(15), b >> uchar4(4));
  const vec<half, 8> h = vec<half, 8>(nibbles);
  half4 low(h[0], h[1], h[2], h[3]);
  vec<float, 8> f(h);
  f = (vec<float, 8>)(f);
  const vec<bfloat, 8> z = as_type<vec<bfloat, 8>>(uint4(in[i]));
  const uint4 back = as_type<uint4>(z);
  vec<uchar, 16> bytes = as_type<vec<uchar, 16>>(back);
  out[i] = sum(low) + 1000 * (f[4] + f[5] + f[6] + f[7]) + float(bytes[15]) / 256 + float(sum(vec<int, 8>(0)));
}`},
	{name: "sizes and rules", want: []float32{16, 16, 32, 32, 32, 32, 8, 64, 256, 3, 2, 10, 1, 0, 7, 34, 5, 6, 9}, text: `
template <typename T> struct Frag { vec<T, 8> v; T last; };
template <typename A, typename B> constexpr bool same = false;
template <typename A> constexpr bool same<A, A> = true;
typedef half h8 __attribute__((ext_vector_type(8)));
static_assert(same<h8, metal::vec<half, 8>>, "one type");
static_assert(same<decltype(vec<float, 8>() < vec<float, 8>()), vec<bool, 8>>, "a comparison");
constant constexpr vec<int, 8> table = {1, 2, 3, 4, 5, 6, 7, 8};
int third(thread const vec<int, 8> &v) { return v[2]; }
void set(thread vec<int, 8> &v, int i, int x) { v[i] = x; }
kernel void k(device float *out, uint i [[thread_position_in_grid]]) {
  if (i) return;
  vec<int, 8> a(1), b = {1, 2, 3, 4, 5, 6, 7, 8}, c = vec<int, 8>(b.xy, b.zw, 5, 6, 7, 9);
  out[0] = sizeof(vec<half, 8>); out[1] = alignof(vec<half, 8>); out[2] = sizeof(vec<float, 8>);
  out[3] = alignof(vec<float, 8>); out[4] = sizeof(vec<uchar, 32>); out[5] = sizeof(vec<float, 5>);
  out[6] = sizeof(vec<half, 3>); out[7] = sizeof(Frag<float>); out[8] = sizeof(vec<float, 64>);
  out[9] = third(b); out[10] = b.y;
  a += b * 2 - (b & 1);
  out[11] = a[4];
  a <<= vec<int, 8>(1);
  out[12] = (b == c)[6]; out[13] = (b == c)[7];
  set(a, 3, 7);
  out[14] = a[3]; out[15] = (i == 0 ? a : b)[7]; out[16] = table[4];
  (i == 0 ? a : b)[1] = 6;
  out[17] = a.y;
  auto [p, q, r, s, t, u, v, w] = c;
  out[18] = w;
  static_assert(alignof(vec<ulong, 64>) == 512, "a power of two");
}`},
	{name: "MLX's fragments", want: list(32, func(i int) float32 {
		s := float32(0)
		for j := range 8 {
			s += float32(math.Floor(float64(i+j)/2)) * float32(j)
		}
		return s
	}), text: `
template <typename T> using frag8 = metal::vec<T, 8>;
template <typename T> struct Tile {
  frag8<T> val[2];
  thread frag8<T> &at(short j) { return val[j]; }
  thread T *elems() { return reinterpret_cast<thread T *>(val); }
};
template <typename T, typename P> void load(thread frag8<T> &d, P p, int from) {
  for (short j = 0; j < 8; j++) d[j] = static_cast<T>(p(from + j));
}
kernel void k(device float *out, uint i [[thread_position_in_grid]]) {
  Tile<float> tile;
  load<float>(tile.at(0), [](int n) { return n / 2; }, int(i));
  load<float>(tile.at(1), [](int n) { return n; }, 0);
  frag8<float> acc(0);
  for (short j = 0; j < 8; j++) acc[j] += tile.elems()[j] * tile.elems()[8 + j];
  float s = 0;
  for (short j = 0; j < 8; j++) s += acc[j];
  out[i] = s;
}`},
}
