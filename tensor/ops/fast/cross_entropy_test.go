package fast_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/fast"
	"github.com/mlxlua/mlxlua/tensor/optest"
)

func TestCrossEntropy(t *testing.T) {
	targets := func(dims string) optest.Input { return optest.In(dims, optest.Ints(0, 3)).As(tensor.Int32) }
	optest.Run(t, optest.Subject{
		Name: "cross_entropy", Ops: []string{"logsumexp"}, DTypes: optest.FloatTypes, Second: true,
		FD:  tensor.Float32, // the result's
		Tol: optest.Tol{Rel: 2e-5, Abs: 1e-5},
		Fn:  optest.One(func(in []*array) *array { return fast.CrossEntropy(in[0], in[1]) }),
		Cases: []optest.Case{{Inputs: []optest.Input{optest.In("n,4", uniform), targets("n")}},
			{Inputs: []optest.Input{optest.In("n,m,5", uniform), targets("n,m")}},
			{Inputs: []optest.Input{optest.In("4", uniform), targets("")}}},
	})
	optest.Open(t)
	half := ops.AsType(optest.Zeros(2, 3), tensor.Float16)
	ints := func(d tensor.DType, n ...int) *array { return ops.AsType(optest.Zeros(n...), d) }
	require.Equal(t, tensor.Float32, fast.CrossEntropy(half, ints(tensor.Uint8, 2)).DType())
	optest.Fails(t, fast.CrossEntropy(ints(tensor.Int32, 2, 3), ints(tensor.Int32, 2)),
		"[cross_entropy] logits have dtype int32, want a floating-point one")
	optest.Fails(t, fast.CrossEntropy(half, optest.Zeros(2)), "[cross_entropy] targets have dtype float32, want integers")
	optest.Fails(t, fast.CrossEntropy(half, ints(tensor.Int32, 1)),
		"[cross_entropy] targets have shape (1,), logits (2, 3)")
	optest.Fails(t, fast.CrossEntropy(optest.Zeros(), ints(tensor.Int32)), "[cross_entropy] logits are a scalar")
	far := ops.FromSlice([]int32{0, 3}, []int{2})
	require.ErrorContains(t, tensor.Eval(t.Context(), fast.CrossEntropy(half, far)), "index 3 is out of range")
}
