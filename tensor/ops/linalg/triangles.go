package linalg

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack/lapack64"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

// Both read and write lower triangles.
var (
	cholesky = tensor.Declare[tensor.None]("cholesky")
	triInv   = tensor.Declare[tensor.None]("tri_inv")
)

func init() {
	cholesky.Define(tensor.Rules[tensor.None]{
		Shape: square[tensor.None],
		DType: real64[tensor.None](1),
		Host: func(h *tensor.HostCall, _ tensor.None) error {
			return eachSquare(h, func(w *workspace, i, n int, a []float64) error {
				if !factorDefinite(w, a, n, epsOf(h.In[0].DType)) {
					return fmt.Errorf("%s is not positive definite", nameOf(h.In[0], i))
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
			p := ops.Matmul(transposed(c, l), g.Cot[0], c)
			half := ops.Number(0.5, p.DType(), c)
			p = ops.Multiply(ops.Add(ops.Tril(p, 0, c), ops.Tril(p, -1, c), c), half, c)
			return ofTriangle(c, product(c, transposed(c, inv), p, inv), false)
		},
		VMap: ops.BatchFirst(cholesky),
	})
	triInv.Define(tensor.Rules[tensor.None]{
		Shape: square[tensor.None],
		DType: real64[tensor.None](1),
		Host: func(h *tensor.HostCall, _ tensor.None) error {
			return eachSquare(h, func(_ *workspace, i, n int, a []float64) error {
				t := blas64.Triangular{Uplo: blas.Lower, Diag: blas.NonUnit, N: n, Data: a, Stride: n}
				if !lapack64.Trtri(t) {
					return fmt.Errorf("%s is singular: it has a zero on its diagonal", nameOf(h.In[0], i))
				}
				clearAbove(a, n)
				return nil
			})
		},
		Gradient: func(g *tensor.VJP[tensor.None]) *tensor.Array {
			c := g.Ctx
			t := transposed(c, g.Out[0])
			return ops.Negative(ops.Tril(product(c, t, g.Cot[0], t), 0, c), c)
		},
		VMap: ops.BatchFirst(triInv),
	})
}

// eachSquare calls f with each matrix of input 0 as n rows of n numbers, which f changes into output 0's.
func eachSquare(h *tensor.HostCall, f func(w *workspace, i, n int, a []float64) error) error {
	s := h.In[0].Shape
	n := s[len(s)-1]
	if n == 0 {
		return nil
	}
	return overBatch(h, s.Size()/(n*n), cube(n)/6, func(w *workspace, i int) error {
		a := w.load(h.In[0], i, n*n)
		if err := f(w, i, n, a); err != nil {
			return err
		}
		store(h.Out[0], i, a)
		return nil
	})
}

// cube is n^3: what algorithms for n x n matrices cost is a multiple of that.
func cube(n int) float64 { return float64(n) * float64(n) * float64(n) }

// factorDefinite makes the lower triangle of a its factor, and reports whether there is one. Where a matrix is
// singular but for the rounding of its elements, relatively by eps, pivots that are as small as that are zero, and so
// are their columns.
func factorDefinite(w *workspace, a []float64, n int, eps float64) bool {
	l := w.reals(n * n)
	copy(l, a)
	if _, ok := lapack64.Potrf(blas64.Symmetric{Uplo: blas.Lower, N: n, Data: l, Stride: n}); ok {
		copy(a, l)
		return true
	}
	least := 0.0
	for i := range n {
		least = max(least, math.Abs(a[i*n+i]))
	}
	least *= float64(n) * eps
	for k := range n {
		pivot := a[k*n+k]
		for _, v := range a[k*n : k*n+k] {
			pivot -= v * v
		}
		if math.IsNaN(pivot) || math.IsInf(pivot, 0) || pivot < -least {
			return false
		}
		root := math.Sqrt(pivot)
		if pivot <= least {
			root = 0
		}
		a[k*n+k] = root
		for i := k + 1; i < n; i++ {
			v := a[i*n+k]
			for j := range k {
				v -= a[i*n+j] * a[k*n+j]
			}
			switch {
			case root > 0:
				a[i*n+k] = v / root
			case v*v > least*(math.Abs(a[i*n+i])+least): // more than a semi-definite matrix can have there
				return false
			default:
				a[i*n+k] = 0
			}
		}
	}
	return true
}

// epsOf is the distance of 1 from the next number.
func epsOf(d tensor.DType) float64 {
	if d == tensor.Float64 {
		return 0x1p-52
	}
	return 0x1p-23
}

func clearAbove(a []float64, n int) {
	for i := range n {
		clear(a[i*n+i+1 : (i+1)*n])
	}
}

// ofTriangle turns the gradient of all elements of symmetric (or Hermitian) matrices into that of those triangles
// alone: each element stands for its mirror image too.
func ofTriangle(c *tensor.Ctx, s *tensor.Array, upper bool) *tensor.Array {
	if upper {
		return ops.Add(ops.Triu(s, 0, c), ops.Triu(adjoint(c, s), 1, c), c)
	}
	return ops.Add(ops.Tril(s, 0, c), ops.Tril(adjoint(c, s), -1, c), c)
}

var _ = sig.Def("linalg.cholesky", "a upper:bool=false", func(a *sig.Args) any {
	return Cholesky(a.Array(0), a.Bool(1), a.Ctx)
})

// Cholesky is for each matrix of a (its last two dimensions, symmetric and positive definite) the lower triangular
// L with L L^T = a, or with upper the upper triangular U with U^T U = a, of a's dtype, which must be float32 or
// float64. Only that triangle of a is read, and only there is a gradient. Matrices that are not square are an
// error; one that is not positive definite is an error when the result is computed, unless it is semi-definite up to
// rounding: then its factor has zeros on the diagonal. It is computed on the host.
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
	if f := kit.Unusable(c, op.Op().Name(), a); f != nil {
		return f
	}
	if !upper || a.NDim() < 2 {
		return op.One(c, tensor.None{}, a)
	}
	y := op.One(c, tensor.None{}, transposed(c, a))
	if y.Err() != nil {
		return y
	}
	return transposed(c, y)
}

var _ = sig.Def("linalg.cholesky_inv", "a upper:bool=false", func(a *sig.Args) any {
	return CholeskyInv(a.Array(0), a.Bool(1), a.Ctx)
})

// CholeskyInv is the inverse of the matrices whose lower triangular factors a are, or with upper the upper triangular
// ones, as [Cholesky] gives them: of L L^T, or of U^T U. It takes float32 and float64. Only that triangle is read.
// Matrices that are not square are an error; a zero on a diagonal is an error when the result is computed.
func CholeskyInv(a *tensor.Array, upper bool, ctx ...*tensor.Ctx) *tensor.Array {
	c := tensor.Call(ctx)
	inv := kit.FailedAs(c, "cholesky_inv", TriInv(a, upper, c))
	if inv.Err() != nil {
		return inv
	}
	if upper {
		return ops.Matmul(inv, transposed(c, inv), c)
	}
	return ops.Matmul(transposed(c, inv), inv, c)
}
