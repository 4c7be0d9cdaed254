package ops_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/optest"
)

// TestMatmulTiles multiplies matrices of small whole numbers, for which every order of adding up is exact, in shapes
// that fill tiles and that do not, with operands that lie by rows and by columns.
func TestMatmulTiles(t *testing.T) {
	optest.Open(t)
	matrix := func(rows, cols int, turned bool, seed uint32) ([]float32, *array) {
		v := make([]float32, rows*cols)
		for i := range v {
			seed = seed*1664525 + 1013904223
			v[i] = float32(seed>>24) - 128
		}
		if !turned {
			return v, ops.FromSlice(v, []int{rows, cols})
		}
		w := make([]float32, rows*cols)
		for i := range v {
			w[i%cols*rows+i/cols] = v[i]
		}
		return v, ops.SwapAxes(ops.FromSlice(w, []int{cols, rows}), 0, 1)
	}
	const depth = 37
	for _, rows := range []int{1, 2, 4, 9, 130} {
		for _, cols := range []int{1, 3, 4, 20, 66, 68, 256} {
			for turned := range 4 {
				va, a := matrix(rows, depth, turned&1 != 0, 1)
				vb, b := matrix(depth, cols, turned&2 != 0, 2)
				want := make([]float64, rows*cols)
				for i := range want {
					for k := range depth {
						want[i] += float64(va[i/cols*depth+k] * vb[k*cols+i%cols])
					}
				}
				require.Equal(t, want, values32(t, ops.Matmul(a, b)), "%d rows, %d columns, %d", rows, cols, turned)
			}
		}
	}
}
