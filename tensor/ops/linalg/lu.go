package linalg

import (
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack/lapack64"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

// lu gives for each matrix the place that each of its rows has in L U, and L and U. luFactor gives them in one
// matrix, and the rows that were exchanged.
var (
	lu       = tensor.Declare[tensor.None]("lu")
	luFactor = tensor.Declare[tensor.None]("lu_factor")
)

func init() {
	lu.Define(tensor.Rules[tensor.None]{
		Shape: func(in []tensor.Spec, _ tensor.None, outs []tensor.Shape) ([]tensor.Shape, error) {
			m, n, err := matrix(in)
			if err != nil {
				return nil, err
			}
			k, s := min(m, n), in[0].Shape
			return append(outs, batchOf(s, m), batchOf(s, m, k), batchOf(s, k, n)), nil
		},
		DType: func(in []tensor.Spec, _ tensor.None, outs []tensor.DType) ([]tensor.DType, error) {
			return real64[tensor.None](2)(in, tensor.None{}, append(outs, tensor.Uint32))
		},
		Host: func(h *tensor.HostCall, _ tensor.None) error {
			return eachFactored(h, func(w *workspace, i, m, n int, a []float64, pivots []int) {
				k := min(m, n)
				place := w.integers(m)
				for at, row := range rowsOf(w, pivots, m) {
					place[row] = at
				}
				l, u := w.reals(m*k), w.reals(k*n)
				for r := range m {
					copy(l[r*k:], a[r*n:r*n+min(r, k)])
					if r < k {
						l[r*k+r] = 1
						copy(u[r*n+r:(r+1)*n], a[r*n+r:(r+1)*n])
					}
				}
				storeInts(h.Out[0], i, place)
				store(h.Out[1], i, l)
				store(h.Out[2], i, u)
			})
		},
		VJP: func(g *tensor.VJP[tensor.None]) []*tensor.Array {
			c, l, u := g.Ctx, g.Out[1], g.Out[2]
			if g.Cot[1] == nil && g.Cot[2] == nil {
				return []*tensor.Array{nil}
			}
			return []*tensor.Array{luGradient(c, g.Out[0], l, u, orZeros(c, g.Cot[1], l), orZeros(c, g.Cot[2], u))}
		},
		VMap: ops.BatchFirst(lu),
	})
	luFactor.Define(tensor.Rules[tensor.None]{
		Shape: func(in []tensor.Spec, _ tensor.None, outs []tensor.Shape) ([]tensor.Shape, error) {
			m, n, err := matrix(in)
			if err != nil {
				return nil, err
			}
			return append(outs, in[0].Shape, batchOf(in[0].Shape, min(m, n))), nil
		},
		DType: func(in []tensor.Spec, _ tensor.None, outs []tensor.DType) ([]tensor.DType, error) {
			outs, err := real64[tensor.None](1)(in, tensor.None{}, outs)
			return append(outs, tensor.Uint32), err
		},
		Host: func(h *tensor.HostCall, _ tensor.None) error {
			return eachFactored(h, func(_ *workspace, i, _, _ int, a []float64, pivots []int) {
				store(h.Out[0], i, a)
				storeInts(h.Out[1], i, pivots)
			})
		},
		VJP: func(g *tensor.VJP[tensor.None]) []*tensor.Array {
			c, both := g.Ctx, g.Cot[0]
			if both == nil {
				return []*tensor.Array{nil}
			}
			f := lu.Call(c, tensor.None{}, g.In[0])
			l, u := f[1], f[2]
			gl := ops.Matmul(ops.Tril(both, -1, c), leading(c, u, -1, u, -2), c)
			gu := ops.Matmul(leading(c, u, -2, l, -2), ops.Triu(both, 0, c), c)
			return []*tensor.Array{luGradient(c, f[0], l, u, gl, gu)}
		},
		VMap: ops.BatchFirst(luFactor),
	})
}

// eachFactored factors each matrix of input 0, of m rows and n columns, and calls f with what Getrf makes of it.
func eachFactored(h *tensor.HostCall, f func(w *workspace, i, m, n int, a []float64, pivots []int)) error {
	s := h.In[0].Shape
	m, n := s[len(s)-2], s[len(s)-1]
	cost := float64(m) * float64(n) * float64(min(m, n)) / 3
	return overBatch(h, batchOf(s).Size(), cost, func(w *workspace, i int) error {
		a := w.load(h.In[0], i, m*n)
		_, pivots := factor(w, a, m, n)
		f(w, i, m, n, a, pivots)
		return nil
	})
}

// factor makes L and U of a, and the row that each row was exchanged with. It reports whether no pivot is zero.
func factor(w *workspace, a []float64, m, n int) (regular bool, pivots []int) {
	pivots = w.integers(min(m, n))
	if len(pivots) == 0 {
		return true, pivots
	}
	return lapack64.Getrf(blas64.General{Rows: m, Cols: n, Stride: n, Data: a}, pivots), pivots
}

// rowsOf are the m rows in the order that exchanges bring them into.
func rowsOf(w *workspace, pivots []int, m int) []int {
	rows := w.integers(m)
	for i := range rows {
		rows[i] = i
	}
	for i, p := range pivots {
		rows[i], rows[p] = rows[p], rows[i]
	}
	return rows
}

// luGradient is the gradient of a = (L U)[place]. Beside the square parts L1 and U1 stand L2, the rows of L below,
// and U2, the columns of U behind: one of them at most has any.
func luGradient(c *tensor.Ctx, place, l, u, gl, gu *tensor.Array) *tensor.Array {
	up, left := leading(c, u, -2, l, -2), leading(c, u, -1, u, -2) // take k rows, and k columns
	down, right := transposed(c, up), transposed(c, left)          // put them back
	mul := func(a ...*tensor.Array) *tensor.Array { return product(c, a...) }
	t := func(a *tensor.Array) *tensor.Array { return transposed(c, a) }
	l1, u1, gl1, gu1 := mul(up, l), mul(u, left), mul(up, gl), mul(gu, left)
	l2, gl2 := ops.Subtract(l, mul(down, l1), c), ops.Subtract(gl, mul(down, gl1), c)
	u2, gu2 := ops.Subtract(u, mul(u1, right), c), ops.Subtract(gu, mul(gu1, right), c)
	below := ops.Tril(ops.Subtract(mul(t(l1), gl1), mul(gu2, t(u2)), c), -1, c)
	above := ops.Triu(ops.Subtract(mul(gu1, t(u1)), mul(t(l2), gl2), c), 0, c)
	byL := func(x *tensor.Array) *tensor.Array {
		return solveTriangular.One(c, solveAttrs{upperTriangle}, t(l1), x)
	} // L1^-T x
	byU := func(x *tensor.Array) *tensor.Array {
		return t(solveTriangular.One(c, solveAttrs{upperTriangle}, u1, t(x)))
	} // x U1^-T
	sum := mul(down, byU(byL(ops.Add(below, above, c))), right)
	sum = ops.Add(sum, mul(down, byL(gu2)), c)
	sum = ops.Add(sum, mul(byU(gl2), right), c)
	rows := -2
	place = ops.StopGradient(ops.ExpandDims(place, []int{-1}, c), c)
	return ops.TakeAlongAxis(sum, place, &rows, c)
}

var _ = sig.Def("linalg.lu", "a", func(a *sig.Args) any { return LU(a.Array(0), a.Ctx) })

// LU factors matrices by Gaussian elimination with exchanged rows, and returns three arrays: P, L and U. L is lower
// triangular with ones on its diagonal, U upper triangular, and P, uint32, the place of each row of a in L U: row i
// of a is row P[i] of L U. Of m x n matrices, L is m x k and U is k x n, where k is the smaller of m and n. It takes
// float32 and float64; a singular matrix has factors, too. It is computed on the host.
func LU(a *tensor.Array, ctx ...*tensor.Ctx) []*tensor.Array {
	return asMatrices(tensor.Call(ctx), lu, tensor.None{}, a)
}

var _ = sig.Def("linalg.lu_factor", "a", func(a *sig.Args) any { return LUFactor(a.Array(0), a.Ctx) })

// LUFactor is the factors that [LU] gives in one matrix, U with L below its diagonal, and the exchanges as uint32:
// row i was exchanged with row pivots[i], counted from 0, one after the other. It takes float32 and float64.
func LUFactor(a *tensor.Array, ctx ...*tensor.Ctx) []*tensor.Array {
	return asMatrices(tensor.Call(ctx), luFactor, tensor.None{}, a)
}
