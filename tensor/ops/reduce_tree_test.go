package ops_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/optest"
)

// TestReductionsOfManyChains sums and searches numbers of elements on both sides of those where a thread has one level
// more of chains to combine, and where SIMD-groups share the elements unevenly. The elements are their own indices
// modulo 7, so that the results are known.
func TestReductionsOfManyChains(t *testing.T) {
	t.Parallel()
	optest.Open(t)
	const chain = 8 * 32
	for _, s := range []struct{ outputs, n int }{
		{64, 254*chain + 1}, {64, 255*chain - 1}, {64, 255 * chain}, {64, 255*chain + 1}, {64, 256 * chain},
		{70, 511*chain + 3},
		{1, 4097}, {1, 8*chain + 1}, {1, 9 * chain}, {1, 65536}, {1, 65537}, {3, 100003}, {1, 32768*3 + 2049},
	} {
		x := ops.Remainder(ops.Arange(0, float64(s.outputs*s.n), 1, tensor.Int32), ops.Number(7, tensor.Int32))
		rows := ops.Reshape(x, tensor.Sizes(s.outputs, s.n))
		sums := optest.Values32(t, ops.Sum(rows, []int{1}, false))
		last := optest.Values32(t, ops.Max(rows, []int{1}, false))
		for o := range s.outputs {
			want := 0
			for i := range s.n {
				want += (o*s.n + i) % 7
			}
			require.InDelta(t, want, sums[o], 0, "row %d of %v", o, s)
			require.InDelta(t, 6, last[o], 0, "row %d of %v", o, s)
		}
	}
	// A thread for each output, with accumulators that do not stand in memory: all elements are its own.
	for _, n := range []int{1019, 1020, 1021, 1024, 2052} {
		x := ops.Reshape(ops.Arange(0, float64(n*40), 1, tensor.Int32), tensor.Sizes(n, 40))
		at := optest.Values32(t, ops.ArgMax(x, []int{0}, false))
		require.Len(t, at, 40)
		for _, i := range at {
			require.InDelta(t, n-1, i, 0)
		}
	}
}
