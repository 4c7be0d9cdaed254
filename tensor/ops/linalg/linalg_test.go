package linalg_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/internal/brief"
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

// largest is the greatest absolute value of x.
func largest(t *testing.T, x *tensor.Array) float64 {
	t.Helper()
	m, err := ops.ToSlice[float32](context.Background(), ops.AsType(ops.Max(ops.Abs(x), nil, false), tensor.Float32))
	require.NoError(t, err)
	return float64(m[0])
}

// TestIdentities: factors multiply to what they are the factors of, of matrices with and without equal eigenvalues,
// and of those that the cores share.
func TestIdentities(t *testing.T) {
	brief.OnlyValues(t)
	optest.Open(t)
	near := func(what string, x, y *tensor.Array, tol float64) {
		t.Helper()
		require.LessOrEqual(t, largest(t, ops.Subtract(x, y)), tol*(1+largest(t, y)), what)
	}
	adjoint := func(x *tensor.Array) *tensor.Array { return ops.Conjugate(transpose(x)) }
	diagonal := func(x, like *tensor.Array) *tensor.Array {
		return ops.Multiply(eyeLike(like), ops.ExpandDims(x, []int{-2}))
	}
	unitary := func(what string, q *tensor.Array, tol float64) {
		t.Helper()
		p := mul(adjoint(q), q)
		near(what, p, eyeLike(p), tol)
	}
	for _, d := range []tensor.DType{tensor.Float32, tensor.Float64, tensor.Complex64} {
		tol := 2e-6
		if d == tensor.Float64 {
			tol = 1e-13
		}
		for _, s := range [][]int{{1, 1}, {2, 2}, {7, 3}, {3, 7}, {33, 33}, {40, 24}, {24, 40}, {2, 100, 5, 5}} {
			for _, of := range []string{"noise", "few ranks", "ones", "zero"} {
				n := s[len(s)-1]
				a := optest.Noise(d, s...)
				switch of {
				case "few ranks":
					a = mul(optest.Noise(d, append(slices.Clone(s[:len(s)-1]), 1)...), optest.Noise(d, 1, n))
				case "ones":
					a = ops.Add(ops.ZerosLike(a), eyeLike(a))
				case "zero":
					a = ops.ZerosLike(a)
				}
				what := fmt.Sprintf("%v of %v %v", of, d, s)
				f := linalg.SVD(a)
				unitary("U, "+what, f[0], tol)
				unitary("Vt, "+what, f[2], tol)
				middle := ops.Multiply(eyeLike(a), ops.ExpandDims(padded(f[1], n), []int{-2}))
				near("SVD, "+what, mul(f[0], middle, f[2]), a, tol)
				near("S, "+what, linalg.SingularValues(a), f[1], tol)
				if d != tensor.Complex64 {
					f = linalg.QR(a)
					unitary("Q, "+what, f[0], tol)
					near("QR, "+what, mul(f[0], f[1]), a, tol)
					near("R, "+what, ops.Triu(f[1], 0), f[1], 0)
					f = linalg.LU(a)
					rows := -2
					near("LU, "+what, ops.TakeAlongAxis(mul(f[1], f[2]), ops.ExpandDims(f[0], []int{-1}), &rows), a, tol)
				}
				if s[len(s)-2] != n {
					continue
				}
				h := ops.Add(a, adjoint(a))
				for _, upper := range []bool{false, true} {
					f = linalg.EigH(h, upper)
					unitary("eigh, "+what, f[1], tol)
					near("eigh, "+what, mul(f[1], diagonal(f[0], h), adjoint(f[1])), h, tol)
					near("eigvalsh, "+what, linalg.EigValsH(h, upper), f[0], tol)
				}
				f = linalg.Eig(a)
				near("eig, "+what, mul(a, f[1]), mul(f[1], diagonal(f[0], f[1])), 5e-6)
				if of == "noise" {
					near("eigvals, "+what, ops.Sum(linalg.EigVals(a), []int{-1}, false),
						ops.Sum(ops.Multiply(a, eyeLike(a)), []int{-2, -1}, false), 1e-5)
					if d != tensor.Complex64 {
						near("inv, "+what, mul(a, linalg.Inv(a)), eyeLike(a), 500*tol)
						near("solve, "+what, mul(a, linalg.Solve(a, h)), h, 500*tol)
					}
				}
			}
		}
	}
}

// padded is x with zeros behind its last dimension, n in all.
func padded(x *tensor.Array, n int) *tensor.Array {
	s := x.Shape()
	if k := s[len(s)-1]; k < n {
		last := -1
		more := append(s[:len(s)-1].Clone(), n-k)
		return ops.Concatenate([]*tensor.Array{x, ops.Zeros(tensor.Sizes(more...), x.DType())}, &last)
	}
	return x
}

// TestCancelled: a batch that is cancelled stops, and is computed when somebody reads it.
func TestCancelled(t *testing.T) {
	optest.Open(t)
	a := optest.Noise(tensor.Float32, 64, 24, 24)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	s := linalg.SingularValues(a)
	require.ErrorIs(t, tensor.Eval(ctx, s), context.Canceled)
	require.NoError(t, tensor.Eval(context.Background(), s))
}

// TestSharedErrors: of several matrices that fail the first one is named, whichever core meets it.
func TestSharedErrors(t *testing.T) {
	optest.Open(t)
	const n, count = 20, 64
	v := make([]float32, count*n*n)
	for i := range count {
		for k := range n {
			if i%10 != 7 || k > 3 {
				v[i*n*n+k*n+k] = 1
			}
		}
	}
	x := linalg.Inv(ops.FromSlice(v, []int{count, n, n}))
	require.ErrorContains(t, tensor.Eval(context.Background(), x), "[inv] matrix 7 of shape (20, 20) is singular")
}

// TestSemiDefinite: a matrix that is singular up to the rounding of its elements has a factor, and one that is not
// definite has none.
func TestSemiDefinite(t *testing.T) {
	optest.Open(t)
	for _, n := range []int{2, 3, 9, 40} {
		for _, rank := range []int{0, 1, 2, n / 2} {
			x := optest.Noise(tensor.Float32, n, rank)
			a := mul(x, transpose(x))
			l := linalg.Cholesky(a, false)
			size := largest(t, a)
			require.LessOrEqual(t, largest(t, ops.Subtract(mul(l, transpose(l)), a)), float64(n)*1e-6*size, "%d of %d", rank, n)
			below := ops.Subtract(a, ops.Multiply(eyeLike(a), ops.Number(0.01*size+0.01, a.DType())))
			if rank < n {
				require.ErrorContains(t, tensor.Eval(context.Background(), linalg.Cholesky(below, false)), "not positive definite")
			}
		}
	}
	off := ops.FromSlice([]float32{0, 1, 1, 0}, []int{2, 2})
	require.ErrorContains(t, tensor.Eval(context.Background(), linalg.Cholesky(off, false)), "not positive definite")
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
	fails(linalg.Inv(zeros(tensor.Float32, 3, 2, 2)), "[inv] matrix 0 of shape (2, 2) is singular")
	fails(linalg.Inv(zeros(tensor.Complex64, 2, 2)), "[inv] does not take dtype complex64, want float32 or float64")
	fails(linalg.Solve(batch, zeros(tensor.Float32, 2, 3, 1)), "[solve] a (2, 2, 2) and b (2, 3, 1) do not fit: "+
		"b's columns have 3 elements, want 2")
	fails(linalg.Solve(batch, zeros(tensor.Float32, 3, 2, 1)),
		"[solve] the batches of a (2, 2, 2) and b (3, 2, 1) cannot be broadcast")
	fails(linalg.Solve(zeros(tensor.Float32, 2, 2), zeros(tensor.Complex64, 2)),
		"[solve] does not take dtypes float32 and complex64, want float32 or float64")
	fails(linalg.Solve(zeros(tensor.Float32, 2, 2), zeros(tensor.Float32, 2)),
		"[solve] matrix 0 of shape (2, 2) is singular")
	fails(linalg.SolveTriangular(zeros(tensor.Float32, 2, 2), zeros(tensor.Float32, 2), true),
		"[solve_triangular] matrix 0 of shape (2, 2) is singular: it has a zero on its diagonal")
	fails(linalg.SingularValues(nan), "[svd] matrix 0 of shape (1, 1) holds NaN or an infinity")
	fails(linalg.PInv(nan), "[pinv] matrix 0 of shape (1, 1) holds NaN or an infinity")
	fails(linalg.EigValsH(nan, true), "[eigh] matrix 0 of shape (1, 1) holds NaN or an infinity")
	fails(linalg.EigVals(nan), "[eig] matrix 0 of shape (1, 1) holds NaN or an infinity")
	fails(linalg.EigVals(ops.AsType(nan, tensor.Complex64)), "[eig] matrix 0 of shape (1, 1) holds NaN or an infinity")
	fails(linalg.Det(zeros(tensor.Complex64, 2, 2)), "[det] does not take dtype complex64, want float32 or float64")
	fails(linalg.Cross(zeros(tensor.Float32, 4), zeros(tensor.Float32, 4), 0),
		"[cross] axis 0 of (4,) has size 4, want 2 or 3")
	fails(linalg.Norm(batch, linalg.OrdOf(3), nil, false), "[norm] 3 axes, want one or two")
	fails(linalg.Norm(batch, linalg.OrdOf(3), []int{0, 1}, false), "[norm] ord 3 is no order of a matrix norm")
	fails(linalg.Norm(batch, linalg.Nuclear, []int{1}, false), "[norm] ord nuc is for matrices, want two axes, not 1")
	fails(linalg.LU(zeros(tensor.Int32, 2, 2))[0], "[lu] does not take dtype int32, want float32 or float64")
	fails(linalg.QR(nil)[0], "[qr] an input is nil")
}
