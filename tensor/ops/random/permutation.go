package random

import (
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

const permutationName = "random_permutation"

var _ = sig.Def("random.permutation", "x:int|array axis:int=0 key:key?", func(a *sig.Args) any {
	if n, ok := sig.As[int](a, 0); ok {
		if n < 0 {
			return tensor.Fail(a.Ctx, permutationName, "x is %d, want 0 or more", n)
		}
		return order(a.Ctx, tensor.Sizes(n), a.Array(2))
	}
	return Permutation(a.Array(0), a.Int(1), a.Array(2), a.Ctx)
})

// order is 0, 1, ... of one dimension in random order, as uint32.
func order(c *tensor.Ctx, n tensor.ShapeArg, key *tensor.Array) *tensor.Array {
	last := -1
	return kit.FailedAs(c, permutationName, ops.ArgSort(Bits(n, 4, key, c), &last, c))
}

// Permutation is x with its elements along axis in a random order that follows from a key; an integer x makes the
// numbers from 0 to x-1 in random order, as uint32. The order is MLX's for the same key. An axis that x does not have
// is an error.
func Permutation(x *tensor.Array, axis int, key *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	c := tensor.Call(ctx)
	if f := kit.Unusable(c, permutationName, x); f != nil {
		return f
	}
	at, err := tensor.Axis(axis, x.NDim())
	if err != nil {
		return tensor.Fail(c, permutationName, "%w", err)
	}
	return ops.Take(x, order(c, tensor.DimOf(x, at), key), &at, c)
}
