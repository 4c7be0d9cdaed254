package linalg

import (
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

var _ = sig.Def("linalg.cross", "a b axis:int=-1", func(a *sig.Args) any {
	return Cross(a.Array(0), a.Array(1), a.Int(2), a.Ctx)
})

// Cross is the cross product of vectors of 2 or 3 elements along an axis of a and b, in their common dtype; a third
// element that is not there is 0, and the result always has three. The other dimensions are broadcast. An axis of
// another size is an error.
func Cross(a, b *tensor.Array, axis int, ctx ...*tensor.Ctx) *tensor.Array {
	const op = "cross"
	c := tensor.Call(ctx)
	converted, failed := ops.Convert(c, op, kit.AnyDType, a, b)
	if failed != nil {
		return failed
	}
	parts := make([][]*tensor.Array, 2)
	for i, x := range converted {
		at, err := tensor.Axis(axis, x.NDim())
		if err != nil {
			return tensor.Fail(c, op, "%w", err)
		}
		n, err := x.Dim(at)
		if err != nil {
			return tensor.Fail(c, op, "%w", err)
		}
		if n != 2 && n != 3 {
			return tensor.Fail(c, op, "axis %d of %v has size %d, want 2 or 3", axis, x.Spec().Shape, n)
		}
		parts[i] = ops.Split(x, n, at, c)
	}
	p, q := parts[0], parts[1]
	difference := func(i, j int) *tensor.Array { // p_i q_j - p_j q_i, where a third element may be missing
		var left, right *tensor.Array
		if i < len(p) && j < len(q) {
			left = ops.Multiply(p[i], q[j], c)
		}
		if j < len(p) && i < len(q) {
			right = ops.Multiply(p[j], q[i], c)
		}
		switch {
		case left == nil && right == nil:
			return nil
		case right == nil:
			return left
		case left == nil:
			return ops.Negative(right, c)
		}
		return ops.Subtract(left, right, c)
	}
	third := difference(0, 1)
	if third.Err() != nil {
		return tensor.Fail(c, op, "a %v and b %v cannot be broadcast", a.Spec().Shape, b.Spec().Shape)
	}
	out := []*tensor.Array{difference(1, 2), difference(2, 0), third}
	for i, x := range out {
		if x == nil {
			out[i] = ops.ZerosLike(third, c)
		}
	}
	return ops.Concatenate(out, &axis, c)
}
