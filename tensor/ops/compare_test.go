package ops_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/grad"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/optest"
)

func TestComparisons(t *testing.T) {
	t.Parallel()
	optest.Flat(t, "equal not_equal greater greater_equal less less_equal", uniform, uniform)
	optest.Elementwise(t, "maximum minimum", optest.Distinct(0), optest.Distinct(0.0625)) // no ties
}

// TestGradientsOfExtremes: where operands are equal, differ in the sign of zero, or are NaN, gradients are those of MLX
// (mx.vjp of mx.maximum and mx.minimum).
func TestGradientsOfExtremes(t *testing.T) {
	t.Parallel()
	optest.Open(t)
	n, zero := float32(math.NaN()), float32(math.Copysign(0, -1))
	a := ops.FromSlice([]float32{1, 2, n, 3, zero, 0, 5, n}, []int{8})
	b := ops.FromSlice([]float32{2, 2, 1, n, 0, zero, 4, n}, []int{8})
	for _, c := range []struct {
		f    func(a, b *array, ctx ...*tensor.Ctx) *array
		want [2][]float64
	}{
		{ops.Maximum, [2][]float64{{0, 0, 0, 0, 0, 0, 1, 0}, {1, 1, 0, 0, 1, 1, 0, 0}}},
		{ops.Minimum, [2][]float64{{1, 0, 0, 0, 0, 0, 0, 0}, {0, 1, 0, 0, 1, 1, 1, 0}}},
	} {
		f := func(in []*array) ([]*array, error) { return []*array{c.f(in[0], in[1])}, nil }
		_, g, err := grad.VJP(f, []*array{a, b}, []*array{ops.OnesLike(a)})
		require.NoError(t, err)
		for i := range g {
			require.Equal(t, c.want[i], optest.Values32(t, g[i]), "gradient %d", i)
		}
	}
}
