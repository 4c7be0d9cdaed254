package ops

import (
	"math"

	"github.com/mlxlua/mlxlua/tensor"
)

// RandomNormal is normally distributed numbers of that shape and dtype (a floating-point one or complex64), from a key:
// with mean loc (nil: 0) and standard deviation scale (nil: 1), which are broadcast against the shape; the parts of
// complex numbers have the variance 1/2. The uniform bits are MLX's for the same key, and the values follow from them
// by erfinv as MLX's do. Other dtypes are errors. No gradient flows but to loc and scale.
func RandomNormal(shape tensor.ShapeArg, d tensor.DType, loc, scale, key *tensor.Array,
	ctx ...*tensor.Ctx) *tensor.Array {
	const op = "random_normal"
	c := tensor.Call(ctx)
	if !d.IsInexact() {
		return tensor.Fail(c, op, "dtype is %v, want a floating-point one or complex64", d)
	}
	for _, x := range []*tensor.Array{loc, scale} {
		if x != nil && x.Err() != nil {
			return x
		}
	}
	low, high := scalarOf(c, math.Nextafter32(-1, 0)), scalarOf(c, 1)
	uniform := func(shape tensor.ShapeArg) *tensor.Array {
		return named(c, op, RandomUniform(low, high, shape, tensor.Float32, key, c))
	}
	var x *tensor.Array
	if d.IsComplex() {
		parts := ErfInv(uniform(tensor.Concat(shape, tensor.Sizes(2))), c)
		part := func(i int) *tensor.Array { return AsType(Slice(parts, []Part{Ellipsis(), At(i)}, c), d, c) }
		x = Add(part(0), Multiply(part(1), FromSlice([]complex64{1i}, []int{}, c), c), c)
		if scale != nil {
			x = Multiply(scale, x, c)
		}
		if loc != nil {
			x = Add(loc, x, c)
		}
		return x
	}
	factor := Number(math.Sqrt2, d, c)
	if scale != nil {
		factor = Multiply(factor, AsType(scale, d, c), c)
	}
	x = Multiply(factor, AsType(ErfInv(uniform(shape), c), d, c), c)
	if loc != nil {
		x = Add(AsType(loc, d, c), x, c)
	}
	return x
}
