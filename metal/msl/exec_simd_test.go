package msl_test

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal/launch"
	"github.com/mlxlua/mlxlua/metal/msl"
)

// runLanes runs `body` on n threads of one threadgroup and returns out[0] to out[len-1].
func runLanes(t *testing.T, pre, body string, n, length int, opt msl.Options) []float32 {
	t.Helper()
	text := "#include <metal_stdlib>\nusing namespace metal;\n" + pre + `
kernel void k(device float *out [[buffer(0)]], device const float *in [[buffer(1)]],
device atomic_uint *cnt [[buffer(2)]],
              uint lane [[thread_index_in_simdgroup]], uint tid [[thread_index_in_threadgroup]]) {
` + body + "\n}\n"
	mod, err := msl.Compile(msl.Source{Name: "test", Text: text}, opt)
	require.NoError(t, err)
	require.NoError(t, mod.Verify())
	prog, err := prepare(mod.Kernels[0], mod.Files)
	require.NoError(t, err)
	out, in, cnt := make([]byte, 4*length), make([]byte, 4*256), make([]byte, 64)
	for i := range 256 {
		binary.LittleEndian.PutUint32(in[4*i:], math.Float32bits(float32(i)))
	}
	err = prog.Run(launch.Launch{Grid: [3]int{n, 1, 1}, Threadgroup: [3]int{n, 1, 1}, Buffers: [][]byte{out, in, cnt}})
	require.NoError(t, err)
	res := make([]float32, length)
	for i := range res {
		res[i] = math.Float32frombits(binary.LittleEndian.Uint32(out[4*i:]))
	}
	return res
}

// lanes returns f(0) to f(31).
func lanes(f func(i int) float32) []float32 {
	r := make([]float32, 32)
	for i := range r {
		r[i] = f(i)
	}
	return r
}

func TestSimdFunctions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		expr string
		want func(i int) float32
	}{
		{"simd_sum(int(lane))", func(int) float32 { return 496 }},
		{"simd_sum(float2(lane, 1)).y", func(int) float32 { return 32 }},
		{"simd_max(half(lane))", func(int) float32 { return 31 }},
		{"simd_min(lane + 5)", func(int) float32 { return 5 }},
		{"simd_product(lane == 3 ? 5 : 1)", func(int) float32 { return 5 }},
		{"simd_or(1u << lane)", func(int) float32 { return float32(math.MaxUint32) }},
		{"simd_xor(lane)", func(int) float32 { return 0 }},
		{"simd_prefix_inclusive_sum(1)", func(i int) float32 { return float32(i + 1) }},
		{"simd_prefix_exclusive_sum(2)", func(i int) float32 { return float32(2 * i) }},
		{"simd_shuffle(lane, ushort(31 - lane))", func(i int) float32 { return float32(31 - i) }},
		{"simd_shuffle_xor(float(lane), 1)", func(i int) float32 { return float32(i ^ 1) }},
		{"simd_shuffle_down(lane, 4)", func(i int) float32 {
			if i+4 > 31 {
				return float32(i)
			}
			return float32(i + 4)
		}},
		{"simd_shuffle_up(ulong(lane) << 32, 1) >> 32", func(i int) float32 { return float32(max(i-1, 0)) }},
		{"simd_shuffle_rotate_down(lane, 3)", func(i int) float32 { return float32((i + 3) % 32) }},
		{"simd_shuffle_rotate_up(lane, 3)", func(i int) float32 { return float32((i + 29) % 32) }},
		{"simd_shuffle_and_fill_down(lane, lane + 100, 2)", func(i int) float32 {
			if i+2 > 31 {
				return float32(100 + i + 2 - 32)
			}
			return float32(i + 2)
		}},
		{"simd_shuffle_and_fill_up(lane, lane + 100, 2)", func(i int) float32 {
			if i < 2 {
				return float32(100 + i - 2 + 32)
			}
			return float32(i - 2)
		}},
		{"simd_broadcast(lane, 7)", func(int) float32 { return 7 }},
		{"simd_broadcast_first(lane + 3)", func(int) float32 { return 3 }},
		{"simd_any(lane == 9)", func(int) float32 { return 1 }},
		{"simd_all(lane < 31)", func(int) float32 { return 0 }},
		{"simd_is_first()", func(i int) float32 {
			if i == 0 {
				return 1
			}
			return 0
		}},
		{"ulong(simd_ballot(lane < 3))", func(int) float32 { return 7 }},
		{"quad_sum(lane)", func(i int) float32 { return float32(i/4*16 + 6) }},
		{"quad_shuffle_xor(lane, 1)", func(i int) float32 { return float32(i ^ 1) }},
		{"quad_broadcast(lane, 2)", func(i int) float32 { return float32(i/4*4 + 2) }},
		{"simd_ballot(lane < 40).all()", func(int) float32 { return 1 }},
		{"simd_ballot(lane < 31).all()", func(int) float32 { return 0 }},
		{"simd_ballot(lane == 31).any() + 2 * simd_ballot(lane > 31).any()", func(int) float32 { return 1 }},
		{"simd_vote::vote_t(simd_ballot(lane == 5))", func(int) float32 { return 32 }},
		{"(metal::simd_vote::vote_t)simd_ballot(lane == 5) >> 1", func(int) float32 { return 16 }},
		{"static_cast<uint64_t>(simd_ballot(lane < 2)) & 2", func(int) float32 { return 2 }},
		{"simd_ballot(lane < 7) & ((1u << lane) - 1)", func(i int) float32 { return float32(int(1)<<min(i, 7) - 1) }},
		{"popcount(simd_ballot(lane % 3 == 0))", func(int) float32 { return 11 }},
		{"popcount(uint(simd_ballot(lane % 3 == 0)))", func(int) float32 { return 11 }},
		{"ctz(simd_ballot(lane > 8))", func(int) float32 { return 9 }},
		{"simd_ballot(lane == 40) ? 1 : 2", func(int) float32 { return 2 }},
		{"simd_ballot(true) == 0xffffffffu", func(int) float32 { return 1 }},
		{"simd_vote(0xffffffff).all() && !simd_vote().any()", func(int) float32 { return 1 }},
		{"simd_active_threads_mask().all()", func(int) float32 { return 1 }},
		{"quad_active_threads_mask().all()", func(int) float32 { return 1 }},
		{"quad_vote::vote_t(quad_ballot(lane & 1))", func(int) float32 { return 10 }},
		{"quad_ballot(lane < 6).all()", func(i int) float32 { return map[bool]float32{true: 1}[i < 4] }},
		{"quad_ballot(lane == 6).any()", func(i int) float32 { return map[bool]float32{true: 1}[i/4 == 1] }},
		{"sizeof(quad_vote::vote_t) + 8 * is_same_v<simd_vote::vote_t, ulong>", func(int) float32 { return 12 }},
		{"simd_sum(bool(lane & 1))", func(int) float32 { return 16 }},
	} {
		t.Log(c.expr)
		got := runLanes(t, "", "out[lane] = float("+c.expr+");", 32, 32, msl.Options{})
		require.Equal(t, lanes(c.want), got, c.expr)
	}
}

// Votes as values of their class and as numbers in variables.
func TestVoteVariables(t *testing.T) {
	t.Parallel()
	got := runLanes(t, "", `
  simd_vote v = simd_ballot(lane < 5); auto w = simd_ballot(lane > 29);
  uint64_t a = simd_ballot(lane == 1); ulong b = ulong(w) >> 30; uint c = simd_ballot(lane == 2);
  const simd_vote::vote_t d = (simd_vote::vote_t)v;
  if (w.any()) out[lane] = a + b + c + d + simd_vote::vote_t(v) + (v.all() ? 1000 : 0);`, 32, 32, msl.Options{})
	require.Equal(t, lanes(func(int) float32 { return 2 + 3 + 4 + 31 + 31 }), got)
}

// A collective inside a branch acts on the lanes that take it.
func TestSimdDivergence(t *testing.T) {
	t.Parallel()
	got := runLanes(t, "",
		"out[lane] = -1; if (lane < 4) { out[lane] = simd_sum(1.0f); } else if (lane < 7) out[lane] = simd_max(lane);",
		32, 32, msl.Options{})
	require.Equal(t, lanes(func(i int) float32 {
		switch {
		case i < 4:
			return 4
		case i < 7:
			return 6
		}
		return -1
	}), got)
}

func TestAtomics(t *testing.T) {
	t.Parallel()
	got := runLanes(t, "", `
  threadgroup atomic_int tg; device atomic<float> *tf = (device atomic<float> *)(cnt + 2);
  if (tid == 0) { atomic_store_explicit(&tg, 5, memory_order_relaxed);
  atomic_store_explicit(tf, 0.0f, memory_order_relaxed); }
  threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);
  atomic_fetch_add_explicit(cnt, 2u, memory_order_relaxed);
  atomic_fetch_max_explicit(&tg, int(tid), memory_order_relaxed);
  atomic_fetch_add_explicit(tf, 0.5f, memory_order_relaxed);
  device atomic_float *fl = (device atomic_float *)(cnt + 1);
  float old = atomic_load_explicit(fl, memory_order_relaxed);
  while (!atomic_compare_exchange_weak_explicit(fl, &old, old + 1.0f, memory_order_relaxed,
  memory_order_relaxed)) {}
  threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
  if (tid == 0) {
    out[0] = atomic_load_explicit(cnt, memory_order_relaxed);
    out[1] = atomic_load_explicit(&tg, memory_order_relaxed);
    out[2] = atomic_load_explicit(tf, memory_order_relaxed);
    out[3] = atomic_load_explicit(fl, memory_order_relaxed);
    out[4] = atomic_exchange_explicit(&tg, 9, memory_order_relaxed);
    out[5] = atomic_fetch_sub_explicit(&tg, 4, memory_order_relaxed);
    out[6] = atomic_load_explicit(&tg, memory_order_relaxed);
  }`, 64, 7, msl.Options{})
	require.Equal(t, []float32{128, 63, 32, 64, 63, 9, 5}, got)
}

// An 8x8 product, loaded, multiplied and stored by a SIMD-group, against the definition.
func TestSimdgroupMatrix(t *testing.T) {
	t.Parallel()
	got := runLanes(t, "", `
  simdgroup_float8x8 a, b, c = simdgroup_float8x8(1.0f), d;
  simdgroup_load(a, in, 8); simdgroup_load(b, in + 64, 8, ulong2(0, 0), true);
  simdgroup_multiply_accumulate(d, a, b, c);
  simdgroup_store(d, out, 8);
  simdgroup_matrix<float, 8, 8> e = make_filled_simdgroup_matrix<float, 8, 8>(2.0f);
  e.thread_elements()[1] += 1; simdgroup_store(e, out + 64, 8); simdgroup_multiply(d, c, a);
  simdgroup_store(d, out + 128, 8);`,
		32, 192, msl.Options{})
	for r := range 8 {
		for c := range 8 {
			want := float32(0)
			if r == c {
				want = 1
			}
			for k := range 8 {
				want += float32(r*8+k) * float32(64+c*8+k)
			}
			require.Equal(t, want, got[r*8+c], "row %d column %d", r, c)
			require.Equal(t, float32(2+c%2), got[64+r*8+c])
			require.Equal(t, float32(r*8+c), got[128+r*8+c])
		}
	}
}

// 1 + 2^-12 squared is 1 + 2^-11 + 2^-24: the last term survives only in an fma.
func TestContraction(t *testing.T) {
	t.Parallel()
	body := `
  float a = in[1] + 0.000244140625f, p = a * a;
  out[0] = a * a - 1.00048828125f; out[1] = p - 1.00048828125f;
  {
#pragma clang fp contract(off)
    out[2] = a * a - 1.00048828125f;
  }
  out[3] = a * a - 1.00048828125f; out[4] = fma(a, a, -1.00048828125f);`
	tiny := float32(math.Ldexp(1, -24))
	require.Equal(t, []float32{tiny, 0, 0, tiny, tiny}, runLanes(t, "", body, 1, 5, msl.Options{}))
}

// Threads that have returned do not hold up a barrier, and address spaces are deduced for auto.
func TestThreadgroupMemory(t *testing.T) {
	t.Parallel()
	got := runLanes(t, `
constant float table[4] = {1, 2, 3, 4};
template <typename P> float third(P p) { return p[2]; }
void put(threadgroup float *p, uint i, float x) { p[i] = x; }
`, `
  threadgroup float sh[2][48]; threadgroup float4 v4[4];
  put(sh[1], tid, in[tid] * 2);
  if (tid < 4) { v4[tid] = float4(tid); v4[tid].yz = float2(7, 8); }
  if (tid >= 40) return;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  auto p = in + 10; auto q = sh[1] + 1; auto c = table + 1; thread float loc[4] = {9, 8, 7, 6}; auto l = loc + 1;
  if (tid == 0) { out[0] = sh[1][39]; out[1] = third(p); out[2] = third(q); out[3] = third(c); out[4] = third(l);
    out[5] = v4[3].x; out[6] = v4[2].z; out[7] = ((device const float4 *)in)[1].y; }`, 48, 8, msl.Options{})
	require.Equal(t, []float32{78, 12, 6, 4, 6, 3, 8, 5}, got)
}

// Too much threadgroup memory is the fault of one kernel, not of the text.
func TestRefusedKernel(t *testing.T) {
	t.Parallel()
	mod, err := msl.Compile(msl.Source{Name: "t", Text: `
template <int N> [[kernel]] void k(device float *out) { threadgroup float a[N]; a[0] = 1; out[0] = a[0]; }
template [[host_name("just")]] [[kernel]] void k<8192>(device float *);
template [[host_name("more")]] [[kernel]] void k<8193>(device float *);`}, msl.Options{})
	require.NoError(t, err)
	require.NoError(t, mod.Kernels[0].Refused)
	require.EqualError(t, mod.Kernels[1].Refused,
		"t:2:75: error MSL0331: with 'a' the kernel needs 32772 bytes of threadgroup memory: Metal has 32768\n"+
			"template <int N> [[kernel]] void k(device float *out) { threadgroup float a[N]; a[0] = 1; out[0] = a[0]; }\n"+
			strings.Repeat(" ", 74)+"^")
}

func TestReflection(t *testing.T) {
	t.Parallel()
	mod, err := msl.Compile(msl.Source{Name: "t", Text: `
struct Params { int n; float s; };
[[kernel, max_total_threads_per_threadgroup(256)]] void k(device const float *a [[buffer(2)]],
device float *b [[buffer(0)]],
    device metal::atomic_uint *c [[buffer(5)]], constant Params &p [[buffer(1)]],
    device float *hidden [[buffer(7)]],
    threadgroup float *tg [[threadgroup(0)]], device float *unused [[buffer(9)]],
    ushort2 pos [[thread_position_in_grid]]) {
  device float *w = (device float *)hidden;
  w[pos.x] = 1;
  b[pos.x] = a[pos.y] * p.s + p.n;
  metal::atomic_fetch_add_explicit(c, 1u, metal::memory_order_relaxed);
  tg[0] = 1;
}`}, msl.Options{})
	require.NoError(t, err)
	require.NoError(t, mod.Verify())
	k := mod.Kernels[0]
	require.Equal(t, 256, k.MaxThreads)
	type param struct {
		name                string
		index, min          int
		read, write, atomic bool
	}
	var got []param
	for _, p := range k.Params {
		got = append(got, param{p.Name, p.Index, p.MinBytes, p.Read, p.Write, p.Atomic})
	}
	require.Equal(t, []param{
		{"a", 2, 0, true, false, false}, {"b", 0, 0, false, true, false}, {"c", 5, 0, true, true, true},
		{"p", 1, 8, true, false, false}, {"hidden", 7, 0, false, true, false}, {"tg", 0, 0, false, true, false},
		{"unused", 9, 0, false, false, false},
	}, got)
}
