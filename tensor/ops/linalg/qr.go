package linalg

import (
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack/lapack64"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

var qr = tensor.Declare[tensor.None]("qr")

func init() {
	qr.Define(tensor.Rules[tensor.None]{
		Shape: func(in []tensor.Spec, _ tensor.None, outs []tensor.Shape) ([]tensor.Shape, error) {
			m, n, err := matrix(in)
			if err != nil {
				return nil, err
			}
			k, s := min(m, n), in[0].Shape
			return append(outs, batchOf(s, m, k), batchOf(s, k, n)), nil
		},
		DType: real64[tensor.None](2),
		Host: func(h *tensor.HostCall, _ tensor.None) error {
			s := h.In[0].Shape
			m, n := s[len(s)-2], s[len(s)-1]
			k := min(m, n)
			if k == 0 {
				return nil
			}
			return overBatch(h, batchOf(s).Size(), 2*float64(m)*float64(n)*float64(k), func(w *workspace, i int) error {
				a := w.load(h.In[0], i, m*n)
				tau, work := w.reals(k), w.reals(32*max(m, n))
				lapack64.Geqrf(blas64.General{Rows: m, Cols: n, Stride: n, Data: a}, tau, work, len(work))
				q, r := w.reals(m*k), w.reals(k*n)
				for row := range m {
					copy(q[row*k:(row+1)*k], a[row*n:])
					if row < k {
						copy(r[row*n+row:(row+1)*n], a[row*n+row:])
					}
				}
				lapack64.Orgqr(blas64.General{Rows: m, Cols: k, Stride: k, Data: q}, tau, work, len(work))
				store(h.Out[0], i, q)
				store(h.Out[1], i, r)
				return nil
			})
		},
		VJP: func(g *tensor.VJP[tensor.None]) []*tensor.Array {
			c, q, r := g.Ctx, g.Out[0], g.Out[1]
			return []*tensor.Array{qrGradient(c, g.In[0], q, r, orZeros(c, g.Cot[0], q), orZeros(c, g.Cot[1], r))}
		},
		VMap: ops.BatchFirst(qr),
	})
}

// qrGradient is the gradient of a = Q R. The first columns of a make Q and the square part of R; the columns behind,
// if there are any, are Q times the rest of R.
func qrGradient(c *tensor.Ctx, a, q, r, gq, gr *tensor.Array) *tensor.Array {
	t := func(a *tensor.Array) *tensor.Array { return transposed(c, a) }
	mul := func(a ...*tensor.Array) *tensor.Array { return product(c, a...) }
	left := leading(c, r, -1, r, -2) // takes as many columns as R has rows
	square, gSquare := mul(r, left), mul(gr, left)
	gRest := ops.Subtract(gr, mul(gSquare, t(left)), c)
	gq = ops.Add(gq, mul(a, t(gRest)), c) // the rest of R is Q^T times the columns behind
	m := ops.Subtract(mul(square, t(gSquare)), mul(t(gq), q), c)
	symmetric := ops.Add(ops.Tril(m, 0, c), t(ops.Tril(m, -1, c)), c)
	// (G + Q M) R^-T
	right := ops.Add(gq, mul(q, symmetric), c)
	first := t(solveTriangular.One(c, solveAttrs{upperTriangle}, square, t(right)))
	return ops.Add(mul(first, t(left)), mul(q, gRest), c)
}

var _ = sig.Def("linalg.qr", "a", func(a *sig.Args) any { return QR(a.Array(0), a.Ctx) })

// QR factors matrices into two arrays: Q, whose columns are orthonormal, and R, upper triangular, with Q R = a. Of m
// x n matrices, Q is m x k and R is k x n, where k is the smaller of m and n. It takes float32 and float64. The
// gradient is that of matrices whose first k columns are independent. It is computed on the host.
func QR(a *tensor.Array, ctx ...*tensor.Ctx) []*tensor.Array {
	return asMatrices(tensor.Call(ctx), qr, tensor.None{}, a)
}
