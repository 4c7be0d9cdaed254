package ops

import (
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

var _ = sig.Def("diff", "a n:int=1 axis:int=-1", func(a *sig.Args) any {
	return Diff(a.Array(0), a.Int(1), a.Int(2), a.Ctx)
})

// Diff is the differences of neighbours of a along an axis, taken n times: each time the axis is one shorter, until it
// has no elements. A scalar, an axis out of range and a negative n are errors.
func Diff(a *tensor.Array, n, axis int, ctx ...*tensor.Ctx) *tensor.Array {
	const op = "diff"
	c := tensor.Call(ctx)
	if f := kit.Unusable(c, op, a); f != nil {
		return f
	}
	at, err := tensor.Axis(axis, a.NDim())
	if err != nil {
		return tensor.Fail(c, op, "%w", err)
	}
	if n < 0 {
		return tensor.Fail(c, op, "n is %d, want 0 or more", n)
	}
	upper, lower := make([]Part, at+1), make([]Part, at+1)
	for i := range at {
		upper[i], lower[i] = Whole(), Whole()
	}
	upper[at], lower[at] = Span(1, None, 1), Span(None, -1, 1)
	for range n {
		a = Subtract(Slice(a, upper, c), Slice(a, lower, c), c)
	}
	return kit.FailedAs(c, op, a)
}

var _ = sig.Reduce("count_nonzero", CountNonzero)

// CountNonzero is how many elements of a along axes (nil: all) are not zero, as int32. NaN is not zero.
func CountNonzero(a *tensor.Array, axes []int, keepdims bool, ctx ...*tensor.Ctx) *tensor.Array {
	const op = "count_nonzero"
	c := tensor.Call(ctx)
	if f := kit.Unusable(c, op, a); f != nil {
		return f
	}
	return kit.FailedAs(c, op, Sum(AsType(NotEqual(a, Scalar(0, a, c), c), tensor.Int32, c), axes, keepdims, c))
}

var _ = sig.Def("minmax", "a axis:axes? keepdims:bool=false", func(a *sig.Args) any {
	least, greatest := MinMax(a.Array(0), a.Ints(1), a.Bool(2), a.Ctx)
	return []*tensor.Array{least, greatest}
}, sig.Doc("MinMax"))

// MinMax is the least and the greatest of a's elements along axes (nil: all): see [Min] and [Max].
func MinMax(a *tensor.Array, axes []int, keepdims bool, ctx ...*tensor.Ctx) (least, greatest *tensor.Array) {
	c := tensor.Call(ctx)
	return kit.FailedAs(c, "minmax", Min(a, axes, keepdims, c)), kit.FailedAs(c, "minmax", Max(a, axes, keepdims, c))
}
