package ops

import (
	"math"
	"slices"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

// middleAttrs: of an even number of elements, the upper one of both middle ones, or the lower one.
type middleAttrs struct{ Upper bool }

var (
	// Both keep one element of the last axis.
	middleOp  = tensor.Declare[middleAttrs]("middle")
	argMiddle = tensor.Declare[middleAttrs]("argmiddle")
)

func init() {
	defineOrder(middleOp, argMiddle,
		func(in []tensor.Spec, _ middleAttrs, outs []tensor.Shape) ([]tensor.Shape, error) {
			return append(outs, withLast(in[0].Shape, 1)), nil
		},
		func(r *tensor.Run, keys tensor.Operand, a middleAttrs, index bool) error {
			n := keys.Shape[len(keys.Shape)-1]
			at := (n - 1) / 2
			if a.Upper {
				at = n / 2
			}
			return selectRows(r, keys, at, keptPlaces{at, 1}, index, r.Out[0])
		})
}

var _ = sig.Reduce("median", Median)

// Median is the middle element of a's elements along axes (nil: all) in ascending order, or the mean of both middle
// ones of an even number. Integers and bool give float32; NaN among the elements gives NaN. Axes without elements are
// an error.
func Median(a *tensor.Array, axes []int, keepdims bool, ctx ...*tensor.Ctx) *tensor.Array {
	const op = "median"
	c := tensor.Call(ctx)
	if f := kit.Unusable(c, op, a); f != nil {
		return f
	}
	reduced, err := tensor.Axes(axes, a.NDim())
	if err != nil {
		return tensor.Fail(c, op, "%w", err)
	}
	if axes == nil {
		reduced = kit.Identity(a.NDim())
	}
	shape := a.Spec().Shape
	if slices.ContainsFunc(reduced, func(i int) bool { return shape[i] == 0 }) {
		return tensor.Fail(c, op, "there are no elements along axes %v of shape %v", reduced, shape)
	}
	var perm []int
	for i := range a.NDim() {
		if !slices.Contains(reduced, i) {
			perm = append(perm, i)
		}
	}
	x := AsType(a, a.DType().Inexact(), c)
	rows := len(perm)
	if len(reduced) == 0 {
		x = ExpandDims(x, []int{-1}, c)
	} else {
		x = Flatten(Transpose(x, append(perm, reduced...), c), rows, -1, c)
	}
	last := []int{-1}
	n, two := Size(x, last, tensor.Int32, c), Number(2, tensor.Int32, c)
	upper := FloorDivide(n, two, c)
	lower := FloorDivide(Subtract(n, Number(1, tensor.Int32, c), c), two, c)
	middle := func(upper bool) *tensor.Array {
		return Squeeze(middleOp.One(c, middleAttrs{upper}, x), last, c)
	}
	high, low := middle(true), middle(false)
	y := Where(Equal(upper, lower, c), high, Multiply(Add(low, high, c), Scalar(0.5, x, c), c), c)
	y = Where(Any(IsNaN(x, c), last, false, c), Scalar(math.NaN(), x, c), y, c)
	if keepdims && len(reduced) > 0 {
		y = ExpandDims(y, reduced, c)
	}
	return kit.FailedAs(c, op, y)
}
