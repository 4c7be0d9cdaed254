package linalg

import (
	"fmt"
	"math"
	"math/cmplx"

	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack/lapack64"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

// invAttrs say what becomes of a singular matrix: an error, or with OrNaN a matrix of NaN, which leaves the rest of
// its batch alone.
type invAttrs struct{ OrNaN bool }

var inv = tensor.Declare[invAttrs]("inv")

func init() {
	inv.Define(tensor.Rules[invAttrs]{
		Shape: square[invAttrs],
		DType: func(in []tensor.Spec, _ invAttrs, outs []tensor.DType) ([]tensor.DType, error) {
			d, _, err := real64OrComplex(in)
			return append(outs, d), err
		},
		Host: func(h *tensor.HostCall, a invAttrs) error {
			if h.In[0].DType.IsComplex() {
				return invComplex(h, a)
			}
			return eachSquare(h, func(w *workspace, i, n int, m []float64) error {
				if inverse(w, m, n) {
					return nil
				}
				if !a.OrNaN {
					return fmt.Errorf("%s is singular", nameOf(h.In[0], i))
				}
				for k := range m {
					m[k] = math.NaN()
				}
				return nil
			})
		},
		Gradient: func(g *tensor.VJP[invAttrs]) *tensor.Array {
			t := adjoint(g.Ctx, g.Out[0])
			return ops.Negative(product(g.Ctx, t, g.Cot[0], t), g.Ctx)
		},
		Tangent: func(g *tensor.JVP[invAttrs]) *tensor.Array {
			return ops.Negative(product(g.Ctx, g.Out[0], g.Tan[0], g.Out[0]), g.Ctx)
		},
		VMap: ops.BatchFirst(inv),
	})
}

// inverse makes the inverse of a in its place, and reports whether there is one.
func inverse(w *workspace, a []float64, n int) bool {
	regular, pivots := factor(w, a, n, n)
	lu := blas64.General{Rows: n, Cols: n, Stride: n, Data: a}
	return regular && lapack64.Getri(lu, pivots, w.reals(32*n), 32*n)
}

// invComplex is the Host rule for complex64, which the gradient of eig needs.
func invComplex(h *tensor.HostCall, attrs invAttrs) error {
	s := h.In[0].Shape
	n := s[len(s)-1]
	return overBatch(h, batchOf(s).Size(), 4*cube(n), func(w *workspace, i int) error {
		a := w.complexes(n * n)
		loadComplex(a, h.In[0], i*n*n)
		x := w.complexes(n * n)
		if !gaussJordan(a, x, n) {
			if !attrs.OrNaN {
				return fmt.Errorf("%s is singular", nameOf(h.In[0], i))
			}
			for k := range x {
				x[k] = cmplx.NaN()
			}
		}
		storeComplex(h.Out[0], i, x)
		return nil
	})
}

// gaussJordan makes x, which is zero, the inverse of a, which it overwrites; it reports whether a has one.
func gaussJordan(a, x []complex128, n int) bool {
	for i := range n {
		x[i*n+i] = 1
	}
	for k := range n {
		best := k
		for i := k + 1; i < n; i++ {
			if cmplx.Abs(a[i*n+k]) > cmplx.Abs(a[best*n+k]) {
				best = i
			}
		}
		if a[best*n+k] == 0 {
			return false
		}
		for j := range n {
			a[k*n+j], a[best*n+j] = a[best*n+j], a[k*n+j]
			x[k*n+j], x[best*n+j] = x[best*n+j], x[k*n+j]
		}
		pivot := 1 / a[k*n+k]
		for j := range n {
			a[k*n+j] *= pivot
			x[k*n+j] *= pivot
		}
		for i := range n {
			f := a[i*n+k]
			if i == k || f == 0 {
				continue
			}
			for j := range n {
				a[i*n+j] -= f * a[k*n+j]
				x[i*n+j] -= f * x[k*n+j]
			}
		}
	}
	return true
}

var _ = sig.Def("linalg.inv", "a", func(a *sig.Args) any { return Inv(a.Array(0), a.Ctx) })

// Inv is the inverses of the matrices of a, of its dtype, which must be float32 or float64. Matrices that are not
// square are an error; a singular matrix is an error when the result is computed. To multiply by an inverse, use
// [Solve]. It is computed on the host.
func Inv(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	c := tensor.Call(ctx)
	if f := kit.Unusable(c, "inv", a); f != nil {
		return f
	}
	if a.DType().IsComplex() {
		return tensor.Fail(c, "inv", "does not take dtype %v, want float32 or float64", a.DType())
	}
	return inv.One(c, invAttrs{}, a)
}
