package multivariate_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/multivariate"
	"github.com/mlxlua/mlxlua/tensor/ops/random"
	"github.com/mlxlua/mlxlua/tensor/optest"
)

func TestMain(m *testing.M) { os.Exit(optest.Main(m, nil)) }

type array = tensor.Array

// TestRules: the result follows mean's shape, and gradients flow to mean.
func TestRules(t *testing.T) {
	key := random.Key(3)
	zeros := func(n ...int) *array { return ops.Zeros(tensor.Sizes(n...), tensor.Float32) }
	optest.Run(t, optest.Subject{
		Name: "multivariate_normal", Ops: []string{"random_bits"},
		Cases:  []optest.Case{{Inputs: []optest.Input{optest.In("n,3", optest.Uniform(-2, 2))}}},
		DTypes: optest.FloatTypes[:1], FD: optest.FloatTypes[0],
		Fn: optest.One(func(in []*array) *array {
			cov := ops.FromSlice([]float32{3, 1, 0, 1, 2, 0, 0, 0, 1}, []int{3, 3})
			return multivariate.Normal(in[0], cov, tensor.Sizes(), tensor.Float32, key)
		}),
		Bad: []optest.Bad{{Name: "sizes", Make: func() *array {
			return multivariate.Normal(zeros(2), zeros(3, 3), tensor.Sizes(), tensor.Float32, key)
		}, Text: "[random_multivariate_normal] mean has shape (2,) and cov (3, 3)"}},
	})
}

// TestCovariance: many vectors have the covariance that was asked for.
func TestCovariance(t *testing.T) {
	optest.Open(t)
	const n = 1 << 14
	cov := []float32{3, 1, 1, 2}
	x := multivariate.Normal(ops.FromSlice([]float32{5, -1}, []int{2}), ops.FromSlice(cov, []int{2, 2}),
		tensor.Sizes(n), tensor.Float32, random.Key(4))
	x = ops.Subtract(x, ops.FromSlice([]float32{5, -1}, []int{2}))
	got := optest.Values32(t, ops.Matmul(ops.SwapAxes(x, 0, 1), x))
	for i, want := range cov {
		require.InDelta(t, want, got[i]/n, 0.15, "element %d", i)
	}
}
