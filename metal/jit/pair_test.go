//go:build amd64 || arm64

package jit

import (
	"bytes"
	"flag"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/internal/brief"
	"github.com/mlxlua/mlxlua/metal/interp"
	"github.com/mlxlua/mlxlua/metal/kerneltest"
	"github.com/mlxlua/mlxlua/metal/launch"
	"github.com/mlxlua/mlxlua/metal/msl"
)

// pairLaunches are launches whose threadgroups have SIMD-groups that go in pairs: rows, and parts of rows. The last
// ones have threadgroups at the edge where they do not.
var pairLaunches = [][2][3]int{
	{{32, 8, 2}, {32, 4, 1}}, {{32, 12, 1}, {32, 2, 1}}, {{256, 1, 1}, {128, 1, 1}}, {{64, 3, 2}, {64, 1, 1}},
	{{64, 4, 2}, {32, 2, 2}}, {{32, 7, 1}, {32, 4, 1}}, {{200, 2, 1}, {64, 1, 1}},
}

// runBoth runs a kernel on the reference executor and on machine code with SIMD-groups in pairs, and reports whether
// there were pairs.
func runBoth(t *testing.T, text string, grid, tg [3]int, buffers func() [][]byte) (paired bool) {
	t.Helper()
	m, err := msl.Compile(msl.Source{Name: "k", Text: text}, msl.Options{Float64: true})
	require.NoError(t, err, text)
	k := m.Kernels[0]
	launch := func() launch.Launch {
		all, b := buffers(), make([][]byte, len(k.Params))
		for i, p := range k.Params {
			b[i] = all[p.Index]
		}
		return launch.Launch{Grid: grid, Threadgroup: tg, Buffers: b}
	}
	ref, err := interp.Prepare(k, m.Files)
	require.NoError(t, err)
	p, err := Prepare(k, m.Files, Options{Level: AVX512, PairAlways: true})
	require.NoError(t, err)
	want, got := launch(), launch()
	if e, f := kerneltest.Run(ref.NewRun, want, 0), kerneltest.Run(p.NewRun, got, 0); e != nil || f != nil {
		require.Error(t, e)
		require.Error(t, f)
		require.Equal(t, e.Error(), f.Error(), text)
	} else {
		for i := range want.Buffers {
			if !bytes.Equal(want.Buffers[i], got.Buffers[i]) {
				t.Fatalf("%s differs, grid %v threadgroup %v\n%s", k.Params[i].Name, grid, tg, text)
			}
		}
	}
	return p.root.pairs[0].code != nil || p.root.pairs[1].code != nil
}

func needAVX512(t *testing.T) {
	if level, _ := Best(); !level.Has(AVX512) {
		t.Skip(level)
	}
}

// TestPairs: what two SIMD-groups can and cannot do together, against the reference executor.
func TestPairs(t *testing.T) {
	t.Parallel()
	needAVX512(t)
	const head = `
kernel void k(const device float* a [[buffer(0)]], constant int* n [[buffer(1)]], device float* o [[buffer(2)]],
              uint3 at [[thread_position_in_grid]], uint3 size [[threads_per_grid]],
              uint lane [[thread_index_in_simdgroup]], uint sg [[simdgroup_index_in_threadgroup]],
              uint index [[thread_index_in_threadgroup]], uint quad [[quadgroup_index_in_threadgroup]]) {
    uint id = at.x + size.x * (at.y + size.y * at.z);
`
	for _, c := range []struct {
		name, body string
		paired     bool
	}{
		{"carried sums", `
    float s = a[id], u = 1;
    for (int t = 0; t < n[0]; t++) { u += simd_sum(s * a[4 * lane + t]); s = fma(s, 0.5f, u); }
    o[id] = s + u;`, true},
		{"longer than a call", `
    float s = a[id];
    if (at.y + at.z == 0)
        for (int t = 0; t < 1200 * n[0]; t++) s = fma(s, 0.5f, simd_sum(s * a[4 * lane + uint(t & 7)]) * 0.01f);
    o[id] = s;`, true},
		{"builtins", `
    uint x = sg * 1000 + index * 3 + quad * 7 + at.y * 11 + at.z * 13 + at.x * 17;
    o[id] = float(x) + simd_sum(float(x & 15));`, true},
		{"rounds that differ", `
    float s = 0;
    for (uint t = 0; t < id / 32 + 1; t++) s += simd_sum(a[id] * float(t));
    o[id] = s;`, true},
		{"an early end that differs", `
    float s = a[id];
    for (int t = 0; t < 20; t++) { s += simd_max(a[lane + t]); if (simd_sum(s) > 3.0f + float(sg)) break; s *= 0.75f; }
    o[id] = s;`, true},
		{"a round left out", `
    float s = 0;
    for (int t = 0; t < 9; t++) { if (((t + sg) & 1) == 0) continue; s += simd_sum(a[lane + t]) * float(sg + 1); }
    o[id] = s;`, true},
		{"branches on the group, and on lanes", `
    float s = simd_sum(a[id]), u = 2;
    if (sg & 1) { u = s; if (lane > 7) s = simd_sum(1.0f); } else { s = simd_prefix_inclusive_sum(a[id]); }
    if (lane < 9) { u += simd_sum(s); o[id] = u; } else { o[id] = s - u; }`, true},
		{"lanes that end", `
    float s = a[id];
    if (lane > 20) { o[id] = s; return; }
    for (int t = 0; t < 3; t++) s += simd_sum(s);
    o[id] = s;`, true},
		{"a group that ends", `
    float s = a[id];
    if (sg == 1) { o[id] = s; return; }
    o[id] = simd_sum(s);`, false},
		{"reading what is written", `
    o[id] = a[id]; o[id] += simd_sum(o[id]);`, false},
		{"strided stores", `
    device float* p = o + 4 * id;
    float s = simd_sum(a[id]);
    for (int t = 0; t < 3; t++) s += simd_sum(a[lane + t] * s);
    p[0] = s; p[1] = s * 2; p[2] = a[id]; p[3] = 7;`, true},
		{"a fault of the second group first", `
    float s = simd_sum(a[id]);
    if (sg == 1) s += a[1000000 + id];
    if (sg == 0) s += a[2000000 + id];
    o[id] = s;`, true},
		{"a fault late", `
    float s = simd_sum(a[id]);
    for (int t = 0; t < 4; t++) s += simd_sum(a[at.y * 300000 * uint(t) + lane + at.x * 9000 * uint(t)]);
    o[id] = s;`, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, l := range pairLaunches {
				paired := runBoth(t, head+c.body+"\n}", l[0], l[1], func() [][]byte {
					return [][]byte{floatBytes(t, 4096), words(5, 3), make([]byte, 4*4*512)}
				})
				require.Equal(t, c.paired, paired)
			}
		})
	}
}

// TestPairsRandom runs random programs with SIMD-groups in pairs: a few, or for -jit.fuzztime.
func TestPairsRandom(t *testing.T) {
	t.Parallel()
	brief.OnlyValues(t)
	needAVX512(t)
	long := flag.Lookup("jit.fuzztime").Value.(flag.Getter).Get().(time.Duration)
	tried, paired := 0, 0
	start, first := time.Now(), uint64(0)
	if long > 0 {
		first = uint64(start.UnixNano())
	}
	for seed := first; paired < 15 && long == 0 || time.Since(start) < long; seed++ {
		c := kerneltest.New(seed, kerneltest.Threadgroups)
		_, body, found := strings.Cut(c.Text, "\nkernel void ")
		require.True(t, found)
		if strings.Contains(body, "threadgroup ") || strings.Contains(body, "atomic_fetch") {
			continue
		}
		tried++
		l := pairLaunches[seed%uint64(len(pairLaunches))]
		if runBoth(t, c.Text, l[0], l[1], c.Buffers) {
			paired++
		}
	}
	t.Logf("%d of %d in pairs", paired, tried)
	require.Positive(t, paired)
}
