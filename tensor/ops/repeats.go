package ops

import (
	"slices"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

// repeated is x with a new dimension of size n at each of those places, along which it is repeated: a view. The places
// are those of the result, in order.
func repeated(c *tensor.Ctx, x *tensor.Array, places, n []int) *tensor.Array {
	dims := make([]tensor.ShapeArg, 0, x.NDim()+len(places))
	for k := 0; len(dims) < cap(dims); {
		if i := slices.Index(places, len(dims)); i >= 0 {
			dims = append(dims, tensor.Sizes(n[i]))
			continue
		}
		dims = append(dims, tensor.DimOf(x, k))
		k++
	}
	return BroadcastTo(ExpandDims(x, places, c), tensor.Concat(dims...), c)
}

var _ = sig.Def("repeat", "array repeats:int axis:axis?", func(a *sig.Args) any {
	return Repeat(a.Array(0), a.Int(1), a.Axis(2), a.Ctx)
})
var _ = sig.Alias("repeat_", "repeat") // repeat is a word of Lua's

// Repeat has each part of array along an axis (nil: each element of the flattened array) that many times, one after
// the other. A negative number of repeats is an error.
func Repeat(array *tensor.Array, repeats int, axis *int, ctx ...*tensor.Ctx) *tensor.Array {
	const op = "repeat"
	c := tensor.Call(ctx)
	if f := kit.Unusable(c, op, array); f != nil {
		return f
	}
	x, along := array, 0
	if axis == nil {
		x = Flatten(array, 0, -1, c)
	} else {
		var err error
		if along, err = tensor.Axis(*axis, x.NDim()); err != nil {
			return tensor.Fail(c, op, "%w", err)
		}
	}
	if repeats < 0 {
		return tensor.Fail(c, op, "%d repeats, want 0 or more", repeats)
	}
	if repeats == 1 {
		return x
	}
	x = repeated(c, x, []int{along + 1}, []int{repeats})
	return kit.FailedAs(c, op, Flatten(x, along, along+1, c))
}

var _ = sig.Def("tile", "a reps:ints", func(a *sig.Args) any { return Tile(a.Array(0), a.Ints(1), a.Ctx) })

// Tile puts copies of a beside each other, reps[i] of them along dimension i. The last number belongs to the last
// dimension: missing ones are 1, and for further ones a gets leading dimensions of size 1. Negative numbers are errors.
func Tile(a *tensor.Array, reps []int, ctx ...*tensor.Ctx) *tensor.Array {
	const op = "tile"
	c := tensor.Call(ctx)
	if f := kit.Unusable(c, op, a); f != nil {
		return f
	}
	if slices.ContainsFunc(reps, func(n int) bool { return n < 0 }) {
		return tensor.Fail(c, op, "reps are %v, want 0 or more", tensor.Shape(reps))
	}
	x := a
	if more := len(reps) - x.NDim(); more > 0 {
		x = ExpandDims(x, kit.Identity(more), c)
	}
	first := x.NDim() - len(reps)
	var places, n []int // of the copies, each before the dimension that they are along
	for i, k := range reps {
		if k != 1 {
			places, n = append(places, first+i+len(places)), append(n, k)
		}
	}
	if len(places) == 0 {
		return x
	}
	x = repeated(c, x, places, n)
	for _, at := range slices.Backward(places) {
		x = Flatten(x, at, at+1, c)
	}
	return kit.FailedAs(c, op, x)
}
