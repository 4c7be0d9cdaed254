package linalg

import (
	"errors"
	"fmt"

	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack"
	"gonum.org/v1/gonum/lapack/lapack64"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

// svdAttrs say whether a call gives U and Vt beside the singular values.
type svdAttrs struct{ Vectors bool }

var (
	svd = tensor.Declare[svdAttrs]("svd")
	// pinv is the pseudo-inverse.
	pinv = tensor.Declare[tensor.None]("pinv")
)

var errNotConverged = errors.New("the iteration did not converge")

func init() {
	svd.Define(tensor.Rules[svdAttrs]{
		Shape: func(in []tensor.Spec, a svdAttrs, outs []tensor.Shape) ([]tensor.Shape, error) {
			m, n, err := matrix(in)
			if err != nil {
				return nil, err
			}
			s := in[0].Shape
			if !a.Vectors {
				return append(outs, batchOf(s, min(m, n))), nil
			}
			return append(outs, batchOf(s, m, m), batchOf(s, min(m, n)), batchOf(s, n, n)), nil
		},
		DType: func(in []tensor.Spec, a svdAttrs, outs []tensor.DType) ([]tensor.DType, error) {
			d, abs, err := real64OrComplex(in)
			if !a.Vectors {
				return append(outs, abs), err
			}
			return append(outs, d, abs, d), err
		},
		Host: svdHost,
		VJP: func(g *tensor.VJP[svdAttrs]) []*tensor.Array {
			c := g.Ctx
			if !g.Attrs.Vectors {
				f := svd.Call(c, svdAttrs{Vectors: true}, g.In[0])
				return []*tensor.Array{svdGradient(c, f, []*tensor.Array{nil, g.Cot[0], nil})}
			}
			if g.In[0].DType().IsComplex() && (g.Cot[0] != nil || g.Cot[2] != nil) {
				return []*tensor.Array{tensor.Fail(c, "svd", "complex singular vectors have no gradient: "+
					"their phases are arbitrary; singular values have one")}
			}
			return []*tensor.Array{svdGradient(c, g.Out, g.Cot)}
		},
		VMap: ops.BatchFirst(svd),
	})
	pinv.Define(tensor.Rules[tensor.None]{
		Shape: func(in []tensor.Spec, _ tensor.None, outs []tensor.Shape) ([]tensor.Shape, error) {
			m, n, err := matrix(in)
			if err != nil {
				return nil, err
			}
			return append(outs, batchOf(in[0].Shape, n, m)), nil
		},
		DType: real64[tensor.None](1),
		Host: func(h *tensor.HostCall, _ tensor.None) error {
			s := h.In[0].Shape
			m, n := s[len(s)-2], s[len(s)-1]
			if m == 0 || n == 0 {
				return nil
			}
			return overBatch(h, batchOf(s).Size(), svdCost(m, n), func(w *workspace, i int) error {
				a, err := w.finite(h.In[0], i, m*n)
				if err != nil {
					return err
				}
				x, err := pseudoInverse(w, a, m, n, h.In[0].DType)
				if err != nil {
					return fmt.Errorf("%s: %w", nameOf(h.In[0], i), err)
				}
				store(h.Out[0], i, x)
				return nil
			})
		},
		Gradient: func(g *tensor.VJP[tensor.None]) *tensor.Array {
			// Golub and Pereyra: dP = -P dA P + P P^T dA^T (1 - A P) + (1 - P A) dA^T P^T P.
			c, a, p := g.Ctx, g.In[0], g.Out[0]
			pt, gt := transposed(c, p), transposed(c, g.Cot[0])
			mul := func(a ...*tensor.Array) *tensor.Array { return product(c, a...) }
			minus := func(x, y *tensor.Array) *tensor.Array { return ops.Subtract(x, y, c) }
			left, right := mul(gt, p, pt), mul(pt, p, gt)
			sum := ops.Negative(mul(pt, g.Cot[0], pt), c)
			sum = ops.Add(sum, minus(left, mul(a, mul(p, left))), c)
			return ops.Add(sum, minus(right, mul(mul(right, p), a)), c)
		},
		VMap: ops.BatchFirst(pinv),
	})
}

// svdCost is what the decomposition of an m x n matrix costs.
func svdCost(m, n int) float64 {
	k := float64(min(m, n))
	return 8 * float64(m) * float64(n) * k
}

func svdHost(h *tensor.HostCall, attrs svdAttrs) error {
	x := h.In[0]
	m, n := x.Shape[len(x.Shape)-2], x.Shape[len(x.Shape)-1]
	values := h.Out[0]
	if attrs.Vectors {
		values = h.Out[1]
	}
	cost := svdCost(m, n)
	if !attrs.Vectors {
		cost /= 6
	}
	return overBatch(h, batchOf(x.Shape).Size(), cost, func(w *workspace, i int) error {
		if x.DType.IsComplex() {
			a, err := w.finiteComplex(x, i, m*n)
			if err != nil {
				return err
			}
			u, s, vt, err := svdComplex(w, a, m, n, attrs.Vectors)
			if err != nil {
				return fmt.Errorf("%s: %w", nameOf(x, i), err)
			}
			store(values, i, s)
			if attrs.Vectors {
				storeComplex(h.Out[0], i, u)
				storeComplex(h.Out[2], i, vt)
			}
			return nil
		}
		a, err := w.finite(x, i, m*n)
		if err != nil {
			return err
		}
		u, s, vt, err := svdReal(w, a, m, n, attrs.Vectors, true)
		if err != nil {
			return fmt.Errorf("%s: %w", nameOf(x, i), err)
		}
		store(values, i, s)
		if attrs.Vectors {
			store(h.Out[0], i, u)
			store(h.Out[2], i, vt)
		}
		return nil
	})
}

// svdReal decomposes a, which it overwrites. With full, u and vt are square; otherwise they have min(m, n) columns
// and rows.
func svdReal(w *workspace, a []float64, m, n int, vectors, full bool) (u, s, vt []float64, err error) {
	k := min(m, n)
	s = w.reals(k)
	job, uc, vr := lapack.SVDNone, 0, 0
	switch {
	case vectors && full:
		job, uc, vr = lapack.SVDAll, m, n
	case vectors:
		job, uc, vr = lapack.SVDStore, k, k
	}
	u, vt = w.reals(m*uc), w.reals(vr*n)
	if k == 0 {
		for i := range min(m, uc) {
			u[i*uc+i] = 1
		}
		for i := range min(n, vr) {
			vt[i*n+i] = 1
		}
		return u, s, vt, nil
	}
	of := blas64.General{Rows: m, Cols: n, Stride: n, Data: a}
	ofU := blas64.General{Rows: m, Cols: uc, Stride: max(uc, 1), Data: u}
	ofV := blas64.General{Rows: vr, Cols: n, Stride: n, Data: vt}
	var size [1]float64
	lapack64.Gesvd(job, job, of, ofU, ofV, s, size[:], -1)
	work := w.reals(int(size[0]))
	if !lapack64.Gesvd(job, job, of, ofU, ofV, s, work, len(work)) {
		return nil, nil, nil, errNotConverged
	}
	return u, s, vt, nil
}

// pseudoInverse is V S^-1 U^T. As in MLX, singular values that are small beside the greatest count as zero.
func pseudoInverse(w *workspace, a []float64, m, n int, d tensor.DType) ([]float64, error) {
	u, s, vt, err := svdReal(w, a, m, n, true, false)
	if err != nil {
		return nil, err
	}
	k, least := min(m, n), 10*float64(max(m, n))*epsOf(d)*s[0]
	x := w.reals(n * m)
	for r := range k {
		if s[r] <= least {
			continue
		}
		for i := range n {
			v := vt[r*n+i] / s[r]
			for j := range m {
				x[i*m+j] += v * u[j*k+r]
			}
		}
	}
	return x, nil
}

// svdGradient is the gradient of a = U S Vt from those of the three, of which some may be nil. The vectors beyond the
// singular values are those of zeros: they turn with the others.
func svdGradient(c *tensor.Ctx, f, cot []*tensor.Array) *tensor.Array {
	s := f[1]
	k := ops.Iota(c, tensor.DimOf(s, -1))
	first := func(x *tensor.Array, axis int) *tensor.Array { return ops.Take(x, k, &axis, c) }
	mul := func(a ...*tensor.Array) *tensor.Array { return product(c, a...) }
	u, vt := first(f[0], -1), first(f[2], -2)
	ut, v := adjoint(c, u), adjoint(c, vt)
	rows := func(x *tensor.Array) *tensor.Array { return ops.ExpandDims(x, []int{-1}, c) } // one factor for each row
	columns := func(x *tensor.Array) *tensor.Array { return ops.ExpandDims(x, []int{-2}, c) }
	var sum *tensor.Array // U^T of the gradient V
	if cot[1] != nil {
		eye := leading(c, v, -1, v, -1)
		sum = ops.Multiply(eye, columns(cot[1]), c)
	}
	if cot[0] == nil && cot[2] == nil {
		return mul(u, sum, vt)
	}
	// 1 / (s_j^2 - s_i^2), and nothing where they are equal.
	gap := ops.Multiply(ops.Subtract(columns(s), rows(s), c), ops.Add(columns(s), rows(s), c), c)
	none := ops.Equal(gap, ops.Number(0, gap.DType(), c), c)
	one, zero := ops.Number(1, gap.DType(), c), ops.Number(0, gap.DType(), c)
	factor := ops.Where(none, zero, ops.Divide(one, ops.Where(none, one, gap, c), c), c)
	antisymmetric := func(x *tensor.Array) *tensor.Array {
		return ops.Multiply(ops.Subtract(x, transposed(c, x), c), factor, c)
	}
	var outside *tensor.Array // what lies outside of the spaces of U and V
	if g := cot[0]; g != nil {
		// The vectors beyond: dU2 = -U1 dU1^T U2.
		g = ops.Subtract(first(g, -1), beyond(c, f[0], g, u, k), c)
		m := mul(ut, g)
		sum = ops.AddTerm(c, sum, ops.Multiply(antisymmetric(m), columns(s), c))
		off := ops.Divide(ops.Subtract(g, mul(u, m), c), columns(s), c)
		outside = mul(off, vt)
	}
	if g := cot[2]; g != nil {
		gv := transposed(c, g)
		gv = ops.Subtract(first(gv, -1), beyond(c, transposed(c, f[2]), gv, v, k), c)
		m := mul(vt, gv)
		sum = ops.AddTerm(c, sum, ops.Multiply(rows(s), antisymmetric(m), c))
		off := ops.Divide(ops.Subtract(gv, mul(v, m), c), columns(s), c)
		outside = ops.AddTerm(c, outside, mul(u, transposed(c, off)))
	}
	return ops.Add(mul(u, sum, vt), outside, c)
}

// beyond is U2 G2^T U1 of all = [U1 U2] and its cotangent g: the share of the first vectors in that of the others.
func beyond(c *tensor.Ctx, all, g, u, k *tensor.Array) *tensor.Array {
	last := -1
	whole := ops.Matmul(all, ops.Matmul(transposed(c, g), u, c), c)
	firsts := ops.Matmul(u, ops.Matmul(transposed(c, ops.Take(g, k, &last, c)), u, c), c)
	return ops.Subtract(whole, firsts, c)
}

var _ = sig.Def("linalg.svd", "a compute_uv:bool=true", func(a *sig.Args) any {
	if !a.Bool(1) {
		return SingularValues(a.Array(0), a.Ctx)
	}
	return SVD(a.Array(0), a.Ctx)
})

// SVD is the singular value decomposition of the matrices of a, three arrays: U and Vt, square and orthogonal, and S,
// the singular values from the greatest to the least, with U[:, :k] diag(S) Vt[:k] = a where S has k elements.
// Without compute_uv it is S alone. It takes float32, float64 and complex64, whose S is float32. Gradients flow where
// singular values differ; those of a complex matrix have one, its vectors have none. NaN and infinities are an error
// when the result is computed. It is computed on the host.
func SVD(a *tensor.Array, ctx ...*tensor.Ctx) []*tensor.Array {
	return asMatrices(tensor.Call(ctx), svd, svdAttrs{Vectors: true}, a)
}

// SingularValues is S of [SVD].
//
//sig:none linalg.svd without compute_uv
func SingularValues(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return asMatrices(tensor.Call(ctx), svd, svdAttrs{}, a)[0]
}

var _ = sig.Def("linalg.pinv", "a", func(a *sig.Args) any { return PInv(a.Array(0), a.Ctx) })

// PInv is the pseudo-inverses of Moore and Penrose of the matrices of a, of its dtype, which must be float32 or
// float64. As in MLX, singular values up to 10 max(m, n) eps times the greatest count as zero, for m x n matrices and
// the dtype's eps. NaN and infinities are an error when the result is computed. It is computed on the host.
func PInv(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	c := tensor.Call(ctx)
	if f := kit.Unusable(c, "pinv", a); f != nil {
		return f
	}
	return pinv.One(c, tensor.None{}, a)
}
