package ops

import (
	"errors"
	"fmt"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

// diagonalAttrs are a diagonal's offset and its two axes, as the user wrote them.
type diagonalAttrs struct{ Offset, Axis1, Axis2 int }

// axes are the two axes counted from 0.
func (a diagonalAttrs) axes(rank int) (i, j int, err error) {
	if rank < 2 {
		return 0, 0, fmt.Errorf("an array with %s has no diagonal: it needs 2 or more", tensor.Count(rank, "dimension"))
	}
	i, err1 := tensor.Axis(a.Axis1, rank)
	j, err2 := tensor.Axis(a.Axis2, rank)
	if err = errors.Join(err1, err2); err == nil && i == j {
		err = fmt.Errorf("axis1 %d and axis2 %d are one axis", a.Axis1, a.Axis2)
	}
	return i, j, err
}

// first is the place of the diagonal's first element along both axes.
func (a diagonalAttrs) first() (row, col int) { return max(-a.Offset, 0), max(a.Offset, 0) }

// batched is the same diagonal in a batch whose batch axis is first; rank is an example's.
func (a diagonalAttrs) batched(rank int) diagonalAttrs {
	i, j, _ := a.axes(rank)
	return diagonalAttrs{a.Offset, i + 1, j + 1}
}

// shape is that of the diagonal of an array of shape s: its last dimension runs along the diagonal.
func (a diagonalAttrs) shape(s tensor.Shape) (tensor.Shape, error) {
	i, j, err := a.axes(len(s))
	if err != nil {
		return nil, err
	}
	row, col := a.first()
	out := make(tensor.Shape, 0, len(s))
	for k, n := range s {
		if k != i && k != j {
			out = append(out, n)
		}
	}
	return append(out, max(min(s[i]-row, s[j]-col), 0)), nil
}

// view makes v, which lies as an array with those strides does and has the diagonal's shape, its diagonal.
func (a diagonalAttrs) view(strides []int, v *tensor.Operand) {
	i, j, _ := a.axes(len(strides))
	last := len(v.Strides) - 1
	at := 0
	for k, st := range strides {
		if k != i && k != j {
			v.Strides[at] = st
			at++
		}
	}
	v.Strides[last] = strides[i] + strides[j]
	if v.Shape[last] > 0 {
		row, col := a.first()
		v.OffsetBytes += (int64(row)*int64(strides[i]) + int64(col)*int64(strides[j])) * int64(v.DType.Size())
	}
}

var (
	diagonal = tensor.Declare[diagonalAttrs]("diagonal")
	// diagonalUpdate is a copy of input 0 whose diagonal is input 1, broadcast.
	diagonalUpdate = tensor.Declare[diagonalAttrs]("diagonal_update")
	// diagonalMatrix puts the last dimension on a diagonal of square matrices that are zero elsewhere.
	diagonalMatrix = tensor.Declare[diagonalMatrixAttrs]("diag")
)

// diagonalMatrixAttrs are the diagonal's offset.
type diagonalMatrixAttrs struct{ Offset int }

func init() {
	partOps[diagonalAttrs]{see: diagonal, update: diagonalUpdate, fewer: 1,
		shape:   func(s tensor.Shape, a diagonalAttrs) (tensor.Shape, error) { return a.shape(s) },
		place:   func(_ tensor.Shape, strides []int, a diagonalAttrs, v *tensor.Operand) { a.view(strides, v) },
		batched: diagonalAttrs.batched,
	}.define()

	diagonalMatrix.Define(tensor.Rules[diagonalMatrixAttrs]{
		Shape: func(in []tensor.Spec, a diagonalMatrixAttrs, outs []tensor.Shape) ([]tensor.Shape, error) {
			s := in[0].Shape.Clone()
			if len(s) == 0 {
				return nil, errors.New("a scalar is no diagonal")
			}
			n := s[len(s)-1] + max(a.Offset, -a.Offset)
			s[len(s)-1] = n
			return append(outs, append(s, n)), nil
		},
		DType: kit.SameDType[diagonalMatrixAttrs],
		Run: func(r *tensor.Run, a diagonalMatrixAttrs) error {
			out := r.Out[0]
			if err := r.Fill(out, make([]byte, out.DType.Size())); err != nil || r.In[0].Shape.Size() == 0 {
				return err
			}
			to := out
			to.Shape, to.Strides = r.In[0].Shape, make([]int, len(r.In[0].Shape))
			a.diagonal().view(out.Strides, &to)
			return r.CopyTo(to, r.In[0])
		},
		Gradient: func(g *tensor.VJP[diagonalMatrixAttrs]) *tensor.Array {
			return diagonal.One(g.Ctx, g.Attrs.diagonal(), g.Cot[0])
		},
		Tangent: func(g *tensor.JVP[diagonalMatrixAttrs]) *tensor.Array {
			return diagonalMatrix.One(g.Ctx, g.Attrs, g.Tan[0])
		},
		VMap: BatchFirst(diagonalMatrix),
	})
}

// diagonal is the diagonal of the last two dimensions.
func (a diagonalMatrixAttrs) diagonal() diagonalAttrs { return diagonalAttrs{a.Offset, -2, -1} }

var _ = sig.Def("diagonal", "a offset:int=0 axis1:int=0 axis2:int=1", func(a *sig.Args) any {
	return Diagonal(a.Array(0), a.Int(1), a.Int(2), a.Int(3), a.Ctx)
})

// Diagonal is a view of the diagonals of the matrices along axis1 (rows) and axis2 (columns), which become the last
// dimension; the others keep their order. A positive offset counts the diagonals above the main one, a negative one
// those below; one beyond the matrix is empty. Axes that are one, or out of range, and an array of fewer than two
// dimensions are errors.
func Diagonal(a *tensor.Array, offset, axis1, axis2 int, ctx ...*tensor.Ctx) *tensor.Array {
	return diagonal.One(tensor.Call(ctx), diagonalAttrs{offset, axis1, axis2}, a)
}

var _ = sig.Def("diag", "a k:int=0", func(a *sig.Args) any { return Diag(a.Array(0), a.Int(1), a.Ctx) })

// Diag is the k-th diagonal of a matrix, a view; of a vector, the square matrix that has it as its k-th diagonal and
// zeros elsewhere. A positive k counts the diagonals above the main one. Arrays of other ranks are errors.
func Diag(a *tensor.Array, k int, ctx ...*tensor.Ctx) *tensor.Array {
	const op = "diag"
	c := tensor.Call(ctx)
	if f := kit.Unusable(c, op, a); f != nil {
		return f
	}
	switch a.NDim() {
	case 1:
		return diagonalMatrix.One(c, diagonalMatrixAttrs{k}, a)
	case 2:
		return kit.FailedAs(c, op, Diagonal(a, k, 0, 1, c))
	}
	return tensor.Fail(c, op, "an array with %s, want 1 or 2", tensor.Count(a.NDim(), "dimension"))
}

var _ = sig.Def("trace", "a offset:int=0 axis1:int=0 axis2:int=1 dtype:dtype?", func(a *sig.Args) any {
	return Trace(a.Array(0), a.Int(1), a.Int(2), a.Int(3), a.DTypeOr(4, a.Array(0).DType()), a.Ctx)
})

// Trace is the sum of the elements of [Diagonal], converted to dtype (nil: a's own) before they are added up, as [Sum]
// does it. Errors are those of [Diagonal].
func Trace(a *tensor.Array, offset, axis1, axis2 int, dtype tensor.DType, ctx ...*tensor.Ctx) *tensor.Array {
	const op = "trace"
	c := tensor.Call(ctx)
	if f := kit.Unusable(c, op, a); f != nil {
		return f
	}
	x := AsType(Diagonal(a, offset, axis1, axis2, c), dtype, c)
	return kit.FailedAs(c, op, Sum(x, []int{-1}, false, c))
}
