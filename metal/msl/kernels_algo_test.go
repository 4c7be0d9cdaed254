package msl_test

import (
	"hash/crc32"
	"math"
	"sort"
	"testing"
)

// noise is a reproducible sequence of 32-bit numbers (a linear congruential generator's high bits).
func noise(n int, seed uint64) []uint32 {
	return list(n, func(int) uint32 {
		seed = seed*6364136223846793005 + 1442695040888963407
		return uint32(seed >> 32)
	})
}

// small are floats from -1 to 1 in steps of 1/256, so that sums of products are exact.
func small(n int, seed uint64) []float32 {
	u := noise(n, seed)
	return list(n, func(i int) float32 { return float32(int(u[i]%513)-256) / 256 })
}

// Algorithms of threadgroups: memory, barriers, atomics.
func TestThreadgroupKernels(t *testing.T) {
	t.Parallel()
	runKernels(t, threadgroupKernels)
}

var (
	sortKeys = noise(128, 1)
	sorted   = sortedCopy(sortKeys)
	left     = small(20*24, 2)
	right    = small(24*18, 3)
	scanned  = small(256, 4)
	image    = small(12*10, 5)
)

func sortedCopy(x []uint32) []uint32 {
	x = append([]uint32(nil), x...)
	sort.Slice(x, func(i, j int) bool { return x[i] < x[j] })
	return x
}

var threadgroupKernels = []kernelCase{
	{name: "bitonic sort", grid: [3]int{128, 1, 1}, group: [3]int{128, 1, 1}, in: []any{sortKeys}, want: sorted,
		text: `
kernel void k(device uint *out [[buffer(0)]], device const uint *in [[buffer(1)]],
  uint i [[thread_index_in_threadgroup]],
              uint n [[threads_per_threadgroup]]) {
  threadgroup uint s[128]; s[i] = in[i]; threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint size = 2; size <= n; size <<= 1)
    for (uint stride = size >> 1; stride > 0; stride >>= 1) {
      const uint j = i ^ stride;
      if (j > i) {
        const bool up = (i & size) == 0; const uint x = s[i], y = s[j];
        if ((x > y) == up) { s[i] = y; s[j] = x; }
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);
    }
  out[i] = s[i];
}`},
	{name: "two scans of a group", grid: [3]int{256, 1, 1}, group: [3]int{256, 1, 1}, in: []any{scanned},
		want: list(256, func(i int) float32 {
			s := float32(0)
			for _, x := range scanned[:i+1] {
				s += x
			}
			return s
		}), text: `
kernel void k(device float *out [[buffer(0)]], device const float *in [[buffer(1)]],
  uint i [[thread_index_in_threadgroup]],
              uint lane [[thread_index_in_simdgroup]], uint sg [[simdgroup_index_in_threadgroup]]) {
  threadgroup float sums[8];
  float x = in[i], own = simd_prefix_inclusive_sum(x);
  if (lane == 31) sums[sg] = own;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (sg == 0) { float s = lane < 8 ? sums[lane] : 0; s = simd_prefix_exclusive_sum(s);
    if (lane < 8) sums[lane] = s; }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const float groups = own + sums[sg];
  threadgroup float twice[2][256]; uint from = 0; twice[0][i] = x;
  for (uint d = 1; d < 256; d *= 2) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    twice[1 - from][i] = i >= d ? twice[from][i] + twice[from][i - d] : twice[from][i];
    from = 1 - from;
  }
  out[i] = twice[from][i] == groups ? groups : NAN;
}`},
	{name: "histogram", grid: [3]int{300, 1, 1}, group: [3]int{64, 1, 1}, in: []any{noise(300, 6)},
		want: func() []uint32 {
			h := make([]uint32, 16)
			for _, x := range noise(300, 6) {
				h[x>>28]++
			}
			return h
		}(), text: `
kernel void k(device atomic_uint *out [[buffer(0)]], device const uint *in [[buffer(1)]],
  uint gid [[thread_position_in_grid]],
              uint i [[thread_position_in_threadgroup]]) {
  threadgroup atomic_uint bins[16];
  if (i < 16) atomic_store_explicit(bins + i, 0, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  atomic_fetch_add_explicit(&bins[in[gid] >> 28], 1, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (i < 16) {
    uint n = atomic_load_explicit(&bins[i], memory_order_relaxed);
    if (n) atomic_fetch_add_explicit(&out[i], n, memory_order_relaxed);
  }
}`},
	{name: "tiled product with ragged edges", grid: [3]int{18, 20, 1}, group: [3]int{8, 8, 1}, in: []any{left, right},
		want: list(20*18, func(i int) float32 {
			s := float32(0)
			for k := range 24 {
				s += left[i/18*24+k] * right[k*18+i%18]
			}
			return s
		}), text: `
#define TILE 8
kernel void k(device float *C [[buffer(0)]], device const float *A [[buffer(1)]], device const float *B [[buffer(2)]],
              uint2 g [[thread_position_in_grid]], uint2 l [[thread_position_in_threadgroup]],
              uint2 size [[threads_per_threadgroup]]) {
  constexpr int M = 20, N = 18, K = 24;
  threadgroup float As[TILE][TILE + 1], Bs[TILE][TILE + 1];
  float acc = 0;
  for (int k0 = 0; k0 < K; k0 += TILE) {
    for (uint x = l.x; x < TILE; x += size.x) As[l.y][x] = A[g.y * K + k0 + x];
    for (uint y = l.y; y < TILE; y += size.y) Bs[y][l.x] = B[(k0 + y) * N + g.x];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    #pragma unroll
    for (int j = 0; j < TILE; j++) acc = fma(As[l.y][j], Bs[j][l.x], acc);
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  if (g.x < N && g.y < M) C[g.y * N + g.x] = acc;
}`},
	{name: "transposition through padded tiles", grid: [3]int{12, 10, 1}, group: [3]int{4, 4, 1},
		in:   []any{image},
		want: list(120, func(i int) float32 { return image[i%10*12+i/10] }), text: `
kernel void k(device float *out [[buffer(0)]], device const float *in [[buffer(1)]],
  uint2 g [[thread_position_in_grid]],
              ushort2 l [[thread_position_in_threadgroup]], uint2 tg [[threadgroup_position_in_grid]]) {
  threadgroup float t[4][5];
  t[l.y][l.x] = in[g.y * 12 + g.x];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[g.x * 10 + g.y] = t[l.y][l.x] + float(tg.x * 0);
}`},
	{name: "stencil with borders", grid: [3]int{12, 10, 1}, group: [3]int{5, 3, 1},
		in: []any{image, []float32{0.25, 0.5, 0.25}},
		want: list(120, func(i int) float32 {
			s, w := float32(0), []float32{0.25, 0.5, 0.25}
			for dy := -1; dy <= 1; dy++ {
				for dx := -1; dx <= 1; dx++ {
					x, y := min(max(i%12+dx, 0), 11), min(max(i/12+dy, 0), 9)
					s += image[y*12+x] * w[dx+1] * w[dy+1]
				}
			}
			return s
		}), text: `
template <typename P> inline float at(P p, int2 c) { c = clamp(c, int2(0), int2(11, 9)); return p[c.y * 12 + c.x]; }
kernel void k(device float *out [[buffer(0)]], device const float *in [[buffer(1)]], constant float *w [[buffer(2)]],
              uint2 g [[thread_position_in_grid]]) {
  const int2 c = int2(g); float s = 0;
  for (int dy = -1; dy <= 1; ++dy)
    for (int dx = -1; dx <= 1; ++dx) s += at(in, c + int2(dx, dy)) * (w[dx + 1] * w[dy + 1]);
  out[g.y * 12 + g.x] = s;
}`},
	{name: "game of life in bytes", grid: [3]int{8, 8, 1}, group: [3]int{8, 8, 1},
		in: []any{list(64, func(i int) uint8 { return uint8(noise(64, 7)[i] >> 31) })},
		want: list(64, func(i int) uint8 {
			cells, n := noise(64, 7), uint32(0)
			for d := range 9 {
				if d != 4 {
					n += cells[(i/8+d/3+7)%8*8+(i%8+d%3+7)%8] >> 31
				}
			}
			if n == 3 || n == 2 && cells[i]>>31 == 1 {
				return 1
			}
			return 0
		}), text: `
kernel void k(device uchar *out [[buffer(0)]], device const uchar *in [[buffer(1)]],
  ushort2 p [[thread_position_in_grid]]) {
  uchar n = 0;
  for (short y = -1; y <= 1; y++) for (short x = -1; x <= 1; x++)
    n += (x | y) ? in[((p.y + y) & 7) * 8 + ((p.x + x) & 7)] : 0;
  out[p.y * 8 + p.x] = n == 3 || (n == 2 && in[p.y * 8 + p.x]);
}`},
	{name: "three dimensions", grid: [3]int{5, 4, 3}, group: [3]int{2, 3, 2},
		want: list(60, func(i int) uint32 {
			x, y, z := i%5, i/5%4, i/20
			sx, sy, sz := min(2, 5-x/2*2), min(3, 4-y/3*3), min(2, 3-z/2*2)
			local := (z%2*sy+y%3)*sx + x%2
			return uint32(local | (x/2+3*(y/3)+6*(z/2))<<8 | sx*sy*sz<<16 | 12<<24)
		}), text: `
kernel void k(device uint *out [[buffer(0)]], uint3 g [[thread_position_in_grid]], uint3 n [[threads_per_grid]],
              uint i [[thread_index_in_threadgroup]], uint3 tg [[threadgroup_position_in_grid]],
              uint3 tgs [[threadgroups_per_grid]], uint3 real [[threads_per_threadgroup]],
              uint3 asked [[dispatch_threads_per_threadgroup]]) {
  uint group = (tg.z * tgs.y + tg.y) * tgs.x + tg.x;
  out[(g.z * n.y + g.y) * n.x + g.x] = i | group << 8 | (real.x * real.y * real.z) << 16
    | (asked.x * asked.y * asked.z) << 24;
}`},
	{name: "float maximum by compare-exchange", grid: [3]int{96, 1, 1}, in: []any{small(96, 8)},
		want: func() []uint32 {
			m := float32(-2)
			for _, x := range small(96, 8) {
				m = max(m, x)
			}
			return []uint32{math.Float32bits(m), 96}
		}(), text: `
kernel void k(device atomic_uint *out [[buffer(0)]], device const float *in [[buffer(1)]],
  uint i [[thread_position_in_grid]]) {
  uint old = atomic_load_explicit(out, memory_order_relaxed);
  const float x = in[i] + 2;
  while (as_type<float>(old) < x)
    if (atomic_compare_exchange_weak_explicit(out, &old, as_type<uint>(x), memory_order_relaxed,
      memory_order_relaxed)) break;
  uint n = atomic_fetch_add_explicit(out + 1, 1u, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_device);
  if (n == 95) atomic_store_explicit(out, as_type<uint>(as_type<float>(atomic_load_explicit(out,
    memory_order_relaxed)) - 2),
                                     memory_order_relaxed);
}`},
	{name: "atomics of every operation", grid: [3]int{32, 1, 1},
		want: []int32{496, -31, 31, -1, 0, 7, -496, int32(math.Float32bits(16)), 1}, text: `
kernel void k(device atomic_int *out [[buffer(0)]], uint u [[thread_position_in_grid]]) {
  const int i = u; constexpr auto relaxed = memory_order_relaxed;
  atomic_fetch_add_explicit(&out[0], i, relaxed); atomic_fetch_min_explicit(&out[1], -i, relaxed);
  atomic_fetch_max_explicit(out + 2, i, relaxed); atomic_fetch_or_explicit(out + 3, 1 << i, relaxed);
  atomic_fetch_and_explicit(out + 4, i, relaxed); if (i == 5) atomic_exchange_explicit(out + 5, 7, relaxed);
  atomic_fetch_sub_explicit(out + 6, i, relaxed);
  auto f = reinterpret_cast<device atomic<float> *>(out + 7); atomic_fetch_add_explicit(f, 0.5f, relaxed);
  atomic_fetch_xor_explicit(out + 8, i == 9, relaxed);
}`},
	{name: "64-bit atomic maximum", grid: [3]int{32, 1, 1}, want: []uint64{31<<33 | 1, 0},
		text: `
kernel void k(device atomic_ulong *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  atomic_max_explicit(out, ulong(i) << 33 | 1, memory_order_relaxed);
  atomic_min_explicit(out + 1, ulong(i), memory_order_relaxed);
}`},
}

// Algorithms of one thread each.
func TestThreadKernels(t *testing.T) {
	t.Parallel()
	runKernels(t, threadKernels)
}

var (
	crcTable   = crc32.MakeTable(crc32.IEEE)
	inWords    = noise(64, 9)
	sortedKeys = list(40, func(i int) int32 { return int32(i * i / 3) })
)

func gcd(a, b uint32) uint32 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

var threadKernels = []kernelCase{
	{name: "Mandelbrot", grid: [3]int{16, 8, 1}, group: [3]int{16, 2, 1}, want: list(128, func(i int) uint32 {
		cx, cy, x, y, n := float32(i%16)/8-1.5, float32(i/16)/4-1, float32(0), float32(0), uint32(0)
		for ; n < 50 && x*x+y*y <= 4; n++ {
			x, y = float32(x*x)-float32(y*y)+cx, 2*x*y+cy
		}
		return n
	}), text: `
#pragma clang fp contract(off)
kernel void k(device uint *out [[buffer(0)]], uint2 p [[thread_position_in_grid]]) {
  float2 c = float2(p) / float2(8, 4) - float2(1.5f, 1), z = 0; uint n = 0;
  while (n < 50 && !(z.x * z.x + z.y * z.y > 4)) { z = float2(z.x * z.x - z.y * z.y, 2 * z.x * z.y) + c; n++; }
  out[p.y * 16 + p.x] = n;
}`},
	{name: "CRC of words", in: []any{inWords}, want: list(32, func(i int) uint32 {
		w := []uint32{inWords[i], inWords[i+32]}
		var b []byte
		for _, x := range w {
			b = append(b, byte(x), byte(x>>8), byte(x>>16), byte(x>>24))
		}
		return crc32.Checksum(b, crcTable)
	}), text: `
constexpr uint entry(uint n) { for (int j = 0; j < 4; j++) n = n & 1 ? 0xedb88320u ^ (n >> 1) : n >> 1; return n; }
#define FOUR(n) entry(n), entry(n + 1), entry(n + 2), entry(n + 3)
constant uint lut[16] = {FOUR(0), FOUR(4), FOUR(8), FOUR(12)};
kernel void k(device uint *out [[buffer(0)]], device const uchar *in [[buffer(1)]],
  uint i [[thread_position_in_grid]]) {
  uint crc = ~0u;
  for (uint w = 0; w < 2; w++)
    for (uint b = 0; b < 4; b++) {
      crc ^= in[(i + 32 * w) * 4 + b];
      crc = crc >> 4 ^ lut[crc & 15];
      crc = crc >> 4 ^ lut[crc & 15];
    }
  out[i] = ~crc;
}`},
	{name: "random numbers: PCG and Philox", in: []any{inWords}, want: list(32, func(i int) uint32 {
		s := inWords[i]*747796405 + 2891336453
		s = ((s >> ((s >> 28) + 4)) ^ s) * 277803737
		s = s>>22 ^ s
		c, key := [4]uint32{s, 1, 2, uint32(i)}, [2]uint32{0xdeadbeef, inWords[i+32]}
		for range 10 {
			p, q := uint64(0xd2511f53)*uint64(c[0]), uint64(0xcd9e8d57)*uint64(c[2])
			c = [4]uint32{uint32(q>>32) ^ c[1] ^ key[0], uint32(q), uint32(p>>32) ^ c[3] ^ key[1], uint32(p)}
			key[0] += 0x9e3779b9
			key[1] += 0xbb67ae85
		}
		return c[0] ^ c[1] ^ c[2] ^ c[3]
	}), text: `
struct Philox { uint4 c; uint2 key;
  void round() { uint2 hi = mulhi(c.xz, uint2(0xd2511f53u, 0xcd9e8d57u)), lo = c.xz * uint2(0xd2511f53u, 0xcd9e8d57u);
    c = uint4(hi.y ^ c.y ^ key.x, lo.y, hi.x ^ c.w ^ key.y, lo.x); key += uint2(0x9e3779b9u, 0xbb67ae85u); } };
uint pcg(uint s) { s = s * 747796405u + 2891336453u; s = ((s >> ((s >> 28) + 4)) ^ s) * 277803737u;
  return (s >> 22) ^ s; }
kernel void k(device uint *out [[buffer(0)]], device const uint *in [[buffer(1)]],
  uint i [[thread_position_in_grid]]) {
  Philox p{uint4(pcg(in[i]), 1, 2, i), uint2(0xdeadbeefu, in[i + 32])};
  for (int r = 0; r < 10; r++) p.round();
  out[i] = p.c.x ^ p.c.y ^ p.c.z ^ p.c.w;
}`},
	{name: "greatest common divisors and primes", in: []any{inWords}, want: list(32, func(i int) uint32 {
		n, prime := inWords[i]%1000, uint32(1)
		for d := uint32(2); d*d <= n; d++ {
			if n%d == 0 {
				prime = 0
			}
		}
		return gcd(inWords[i], inWords[i+32]|1)<<1 | prime
	}), text: `
uint gcd(uint a, uint b) { while (b) { uint r = a % b; a = b; b = r; } return a; }
bool prime(uint n) { for (uint d = 2; d * d <= n; ++d) if (n % d == 0) return false; return true; }
kernel void k(device uint *out [[buffer(0)]], device const uint *in [[buffer(1)]],
  uint i [[thread_position_in_grid]]) {
  out[i] = gcd(in[i], in[i + 32] | 1) << 1 | prime(in[i] % 1000);
}`},
	{name: "binary search", in: []any{sortedKeys}, want: list(32, func(i int) int32 {
		return int32(sort.Search(40, func(j int) bool { return sortedKeys[j] > int32(i*17) }))
	}), text: `
template <typename T> int upper_bound(device const T *first, int n, T x) {
  device const T *const start = first;
  while (n > 0) { int half_n = n / 2; auto mid = first + half_n; if (!(x < *mid)) { first = ++mid;
    n -= half_n + 1; } else n = half_n; }
  return first - start;
}
kernel void k(device int *out [[buffer(0)]], device const int *in [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  out[i] = upper_bound(in, 40, int(i) * 17);
}`},
	{name: "edit distance", in: []any{inWords}, want: list(32, func(i int) int32 {
		digit := func(w uint32, j int) uint32 { return w >> (2 * j) & 3 }
		var d [9][9]int
		for a := range 9 {
			for b := range 9 {
				switch {
				case a == 0 || b == 0:
					d[a][b] = a + b
				default:
					cost := 1
					if digit(inWords[i], a-1) == digit(inWords[i+32], b-1) {
						cost = 0
					}
					d[a][b] = min(d[a-1][b]+1, d[a][b-1]+1, d[a-1][b-1]+cost)
				}
			}
		}
		return int32(d[8][8])
	}), text: `
kernel void k(device int *out [[buffer(0)]], device const uint *in [[buffer(1)]],
  uint i [[thread_position_in_grid]]) {
  constexpr int N = 8; short row[N + 1]; const uint a = in[i], b = in[i + 32];
  for (short j = 0; j <= N; j++) row[j] = j;
  for (int x = 1; x <= N; x++) {
    short diagonal = row[0]; row[0] = x;
    for (int y = 1; y <= N; y++) {
      const short above = row[y], cost = ((a >> (2 * (x - 1))) & 3) != ((b >> (2 * (y - 1))) & 3);
      row[y] = min3(short(above + 1), short(row[y - 1] + 1), short(diagonal + cost)); diagonal = above;
    }
  }
  out[i] = row[N];
}`},
	{name: "top four by insertion", in: []any{noise(32*16, 10)}, want: func() []uint32 {
		var r []uint32
		for i := range 32 {
			x := append([]uint32(nil), noise(32*16, 10)[i*16:i*16+16]...)
			sort.Slice(x, func(a, b int) bool { return x[a] > x[b] })
			r = append(r, x[:4]...)
		}
		return r
	}(), text: `
kernel void k(device uint *out [[buffer(0)]], device const uint *in [[buffer(1)]],
  uint i [[thread_position_in_grid]]) {
  uint best[4] = {};
  for (uint j = 0; j < 16; j++) {
    uint x = in[i * 16 + j];
    if (x <= best[3]) continue;
    int at = 3;
    while (at > 0 && best[at - 1] < x) { best[at] = best[at - 1]; at--; }
    best[at] = x;
  }
  for (int j = 0; j < 4; j++) out[i * 4 + j] = best[j];
}`},
	{name: "Kahan's sum keeps its order", in: []any{small(320, 11)}, want: list(32, func(i int) float32 {
		s, c := float32(1<<20), float32(0)
		for j := range 10 {
			y := small(320, 11)[i*10+j] - c
			t := s + y
			c = float32(float32(t-s) - y)
			s = t
		}
		return s
	}), text: `
kernel void k(device float *out [[buffer(0)]], device const float *in [[buffer(1)]],
  uint i [[thread_position_in_grid]]) {
#pragma clang fp reassociate(off) contract(off)
  float s = 1048576, c = 0;
  for (int j = 0; j < 10; j++) { volatile float y = in[i * 10 + j] - c; volatile float t = s + y;
    c = (t - s) - y; s = t; }
  out[i] = s;
}`},
	{name: "a transform of complex numbers", grid: [3]int{8, 1, 1}, group: [3]int{8, 1, 1},
		in: []any{small(16, 12)}, tolerance: 1e-6,
		want: list(16, func(i int) float32 {
			x, re, im := small(16, 12), 0.0, 0.0
			for j := range 8 {
				s, c := math.Sincos(-2 * math.Pi * float64(j*(i/2)) / 8)
				a, b := float64(x[2*j]), float64(x[2*j+1])
				re, im = re+a*c-b*s, im+a*s+b*c
			}
			return float32([]float64{re, im}[i%2])
		}), text: `
inline float2 cmul(float2 a, float2 b) { return float2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); }
kernel void k(device float2 *out [[buffer(0)]], device const float2 *in [[buffer(1)]],
  uint i [[thread_index_in_threadgroup]]) {
  threadgroup float2 s[2][8]; s[0][((i & 1) << 2) | (i & 2) | (i >> 2)] = in[i]; uint from = 0;
  for (uint half_n = 1; half_n < 8; half_n *= 2, from ^= 1) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const uint j = i & (half_n - 1), low = (i & ~(2 * half_n - 1)) | j; const bool upper = i & half_n;
    float c; const float sn = sincos(-M_PI_F * j / half_n, c);
      const float2 t = cmul(float2(c, sn), s[from][low + half_n]);
    s[1 - from][i] = s[from][low] + (upper ? -t : t);
  }
  out[i] = s[from][i];
}`},
}
