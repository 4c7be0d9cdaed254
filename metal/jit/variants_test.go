package jit

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal/msl"
)

// prepare compiles the only kernel of a text for a level.
func prepare(tb testing.TB, text string, level Level) *Executable {
	m, err := msl.Compile(msl.Source{Name: "bench", Text: text}, msl.Options{})
	require.NoError(tb, err)
	p, err := Prepare(m.Kernels[0], m.Files, Options{Level: level})
	require.NoError(tb, err)
	return p
}

// Short kernels without loops run all lanes of a SIMD-group at a time where registers are wide and many, if those lanes
// lie in a row.
func TestShortKernelsRunWholeSimdGroups(t *testing.T) {
	t.Parallel()
	best, err := Best()
	if err != nil || !best.Has(AVX512) {
		t.Skip("no AVX-512 on this processor")
	}
	text := func(body string) string {
		return "kernel void k(device float* a [[buffer(0)]], uint i [[thread_position_in_grid]]) {" + body + "}"
	}
	long := strings.Repeat("a[i] = a[i] * 3.0f + sin(a[i]);", 60)
	tanh := "a[i] = tanh(a[i]);"
	for _, c := range []struct {
		body   string
		size   [3]int
		stride int
		want   int
	}{
		{tanh, [3]int{256, 1, 1}, 256, 32},
		{"if (i < 100) a[i] = tanh(a[i]);", [3]int{256, 1, 1}, 256, 32},
		{tanh, [3]int{20, 1, 1}, 256, 32}, // the last one of its row
		{tanh, [3]int{20, 1, 1}, 0, 32},
		{tanh, [3]int{32, 8, 1}, 32, 32},
		{tanh, [3]int{16, 16, 1}, 16, 16}, // two rows would be one SIMD-group
		{tanh, [3]int{48, 1, 1}, 48, 16},
		{tanh, [3]int{32, 1, 1}, 48, 16},
		{tanh, [3]int{5, 7, 1}, 5, 16},
		{"for (uint n = 0; n < i; n++) a[i] = tanh(a[i]);", [3]int{256, 1, 1}, 256, 16},
		{long, [3]int{256, 1, 1}, 256, 16},
		{"a[i] = simd_sum(a[i]);", [3]int{256, 1, 1}, 256, 32},
	} {
		p := prepare(t, text(c.body), AVX512)
		require.NoError(t, p.root.ready())
		v, err := p.root.plain(c.size, c.stride, false)
		require.NoError(t, err)
		require.Equal(t, c.want, v.code.Layout.Lanes, "%s %v", c.body, c.size)
	}
}

// Each kind of launch has code of its own, the same for all launches of a kind.
func TestKindsOfLaunchesHaveTheirOwnCode(t *testing.T) {
	t.Parallel()
	for _, level := range Levels() {
		const text = "kernel void k(device float* a [[buffer(0)]], uint i [[thread_position_in_grid]]) { a[i] = i; }"
		p := prepare(t, text, level)
		require.NoError(t, p.root.ready())
		type kind struct {
			lanes                           int
			row, aligned, full, nonTemporal bool
		}
		codes, kinds := map[kind]*variant{}, map[*variant]kind{}
		for _, size := range [][3]int{{32, 2, 1}, {33, 1, 1}, {64, 1, 1}, {16, 2, 1}, {16, 3, 1}, {5, 16, 1}, {5, 32, 1},
			{5, 7, 1}, {48, 1, 1}, {8, 3, 1}} {
			for _, stride := range []int{0, 8, 16, 31, 32} {
				for _, nonTemporal := range []bool{false, true} {
					v, err := p.root.plain(size, stride, nonTemporal)
					require.NoError(t, err)
					k := kind{lanes: v.code.Layout.Lanes, nonTemporal: nonTemporal}
					k.row = size[1] == 1 || size[0]%k.lanes == 0
					k.aligned = k.row && stride%k.lanes == 0
					k.full = size[0]*size[1]%k.lanes == 0
					if codes[k] == nil && kinds[v] == (kind{}) {
						codes[k], kinds[v] = v, k
					}
					require.Same(t, codes[k], v, "%v, %d apart", size, stride)
					require.Equal(t, k, kinds[v], "%v, %d apart", size, stride)
				}
			}
		}
		require.Greater(t, len(kinds), 10)
	}
}
