package linalg

import (
	"fmt"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack/lapack64"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

// part is what of a matrix is read.
type part uint8

const (
	wholeMatrix part = iota
	lowerTriangle
	upperTriangle
)

// transposed is the part of the transpose.
func (p part) transposed() part { return [...]part{wholeMatrix, upperTriangle, lowerTriangle}[p] }

type solveAttrs struct{ Part part }

// solve is x with a x = b, for batches of square matrices a and of matrices b that are broadcast against each other.
// solveTriangular is the same for triangles.
var (
	solve           = tensor.Declare[solveAttrs]("solve")
	solveTriangular = tensor.Declare[solveAttrs]("solve_triangular")
)

// solver is the op for a part.
func solver(p part) *tensor.OpOf[solveAttrs] {
	if p == wholeMatrix {
		return solve
	}
	return solveTriangular
}

func init() {
	rules := tensor.Rules[solveAttrs]{
		Shape: solveShape,
		DType: func(in []tensor.Spec, _ solveAttrs, outs []tensor.DType) ([]tensor.DType, error) {
			if _, err := kit.OneDTypeOf(nil, in...); err != nil {
				return nil, err
			}
			return real64[solveAttrs](1)(in, solveAttrs{}, outs)
		},
		Host: solveHost,
		VJP: func(g *tensor.VJP[solveAttrs]) []*tensor.Array {
			c, a, b := g.Ctx, g.In[0], g.In[1]
			back := solver(g.Attrs.Part).One(c, solveAttrs{g.Attrs.Part.transposed()}, transposed(c, a), g.Cot[0])
			grads := make([]*tensor.Array, 2)
			if g.Want[0] {
				of := triangleOf(c, ops.Matmul(back, transposed(c, g.Out[0]), c), g.Attrs.Part)
				grads[0] = ops.SumTo(ops.Negative(of, c), tensor.ShapeOf(a), c)
			}
			if g.Want[1] {
				grads[1] = ops.SumTo(back, tensor.ShapeOf(b), c)
			}
			return grads
		},
		JVP: func(g *tensor.JVP[solveAttrs]) []*tensor.Array {
			c, right := g.Ctx, g.Tan[1]
			if t := g.Tan[0]; t != nil {
				moved := ops.Negative(ops.Matmul(triangleOf(c, t, g.Attrs.Part), g.Out[0], c), c)
				right = ops.AddTerm(c, right, moved)
			}
			return []*tensor.Array{solver(g.Attrs.Part).One(c, g.Attrs, g.In[0], right)}
		},
		VMap: func(g *tensor.VMap[solveAttrs]) ([]*tensor.Array, []int) {
			rank := max(kit.ExampleRank(g, 0), kit.ExampleRank(g, 1))
			a, b := ops.FrontOf(g, 0, rank), ops.FrontOf(g, 1, rank)
			return []*tensor.Array{solver(g.Attrs.Part).One(g.Ctx, g.Attrs, a, b)}, []int{0}
		},
	}
	solve.Define(rules)
	solveTriangular.Define(rules)
}

// triangleOf is the part of x, with zeros beside it.
func triangleOf(c *tensor.Ctx, x *tensor.Array, p part) *tensor.Array {
	switch p {
	case lowerTriangle:
		return ops.Tril(x, 0, c)
	case upperTriangle:
		return ops.Triu(x, 0, c)
	}
	return x
}

func solveShape(in []tensor.Spec, _ solveAttrs, outs []tensor.Shape) ([]tensor.Shape, error) {
	n, err := squareMatrix(in)
	if err != nil {
		return nil, err
	}
	a, b := in[0].Shape, in[1].Shape
	if len(b) < 2 {
		return nil, fmt.Errorf("the right side has shape %v, want vectors or matrices", b)
	}
	if b[len(b)-2] != n {
		return nil, fmt.Errorf("a %v and b %v do not fit: b's columns have %d elements, want %d", a, b, b[len(b)-2], n)
	}
	batch, err := tensor.Broadcast(batchOf(a), batchOf(b))
	if err != nil {
		return nil, fmt.Errorf("the batches of a %v and b %v cannot be broadcast", a, b)
	}
	return append(outs, append(slices.Clip(batch.Clone()), n, b[len(b)-1])), nil
}

func solveHost(h *tensor.HostCall, attrs solveAttrs) error {
	a, b, out := h.In[0], h.In[1], h.Out[0]
	s := out.Shape
	n, k := s[len(s)-2], s[len(s)-1]
	batch := batchOf(s)
	ofA, ofB := places(batch, batchOf(a.Shape)), places(batch, batchOf(b.Shape))
	cost := float64(n) * float64(n) * float64(k) / 2
	if attrs.Part == wholeMatrix {
		cost = cube(n)/3 + 2*cost
	}
	if n == 0 || k == 0 {
		return nil
	}
	return overBatch(h, batch.Size(), cost, func(w *workspace, i int) error {
		x := w.load(b, ofB(i), n*k)
		right := blas64.General{Rows: n, Cols: k, Stride: k, Data: x}
		if attrs.Part == wholeMatrix {
			if err := w.factored(a, ofA(i), n); err != nil {
				return err
			}
			kept := blas64.General{Rows: n, Cols: n, Stride: n, Data: w.lu}
			lapack64.Getrs(blas.NoTrans, kept, right, w.pivots)
		} else {
			uplo := blas.Lower
			if attrs.Part == upperTriangle {
				uplo = blas.Upper
			}
			t := blas64.Triangular{Uplo: uplo, Diag: blas.NonUnit, N: n, Stride: n, Data: w.load(a, ofA(i), n*n)}
			if !lapack64.Trtrs(blas.NoTrans, t, right) {
				return fmt.Errorf("%s is singular: it has a zero on its diagonal", nameOf(a, ofA(i)))
			}
		}
		store(out, i, x)
		return nil
	})
}

// factored makes lu and pivots those of matrix i of a, which may be those of the matrix before.
func (w *workspace) factored(a tensor.HostOperand, i, n int) error {
	if w.lu != nil && w.luOf == i {
		return nil
	}
	if w.lu == nil {
		w.lu, w.pivots = make([]float64, n*n), make([]int, n)
	}
	load(w.lu, a, i*n*n)
	w.luOf = i
	if !lapack64.Getrf(blas64.General{Rows: n, Cols: n, Stride: n, Data: w.lu}, w.pivots) {
		w.lu = nil
		return fmt.Errorf("%s is singular", nameOf(a, i))
	}
	return nil
}

// places returns which matrix of a batch stands at place i of the batch that it is broadcast to.
func places(to, from tensor.Shape) func(i int) int {
	if slices.Equal(to, from) {
		return func(i int) int { return i }
	}
	lead, strides := len(to)-len(from), from.Strides()
	return func(i int) int {
		at := 0
		for d := len(to) - 1; d >= lead; d-- {
			if from[d-lead] > 1 {
				at += i % to[d] * strides[d-lead]
			}
			i /= to[d]
		}
		return at
	}
}

var _ = sig.Def("linalg.solve", "a b", func(a *sig.Args) any { return Solve(a.Array(0), a.Array(1), a.Ctx) })

// Solve is x with a x = b for square matrices a, which must be float32 or float64, by Gaussian elimination. b is a
// vector, if it has one dimension, or else matrices; it is converted to the common dtype of a and b, which must be
// float32 or float64. The batches of a and b are broadcast against each other. Sizes that do not fit are errors; a
// singular matrix is an error when the result is computed. It is computed on the host.
func Solve(a, b *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return solved(tensor.Call(ctx), "solve", wholeMatrix, a, b)
}

var _ = sig.Def("linalg.solve_triangular", "a b upper:bool=false", func(a *sig.Args) any {
	return SolveTriangular(a.Array(0), a.Array(1), a.Bool(2), a.Ctx)
})

// SolveTriangular is [Solve] for lower triangular matrices, or upper triangular ones: the other triangle is not read.
// A zero on a diagonal is an error when the result is computed.
func SolveTriangular(a, b *tensor.Array, upper bool, ctx ...*tensor.Ctx) *tensor.Array {
	p := lowerTriangle
	if upper {
		p = upperTriangle
	}
	return solved(tensor.Call(ctx), "solve_triangular", p, a, b)
}

func solved(c *tensor.Ctx, name string, p part, a, b *tensor.Array) *tensor.Array {
	if f := kit.Unusable(c, name, a, b); f != nil {
		return f
	}
	d := tensor.Promote(a.DType(), b.DType())
	if a := a.DType(); a != tensor.Float32 && a != tensor.Float64 || d != tensor.Float32 && d != tensor.Float64 {
		return tensor.Fail(c, name, "does not take dtypes %v and %v, want float32 or float64", a, b.DType())
	}
	a, b = ops.AsType(a, d, c), ops.AsType(b, d, c)
	vector := b.NDim() == 1
	if vector {
		b = ops.ExpandDims(b, []int{1}, c)
	}
	x := solver(p).One(c, solveAttrs{p}, a, b)
	if vector && x.Err() == nil {
		x = ops.Squeeze(x, []int{-1}, c)
	}
	return x
}
