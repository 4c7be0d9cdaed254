package linalg

import (
	"math"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

// cofactors is the gradient of det: det(a) a^-T, which singular matrices have, too.
var (
	det       = tensor.Declare[tensor.None]("det")
	slogdet   = tensor.Declare[tensor.None]("slogdet")
	cofactors = tensor.Declare[tensor.None]("cofactors")
)

func init() {
	det.Define(tensor.Rules[tensor.None]{
		Shape: func(in []tensor.Spec, _ tensor.None, outs []tensor.Shape) ([]tensor.Shape, error) {
			_, err := squareMatrix(in)
			if err != nil {
				return nil, err
			}
			return append(outs, batchOf(in[0].Shape)), nil
		},
		DType: real64[tensor.None](1),
		Host: func(h *tensor.HostCall, _ tensor.None) error {
			return eachDeterminant(h, func(i int, sign, log float64, diagonal []float64) {
				d := sign
				for _, v := range diagonal {
					d *= math.Abs(v)
				}
				store(h.Out[0], i, []float64{d})
			})
		},
		Gradient: func(g *tensor.VJP[tensor.None]) *tensor.Array {
			cof := cofactors.One(g.Ctx, tensor.None{}, g.In[0])
			return ops.Multiply(ops.ExpandDims(g.Cot[0], []int{-2, -1}, g.Ctx), cof, g.Ctx)
		},
		VMap: ops.BatchFirst(det),
	})
	slogdet.Define(tensor.Rules[tensor.None]{
		Shape: func(in []tensor.Spec, _ tensor.None, outs []tensor.Shape) ([]tensor.Shape, error) {
			if _, err := squareMatrix(in); err != nil {
				return nil, err
			}
			return append(outs, batchOf(in[0].Shape), batchOf(in[0].Shape)), nil
		},
		DType: real64[tensor.None](2),
		Host: func(h *tensor.HostCall, _ tensor.None) error {
			return eachDeterminant(h, func(i int, sign, log float64, _ []float64) {
				store(h.Out[0], i, []float64{sign})
				store(h.Out[1], i, []float64{log})
			})
		},
		VJP: func(g *tensor.VJP[tensor.None]) []*tensor.Array {
			if g.Cot[1] == nil { // the sign is constant
				return []*tensor.Array{nil}
			}
			t := transposed(g.Ctx, inv.One(g.Ctx, invAttrs{OrNaN: true}, g.In[0]))
			return []*tensor.Array{ops.Multiply(ops.ExpandDims(g.Cot[1], []int{-2, -1}, g.Ctx), t, g.Ctx)}
		},
		VMap: ops.BatchFirst(slogdet),
	})
	cofactors.Define(tensor.Rules[tensor.None]{
		Shape: square[tensor.None],
		DType: real64[tensor.None](1),
		Host: func(h *tensor.HostCall, _ tensor.None) error {
			return eachSquare(h, func(w *workspace, _, n int, a []float64) error { return cofactor(w, a, n) })
		},
		Gradient: func(g *tensor.VJP[tensor.None]) *tensor.Array {
			// Of C = det(a) B^T with B = a^-1: <G, B^T> C - det(a) B^T G^T B^T.
			c, a := g.Ctx, g.In[0]
			t := transposed(c, inv.One(c, invAttrs{OrNaN: true}, a))
			d := ops.ExpandDims(det.One(c, tensor.None{}, a), []int{-2, -1}, c)
			along := ops.Sum(ops.Multiply(g.Cot[0], t, c), []int{-2, -1}, true, c)
			return ops.Subtract(ops.Multiply(along, g.Out[0], c),
				ops.Multiply(d, product(c, t, transposed(c, g.Cot[0]), t), c), c)
		},
		VMap: ops.BatchFirst(cofactors),
	})
}

// eachDeterminant calls f with the sign and the logarithm of the absolute value of each matrix's determinant, and
// with the pivots whose product that value is.
func eachDeterminant(h *tensor.HostCall, f func(i int, sign, log float64, diagonal []float64)) error {
	s := h.In[0].Shape
	n := s[len(s)-1]
	return overBatch(h, batchOf(s).Size(), cube(n)/3, func(w *workspace, i int) error {
		sign, log, diagonal := determinant(w, w.load(h.In[0], i, n*n), n)
		f(i, sign, log, diagonal)
		return nil
	})
}

// determinant returns the sign and the logarithm of the absolute value of the determinant of a, which it overwrites,
// and the pivots.
func determinant(w *workspace, a []float64, n int) (sign, log float64, diagonal []float64) {
	_, pivots := factor(w, a, n, n)
	sign, diagonal = 1, w.reals(n)
	for i, p := range pivots {
		v := a[i*n+i]
		diagonal[i] = v
		switch {
		case math.IsNaN(v):
			sign = v
		case v == 0:
			sign = 0 * sign
		case (v < 0) != (p != i):
			sign = -sign
		}
		log += math.Log(math.Abs(v))
	}
	if sign == 0 {
		sign, log = 0, math.Inf(-1)
	}
	return sign, log, diagonal
}

// nearlySingular is how small a pivot beside the greatest may be for the inverse to give cofactors.
const nearlySingular = 1e-6

// cofactor makes the cofactors of a in its place: det(a) a^-T, or by the singular values of a matrix that is nearly
// singular.
func cofactor(w *workspace, a []float64, n int) error {
	lu := w.reals(n * n)
	copy(lu, a)
	sign, _, diagonal := determinant(w, lu, n)
	least, greatest, d := math.Inf(1), 0.0, sign
	for _, v := range diagonal {
		least, greatest, d = min(least, math.Abs(v)), max(greatest, math.Abs(v)), d*math.Abs(v)
	}
	if math.IsNaN(sign) || math.IsInf(greatest, 0) {
		for i := range a {
			a[i] = math.NaN()
		}
		return nil
	}
	if least > nearlySingular*greatest {
		x := w.reals(n * n)
		copy(lu, a)
		if inverse(w, lu, n) {
			for i := range n {
				for j := range n {
					x[i*n+j] = d * lu[j*n+i]
				}
			}
			copy(a, x)
			return nil
		}
	}
	u, s, vt, err := svdReal(w, a, n, n, true, false)
	if err != nil {
		return err
	}
	signs := w.reals(n * n)
	copy(signs, u)
	ofU, _, _ := determinant(w, signs, n)
	copy(signs, vt)
	ofV, _, _ := determinant(w, signs, n)
	for k := range n {
		others := ofU * ofV
		for j, v := range s {
			if j != k {
				others *= v
			}
		}
		for i := range n {
			u[i*n+k] *= others
		}
	}
	clear(a)
	for i := range n {
		for k := range n {
			for j := range n {
				a[i*n+j] += u[i*n+k] * vt[k*n+j]
			}
		}
	}
	return nil
}

var _ = sig.Def("linalg.det", "a", func(a *sig.Args) any { return Det(a.Array(0), a.Ctx) })

// Det is the determinants of the matrices of a. Integers and bool give float32, other dtypes their own; complex64 and
// matrices that are not square are errors. The determinant of a matrix without elements is 1. The gradient of a
// singular matrix is right, too. It is computed on the host.
func Det(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return determinants(tensor.Call(ctx), det, a)[0]
}

var _ = sig.Def("linalg.slogdet", "a", func(a *sig.Args) any { return SLogDet(a.Array(0), a.Ctx) })

// SLogDet is two arrays: the sign of the determinants of a's matrices, and the logarithm of their absolute values,
// which neither overflows nor underflows as that of [Det] may. A singular matrix has the sign 0 and the logarithm
// -inf, and no gradient but NaN. Integers and bool give float32, other dtypes their own; complex64 and matrices that
// are not square are errors. It is computed on the host.
func SLogDet(a *tensor.Array, ctx ...*tensor.Ctx) []*tensor.Array {
	return determinants(tensor.Call(ctx), slogdet, a)
}

func determinants(c *tensor.Ctx, op *tensor.OpOf[tensor.None], a *tensor.Array) []*tensor.Array {
	if f := kit.Unusable(c, op.Op().Name(), a); f != nil {
		return []*tensor.Array{f}
	}
	d := a.DType().Inexact()
	wide := d
	if d == tensor.Float16 || d == tensor.BFloat16 {
		wide = tensor.Float32
	}
	out := op.Call(c, tensor.None{}, ops.AsType(a, wide, c))
	for i, x := range out {
		if x.Err() == nil {
			out[i] = ops.AsType(x, d, c)
		}
	}
	return out
}
