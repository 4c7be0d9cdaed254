package lanes_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal/jit/lanes"
	"github.com/mlxlua/mlxlua/metal/kir"
	"github.com/mlxlua/mlxlua/metal/kir/opt"
	"github.com/mlxlua/mlxlua/metal/msl"
)

// TestStreams counts by hand what loops go on by: 32 words a round, a scale for each 8 words, a row of 100 floats, and
// nothing certain where the step is data, a variable is set twice, or all SIMD-groups read the same.
func TestStreams(t *testing.T) {
	const text = `
kernel void k(const device uint* w [[buffer(0)]], const device float* scale [[buffer(1)]],
              const device float* x [[buffer(2)]], const device float* rows [[buffer(3)]],
              const device float* far [[buffer(4)]], const device float* walk [[buffer(5)]],
              const device float* twice [[buffer(6)]], device float* out [[buffer(7)]], constant uint& n [[buffer(8)]],
              device float* sums [[buffer(9)]],
              uint row [[threadgroup_position_in_grid]], uint lane [[thread_index_in_simdgroup]]) {
    float sum = scale[row];
    uint odd = 0;
    const device float* p = walk + row;
    for (uint k = lane; k < n; k += 32) {
        sum += float(w[row * n + k]) * scale[row * n + k / 8] * x[k] * far[row + k * n];
        sum += rows[row * 7 + (k - lane) / 32 * 100];
        sum += p[0] * twice[row + odd];
        sums[row * n + k] = sum;
        p += 3;
        odd += 1;
        if (sum > 3) odd += 5;
    }
    out[row] = sum;
}`
	m, err := msl.Compile(msl.Source{Name: "k", Text: text}, msl.Options{})
	require.NoError(t, err)
	k := opt.Run(m.Kernels[0], opt.Launch{})
	want := map[string]int64{
		"w": 128, "scale": 16, "x": 0, "rows": 400, "far": 0, "walk": 12, "twice": 0, "sums": 128, "out": 0,
	}
	found, got := lanes.Streams(k), map[string]int64{}
	info := lanes.Analyse(k, 32, lanes.Geometry{Row: true, Aligned: true, Full: true})
	k.Body.Walk(func(in *kir.Instr) {
		if (in.Op == kir.Load || in.Op == kir.Store) && in.Args[0].Type == kir.PtrDevice {
			p := k.Params[info.Access[in.ID].Object-1].Name
			got[p] = max(got[p], found[in.ID])
		}
	})
	require.Equal(t, want, got)
}
