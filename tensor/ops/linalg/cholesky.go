package linalg

import (
	"fmt"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack/lapack64"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

// Both read and write lower triangles.
var (
	cholesky = tensor.Declare[tensor.None]("cholesky")
	triInv   = tensor.Declare[tensor.None]("tri_inv")
)

func init() {
	cholesky.Define(tensor.Rules[tensor.None]{
		Shape: square,
		DType: realDType,
		Host: func(h *tensor.HostCall, _ tensor.None) error {
			return eachMatrix(h, func(i, n int, a []float64) error {
				_, ok := lapack64.Potrf(blas64.Symmetric{Uplo: blas.Lower, N: n, Data: a, Stride: n})
				if !ok {
					return fmt.Errorf("matrix %d of shape (%d, %d) is not positive definite", i, n, n)
				}
				clearAbove(a, n)
				return nil
			})
		},
		Gradient: func(g *tensor.VJP[tensor.None]) *tensor.Array {
			// With P the lower triangle of L^T dL and half of its diagonal, S = L^-T P L^-1 is the gradient of a symmetric
			// matrix's elements. Only the lower ones are read: each stands for its mirror image too.
			c, l := g.Ctx, g.Out[0]
			inv := triInv.One(c, tensor.None{}, l)
			p := ops.Matmul(ops.SwapAxes(l, -1, -2, c), g.Cot[0], c)
			half := ops.Number(0.5, p.DType(), c)
			p = ops.Multiply(ops.Add(ops.Tril(p, 0, c), ops.Tril(p, -1, c), c), half, c)
			s := ops.Matmul(ops.Matmul(ops.SwapAxes(inv, -1, -2, c), p, c), inv, c)
			mirror := ops.Tril(ops.SwapAxes(s, -1, -2, c), -1, c)
			return ops.Add(ops.Tril(s, 0, c), mirror, c)
		},
		VMap: ops.BatchFirst(cholesky),
	})
	triInv.Define(tensor.Rules[tensor.None]{
		Shape: square,
		DType: realDType,
		Host: func(h *tensor.HostCall, _ tensor.None) error {
			return eachMatrix(h, func(i, n int, a []float64) error {
				t := blas64.Triangular{Uplo: blas.Lower, Diag: blas.NonUnit, N: n, Data: a, Stride: n}
				if !lapack64.Trtri(t) {
					return fmt.Errorf("matrix %d of shape (%d, %d) is singular: it has a zero on its diagonal", i, n, n)
				}
				clearAbove(a, n)
				return nil
			})
		},
		Gradient: func(g *tensor.VJP[tensor.None]) *tensor.Array {
			c := g.Ctx
			t := ops.SwapAxes(g.Out[0], -1, -2, c)
			return ops.Negative(ops.Tril(ops.Matmul(ops.Matmul(t, g.Cot[0], c), t, c), 0, c), c)
		},
		VMap: ops.BatchFirst(triInv),
	})
}

func clearAbove(a []float64, n int) {
	for i := range n {
		clear(a[i*n+i+1 : (i+1)*n])
	}
}

var _ = sig.Def("linalg.cholesky", "a upper:bool=false", func(a *sig.Args) any {
	return Cholesky(a.Array(0), a.Bool(1), a.Ctx)
})

// Cholesky is for each matrix of a (its last two dimensions, symmetric and positive definite) the lower triangular
// L with L L^T = a, or with upper the upper triangular U with U^T U = a, of a's dtype, which must be float32 or
// float64. Only that triangle of a is read, and only there is a gradient. Matrices that are not square are an
// error; one that is not positive definite is an error when the result is computed. It is computed on the host.
func Cholesky(a *tensor.Array, upper bool, ctx ...*tensor.Ctx) *tensor.Array {
	return lowerOrUpper(tensor.Call(ctx), cholesky, a, upper)
}

var _ = sig.Def("linalg.tri_inv", "a upper:bool=false", func(a *sig.Args) any {
	return TriInv(a.Array(0), a.Bool(1), a.Ctx)
})

// TriInv is the inverses of the lower triangular matrices of a, or of upper triangular ones, of a's dtype, which
// must be float32 or float64. Only that triangle is read. Matrices that are not square are an error; a zero on a
// diagonal is an error when the result is computed. It is computed on the host.
func TriInv(a *tensor.Array, upper bool, ctx ...*tensor.Ctx) *tensor.Array {
	return lowerOrUpper(tensor.Call(ctx), triInv, a, upper)
}

func lowerOrUpper(c *tensor.Ctx, op *tensor.OpOf[tensor.None], a *tensor.Array, upper bool) *tensor.Array {
	if a == nil {
		return tensor.Fail(c, op.Op().Name(), "an input is nil")
	}
	if a.Err() != nil || !upper || a.NDim() < 2 {
		return op.One(c, tensor.None{}, a)
	}
	y := op.One(c, tensor.None{}, ops.SwapAxes(a, -1, -2, c))
	if y.Err() != nil {
		return y
	}
	return ops.SwapAxes(y, -1, -2, c)
}
