package fast_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/fast"
	"github.com/mlxlua/mlxlua/tensor/optest"
)

// TestGPUNorms: rows that GPUs keep in threadgroup memory give the bytes of others, of every class of length.
func TestGPUNorms(t *testing.T) {
	for _, d := range optest.Computed(t, optest.FloatTypes...) {
		for _, n := range []int{33, 256, 700, 1024, 2500, 5000} {
			results := func(c *tensor.Ctx) (all [][]byte) {
				x, w := optest.Noise(d, 3, n), optest.Noise(d, n)
				for _, y := range []*tensor.Array{fast.RMSNorm(x, w, 1e-5, c), fast.LayerNorm(x, w, w, 1e-5, c)} {
					b, err := y.Bytes(context.Background())
					require.NoError(t, err)
					all = append(all, b)
				}
				return all
			}
			require.Equal(t, results(nil), results(optest.GPU(t)), "%v, %d", d, n)
		}
	}
}
