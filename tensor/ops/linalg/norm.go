package linalg

import (
	"fmt"
	"math"
	"slices"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

// Ord is the order of a norm. The zero value is MLX's None: the root of the sum of squares.
type Ord struct {
	name string // "fro", "nuc", or "p" for a number
	p    float64
}

// The orders that have names: those of matrices.
var (
	Frobenius = Ord{name: "fro"}
	Nuclear   = Ord{name: "nuc"}
)

// OrdOf is an order that is a number, which may be infinite.
func OrdOf(p float64) Ord { return Ord{"p", p} }

// String is the order as scripts write it.
func (o Ord) String() string {
	if o.name == "p" {
		return fmt.Sprint(o.p)
	}
	return o.name
}

var _ = sig.Def("linalg.norm", "a ord:'fro'|'f'|'nuc'|number? axis:axes? keepdims:bool=false", func(a *sig.Args) any {
	var ord Ord
	if name, ok := sig.As[string](a, 1); ok {
		ord = Frobenius
		if name == "nuc" {
			ord = Nuclear
		}
	} else if p, ok := sig.As[float64](a, 1); ok {
		ord = OrdOf(p)
	}
	return Norm(a.Array(0), ord, a.Ints(2), a.Bool(3), a.Ctx)
})

var _ = sig.Alias("matrix_norm", "linalg.norm")

// Norm is a norm of a's vectors along one axis, or of its matrices in two, whose rows the first axis counts. axis nil
// means all axes of an array of one or two dimensions.
//
//	ord    of matrices                              of vectors
//	nil    root of the sum of squares               the same, and along any number of axes if axis is nil
//	fro    the same                                 -
//	nuc    sum of the singular values               -
//	inf    greatest sum of a row's absolute values  greatest absolute value
//	-inf   least sum of a row's absolute values     least absolute value
//	0      -                                        number of elements that are not zero
//	1      greatest sum of a column's               sum of absolute values
//	-1     least sum of a column's                  as below
//	2      greatest singular value                  root of the sum of squares
//	-2     least singular value                     as below
//	other  -                                        sum(abs(a)^ord)^(1/ord)
//
// Integers and bool give float32, other dtypes their own; but roots of sums of squares and nuclear norms of complex64
// are float32. Singular values exist of float32, float64 and complex64. Other orders, too many axes and those that a
// does not have are errors.
func Norm(a *tensor.Array, ord Ord, axes []int, keepdims bool, ctx ...*tensor.Ctx) *tensor.Array {
	const op = "norm"
	c := tensor.Call(ctx)
	if f := kit.Unusable(c, op, a); f != nil {
		return f
	}
	if ord == (Ord{}) && axes == nil {
		return length(c, a, nil, keepdims)
	}
	if axes == nil {
		axes = kit.Identity(a.NDim())
	}
	at, err := tensor.Axes(axes, a.NDim())
	if err != nil {
		return tensor.Fail(c, op, "%w", err)
	}
	for i, axis := range axes { // in the order they were given in
		at[i], _ = tensor.Axis(axis, a.NDim())
	}
	switch n := len(at); {
	case n > 2 || n == 0 && ord != (Ord{}):
		return tensor.Fail(c, op, "%d axes, want one or two", n)
	case n == 2:
		return kit.FailedAs(c, op, matrixNorm(c, a, ord, at, keepdims))
	case ord.name == "fro" || ord.name == "nuc":
		return tensor.Fail(c, op, "ord %v is for matrices, want two axes, not %d", ord, n)
	}
	return kit.FailedAs(c, op, vectorNorm(c, a, ord, at, keepdims))
}

// length is the root of the sum of squares.
func length(c *tensor.Ctx, a *tensor.Array, axes []int, keepdims bool) *tensor.Array {
	a = ops.AsType(a, a.DType().Inexact(), c)
	if a.DType().IsComplex() {
		a = ops.Abs(a, c)
	}
	return ops.Sqrt(ops.Sum(ops.Square(a, c), axes, keepdims, c), c)
}

func vectorNorm(c *tensor.Ctx, a *tensor.Array, ord Ord, axes []int, keepdims bool) *tensor.Array {
	d := a.DType().Inexact()
	var y *tensor.Array
	switch {
	case ord.name == "" || ord.p == 2:
		return length(c, a, axes, keepdims)
	case ord.p == 0:
		y = ops.Sum(ops.NotEqual(a, ops.Scalar(0, a, c), c), axes, keepdims, c)
	case ord.p == 1:
		y = ops.Sum(ops.Abs(a, c), axes, keepdims, c)
	case math.IsInf(ord.p, 1):
		y = ops.Max(ops.Abs(a, c), axes, keepdims, c)
	case math.IsInf(ord.p, -1):
		y = ops.Min(ops.Abs(a, c), axes, keepdims, c)
	default:
		powers := ops.Power(ops.Abs(a, c), ops.Number(ord.p, d, c), c)
		y = ops.Power(ops.Sum(powers, axes, keepdims, c), ops.Number(1/ord.p, d, c), c)
	}
	return ops.AsType(y, d, c)
}

func matrixNorm(c *tensor.Ctx, a *tensor.Array, ord Ord, axes []int, keepdims bool) *tensor.Array {
	row, column := axes[0], axes[1]
	d := a.DType().Inexact()
	sums := func(over, along int, of func(a *tensor.Array, axes []int, keepdims bool,
		ctx ...*tensor.Ctx) *tensor.Array) *tensor.Array {
		y := of(ops.Sum(ops.Abs(a, c), []int{over}, true, c), []int{along}, true, c)
		if !keepdims {
			y = ops.Squeeze(y, axes, c)
		}
		return ops.AsType(y, d, c)
	}
	switch {
	case ord.name == "" || ord.name == "fro":
		return length(c, a, axes, keepdims)
	case ord.name == "nuc":
	case ord.p == 1:
		return sums(row, column, ops.Max)
	case ord.p == -1:
		return sums(row, column, ops.Min)
	case math.IsInf(ord.p, 1):
		return sums(column, row, ops.Max)
	case math.IsInf(ord.p, -1):
		return sums(column, row, ops.Min)
	case ord.p != 2 && ord.p != -2:
		return tensor.Fail(c, "norm", "ord %v is no order of a matrix norm", ord)
	}
	order := slices.DeleteFunc(kit.Identity(a.NDim()), func(i int) bool { return i == row || i == column })
	s := SingularValues(ops.Transpose(a, append(order, row, column), c), c)
	last := []int{-1}
	switch {
	case s.Err() != nil:
		return s
	case ord.name == "nuc":
		s, d = ops.Sum(s, last, false, c), s.DType()
	case ord.p == 2:
		s = ops.Max(s, last, false, c)
	default:
		s = ops.Min(s, last, false, c)
	}
	if keepdims {
		s = ops.ExpandDims(s, []int{min(row, column), max(row, column)}, c)
	}
	return ops.AsType(s, d, c)
}
