package ops

import (
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

var _ = sig.Def("unique", "a size:int return_index:bool=false return_inverse:bool=false return_counts:bool=false "+
	"fill_value:fill?", func(a *sig.Args) any {
	x := a.Array(0)
	var fill *tensor.Array
	if a.Given(5) {
		fill = filling(a, 5, x.DType())
	}
	all := Unique(x, a.Int(1), fill, a.Ctx)
	if all[0].Err() != nil {
		return all[0]
	}
	out := all[:1]
	for i, given := range []bool{a.Bool(2), a.Bool(3), a.Bool(4)} {
		if given {
			out = append(out, all[i+1])
		}
	}
	return out
})

// Unique is the size smallest different elements of a, flattened, in ascending order, and what return_index,
// return_inverse and return_counts ask for: where each stands first in a (uint32), which of them each element of a is
// (uint32, in a's shape), and how often each occurs (int32). Places past the last one hold fill_value, without which
// they hold the first one; their count is 0, and their index that of the first one. Where size leaves elements out,
// those of a are the last one in the inverse, and not in the counts. NaNs differ from each other, zeros of both signs
// do not. A negative size is an error, as are no elements without a fill_value.
func Unique(a *tensor.Array, size int, fill *tensor.Array, ctx ...*tensor.Ctx) []*tensor.Array {
	const op = "unique"
	c := tensor.Call(ctx)
	failed := func(f *tensor.Array) []*tensor.Array { return []*tensor.Array{f, f, f, f} }
	if f := kit.Unusable(c, op, a); f != nil {
		return failed(f)
	}
	if size < 0 {
		return failed(tensor.Fail(c, op, "size is %d, want 0 or more", size))
	}
	if fill == nil && size > 0 && a.Spec().Shape.Size() == 0 {
		return failed(tensor.Fail(c, op, "shape %v has no elements to fill %d places with: give a fill_value", a.Spec().Shape,
			size))
	}
	i32 := func(v int) *tensor.Array { return Number(float64(v), tensor.Int32, c) }
	x := Flatten(a, 0, -1, c)
	order := StopGradient(ArgSort(x, new(0), c), c)
	sorted := Take(x, order, nil, c)
	place := IotaAlong(c, x, 0)
	before := Take(sorted, Maximum(Subtract(place, i32(1), c), i32(0), c), nil, c)
	isFirst := Equal(place, i32(0), c)
	isNew := StopGradient(LogicalOr(isFirst, NotEqual(sorted, before, c), c), c)
	number := Subtract(CumSum(AsType(isNew, tensor.Int32, c), new(0), false, true, c), i32(1), c)
	// What has no place goes to one behind the last one, which is cut off.
	slot := ByArray(Where(isNew, Minimum(number, i32(size), c), i32(size), c))
	cut := func(y *tensor.Array) *tensor.Array { return Slice(y, []Part{Span(0, size, 1)}, c) }
	full := func(v *tensor.Array) *tensor.Array { return Full(tensor.Sizes(size+1), v, v.DType(), c) }
	switch {
	case fill != nil:
		if fill = AsType(fill, a.DType(), c); fill.NDim() > 0 {
			fill = Reshape(fill, tensor.Sizes(), c)
		}
	case size > 0:
		fill = Take(sorted, i32(0), nil, c)
	default:
		fill = Number(0, a.DType(), c)
	}
	first := AsType(Sum(Where(isFirst, order, Number(0, tensor.Uint32, c), c), nil, false, c), tensor.Uint32, c)
	values := cut(IndexUpdate(full(fill), []Part{slot}, "set", sorted, c))
	index := cut(IndexUpdate(full(first), []Part{slot}, "set", order, c))
	inverse := IndexUpdate(Zeros(tensor.ShapeOf(x), tensor.Uint32, c), []Part{ByArray(order)}, "set",
		AsType(Minimum(number, i32(max(size-1, 0)), c), tensor.Uint32, c), c)
	counts := cut(IndexUpdate(Zeros(tensor.Sizes(size+1), tensor.Int32, c), []Part{ByArray(Minimum(number, i32(size), c))},
		"add", i32(1), c))
	return []*tensor.Array{kit.FailedAs(c, op, values), index, Reshape(inverse, tensor.ShapeOf(a), c), counts}
}
