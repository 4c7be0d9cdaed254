package linalg_test

import (
	"context"
	"encoding/binary"
	"math"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/linalg"
	"github.com/mlxlua/mlxlua/tensor/optest"
)

func TestMain(m *testing.M) { os.Exit(optest.Main(m, nil)) }

// positive makes a positive definite matrix of one without structure: x x^T + 2.
func positive(x *tensor.Array) *tensor.Array {
	return ops.Add(ops.Matmul(x, ops.SwapAxes(x, -1, -2)), ops.Multiply(ops.Eye(3, 3, 0, x.DType()), ops.Number(2,
		x.DType())))
}

func TestCholesky(t *testing.T) {
	u := optest.Uniform(-1, 1)
	floats := []tensor.DType{tensor.Float32, tensor.Float64}
	diagonal := func(x *tensor.Array) *tensor.Array { // triangles with a diagonal that is not zero
		return ops.Add(x, ops.Multiply(ops.Eye(3, 3, 0, x.DType()), ops.Number(3, x.DType())))
	}
	for _, upper := range []bool{false, true} {
		name := map[bool]string{false: "", true: " upper"}[upper]
		cases := []optest.Case{{Inputs: []optest.Input{optest.In("3,3", u)}}, {Inputs: []optest.Input{optest.In("n,3,3", u)}}}
		op := optest.Subject{
			Name: "cholesky" + name, Ops: []string{"cholesky"}, DTypes: floats, Cases: cases,
			Tol:    optest.Tol{Rel: 1e-5, Abs: 1e-5},
			Second: true,
			Fn: func(in []*tensor.Array) []*tensor.Array {
				return []*tensor.Array{linalg.Cholesky(positive(in[0]), upper)}
			},
		}
		optest.Run(t, op)
		op.Name, op.Ops = "tri_inv"+name, []string{"tri_inv"}
		op.Fn = func(in []*tensor.Array) []*tensor.Array {
			return []*tensor.Array{linalg.TriInv(diagonal(in[0]), upper)}
		}
		optest.Run(t, op)
		// Only one triangle is read: elements of the other one have no gradient, which finite differences tell.
		op.Name, op.Ops = "cholesky of a triangle"+name, []string{"cholesky"}
		op.Fn = func(in []*tensor.Array) []*tensor.Array {
			return []*tensor.Array{linalg.Cholesky(ops.Add(diagonal(in[0]), diagonal(in[0])), upper)}
		}
		optest.Run(t, op)
	}
}

func floats(t *testing.T, x *tensor.Array) []float64 {
	t.Helper()
	b, err := x.Bytes(context.Background())
	require.NoError(t, err)
	require.Equal(t, tensor.Float64, x.DType())
	out := make([]float64, len(b)/8)
	for i := range out {
		out[i] = math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
	}
	return out
}

// TestCholeskyValues: the values are NumPy's (numpy.linalg.cholesky of [[4, 2], [2, 5]] and of [[9, 3], [3, 17]]),
// and the other triangle is not read.
func TestCholeskyValues(t *testing.T) {
	optest.Open(t)
	a := ops.FromSlice([]float64{4, 99, 2, 5, 9, -7, 3, 17}, []int{2, 2, 2})
	require.Equal(t, []float64{2, 0, 1, 2, 3, 0, 1, 4}, floats(t, linalg.Cholesky(a, false)))
	require.Equal(t, []float64{2, 1, 0, 2, 3, 1, 0, 4}, floats(t, linalg.Cholesky(ops.SwapAxes(a, 1, 2), true)))
	l := ops.FromSlice([]float64{2, 99, 1, 4}, []int{2, 2})
	require.Equal(t, []float64{0.5, 0, -0.125, 0.25}, floats(t, linalg.TriInv(l, false)))
	empty := linalg.Cholesky(ops.Zeros(tensor.Sizes(2, 0, 0), tensor.Float64), false)
	require.Empty(t, floats(t, empty))
	require.Equal(t, tensor.Shape{2, 0, 0}, empty.Shape())
}

func TestErrors(t *testing.T) {
	optest.Open(t)
	fails := func(x *tensor.Array, text string) {
		t.Helper()
		err := tensor.Eval(context.Background(), x)
		require.ErrorContains(t, err, text)
		require.NotContains(t, err.Error(), "BUG")
		require.Contains(t, err.Error(), "linalg_test.go:")
	}
	zeros := func(d tensor.DType, n ...int) *tensor.Array { return ops.Zeros(tensor.Sizes(n...), d) }
	fails(linalg.Cholesky(zeros(tensor.Float32, 2, 3), false),
		"[cholesky] want square matrices, not an array of shape (2, 3)")
	fails(linalg.Cholesky(zeros(tensor.Float32, 3), true), "[cholesky] want square matrices, not an array of shape (3,)")
	fails(linalg.Cholesky(zeros(tensor.Float16, 2, 2), false),
		"[cholesky] does not take dtype float16, want float32 or float64")
	fails(linalg.Cholesky(nil, true), "[cholesky] an input is nil")
	batch := ops.FromSlice([]float32{1, 0, 0, 1, 1, 2, 2, 1}, []int{2, 2, 2})
	fails(linalg.Cholesky(batch, false), "[cholesky] matrix 1 of shape (2, 2) is not positive definite")
	nan := ops.FromSlice([]float32{float32(math.NaN())}, []int{1, 1})
	fails(linalg.Cholesky(nan, false), "is not positive definite")
	fails(linalg.TriInv(zeros(tensor.Float32, 2, 2), false), "[tri_inv] matrix 0 of shape (2, 2) is singular")
}
