package linalg

import (
	"fmt"
	"math/cmplx"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack"
	"gonum.org/v1/gonum/lapack/lapack64"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

// eighAttrs say which triangle of the matrices is read, and whether a call gives vectors beside the eigenvalues.
type eighAttrs struct{ Upper, Vectors bool }

var eigh = tensor.Declare[eighAttrs]("eigh")

func init() {
	eigh.Define(tensor.Rules[eighAttrs]{
		Shape: func(in []tensor.Spec, a eighAttrs, outs []tensor.Shape) ([]tensor.Shape, error) {
			return eigenShapes(in, a.Vectors, outs)
		},
		DType: func(in []tensor.Spec, a eighAttrs, outs []tensor.DType) ([]tensor.DType, error) {
			d, abs, err := real64OrComplex(in)
			outs = append(outs, abs)
			if a.Vectors {
				outs = append(outs, d)
			}
			return outs, err
		},
		Host: eighHost,
		VJP: func(g *tensor.VJP[eighAttrs]) []*tensor.Array {
			c := g.Ctx
			if !g.Attrs.Vectors {
				f := eigh.Call(c, eighAttrs{g.Attrs.Upper, true}, g.In[0])
				return []*tensor.Array{eighGradient(c, g.Attrs.Upper, f, g.Cot[0], nil)}
			}
			return []*tensor.Array{eighGradient(c, g.Attrs.Upper, g.Out, g.Cot[0], g.Cot[1])}
		},
		VMap: ops.BatchFirst(eigh),
	})
}

func eighHost(h *tensor.HostCall, attrs eighAttrs) error {
	x := h.In[0]
	n := x.Shape[len(x.Shape)-1]
	if n == 0 {
		return nil
	}
	cost := cube(n)
	if attrs.Vectors {
		cost = 4 * cube(n)
	}
	return overBatch(h, batchOf(x.Shape).Size(), cost, func(w *workspace, i int) error {
		if x.DType.IsComplex() {
			return eighComplexAt(h, attrs, w, i, n)
		}
		a := w.load(x, i, n*n)
		uplo := blas.Lower
		if attrs.Upper {
			uplo = blas.Upper
		}
		if !finiteTriangle(a, n, attrs.Upper) {
			return notFinite(x, i)
		}
		job := lapack.EVNone
		if attrs.Vectors {
			job = lapack.EVCompute
		}
		values, work := w.reals(n), w.reals(34*n)
		if !lapack64.Syev(job, blas64.Symmetric{Uplo: uplo, N: n, Stride: n, Data: a}, values, work, len(work)) {
			return fmt.Errorf("%s: %w", nameOf(x, i), errNotConverged)
		}
		store(h.Out[0], i, values)
		if attrs.Vectors {
			store(h.Out[1], i, a)
		}
		return nil
	})
}

// finiteTriangle reports whether no element of a triangle is NaN or infinite.
func finiteTriangle(a []float64, n int, upper bool) bool {
	for i := range n {
		row := a[i*n : i*n+i+1]
		if upper {
			row = a[i*n+i : (i+1)*n]
		}
		for _, v := range row {
			if v-v != 0 {
				return false
			}
		}
	}
	return true
}

func eighComplexAt(h *tensor.HostCall, attrs eighAttrs, w *workspace, i, n int) error {
	a := w.complexes(n * n)
	loadComplex(a, h.In[0], i*n*n)
	for r := range n { // the other triangle mirrors the one that is read
		for k := range r {
			if attrs.Upper {
				a[r*n+k] = cmplx.Conj(a[k*n+r])
			} else {
				a[k*n+r] = cmplx.Conj(a[r*n+k])
			}
		}
		a[r*n+r] = complex(real(a[r*n+r]), 0)
	}
	for _, v := range a {
		if cmplx.IsNaN(v) || cmplx.IsInf(v) {
			return notFinite(h.In[0], i)
		}
	}
	values, vectors, ok := eighComplex(w, a, n)
	if !ok {
		return fmt.Errorf("%s: %w", nameOf(h.In[0], i), errNotConverged)
	}
	store(h.Out[0], i, values)
	if attrs.Vectors {
		storeComplex(h.Out[1], i, vectors)
	}
	return nil
}

// eighGradient is the gradient of a = V diag(w) V^H from those of w and V, of which one may be nil. Vectors of equal
// eigenvalues, which are arbitrary, do not turn into each other.
func eighGradient(c *tensor.Ctx, upper bool, f []*tensor.Array, gw, gv *tensor.Array) *tensor.Array {
	w, v := f[0], f[1]
	vh := adjoint(c, v)
	var sum *tensor.Array
	if gw != nil {
		sum = ops.Multiply(leading(c, v, -1, v, -1), ops.ExpandDims(gw, []int{-2}, c), c)
	}
	if gv != nil {
		gap := ops.Subtract(ops.ExpandDims(w, []int{-2}, c), ops.ExpandDims(w, []int{-1}, c), c)
		one, zero := ops.Number(1, gap.DType(), c), ops.Number(0, gap.DType(), c)
		none := ops.Equal(gap, zero, c)
		factor := ops.Where(none, zero, ops.Divide(one, ops.Where(none, one, gap, c), c), c)
		m := ops.Multiply(ops.Matmul(vh, gv, c), factor, c)
		half := ops.Number(0.5, gap.DType(), c)
		m = ops.Multiply(ops.Add(m, adjoint(c, m), c), half, c)
		sum = ops.AddTerm(c, sum, m)
	}
	return ofTriangle(c, product(c, v, sum, vh), upper)
}

var _ = sig.Def("linalg.eigh", "a UPLO:'L'|'U'=L", func(a *sig.Args) any {
	return EigH(a.Array(0), a.Text(1) == "U", a.Ctx)
})

// EigH is two arrays: the eigenvalues of symmetric or Hermitian matrices from the least to the greatest, and their
// orthonormal eigenvectors as columns: v[:, i] belongs to w[i]. UPLO says which triangle of a is read, the lower or
// the upper one, and only there is a gradient; the other one is taken to mirror it. It takes float32, float64 and
// complex64, whose eigenvalues are float32. The gradient through vectors is that of eigenvalues that differ; of a
// complex matrix it is right where the phases of the vectors, which are arbitrary, do not matter. NaN and infinities
// are an error when the result is computed. It is computed on the host.
func EigH(a *tensor.Array, upper bool, ctx ...*tensor.Ctx) []*tensor.Array {
	return asMatrices(tensor.Call(ctx), eigh, eighAttrs{upper, true}, a)
}

var _ = sig.Def("linalg.eigvalsh", "a UPLO:'L'|'U'=L", func(a *sig.Args) any {
	return EigValsH(a.Array(0), a.Text(1) == "U", a.Ctx)
})

// EigValsH is the eigenvalues that [EigH] gives, alone.
func EigValsH(a *tensor.Array, upper bool, ctx ...*tensor.Ctx) *tensor.Array {
	return asMatrices(tensor.Call(ctx), eigh, eighAttrs{upper, false}, a)[0]
}
