package random

import (
	"math"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

var _ = sig.Def("random.normal", "shape:shape=[] dtype:dtype=float32 loc:operand? scale:operand? key:key?",
	func(a *sig.Args) any {
		return Normal(a.Shape(0), a.DType(1), a.Array(2), a.Array(3), a.Array(4), a.Ctx)
	})

// Normal is normally distributed numbers of that shape and dtype (a floating-point one or complex64), from a key:
// with mean loc (nil: 0) and standard deviation scale (nil: 1), which are broadcast against the shape; the parts of
// complex numbers have the variance 1/2. The uniform bits are MLX's for the same key, and the values follow from them
// by erfinv as MLX's do. Other dtypes are errors. No gradient flows but to loc and scale.
func Normal(shape tensor.ShapeArg, d tensor.DType, loc, scale, key *tensor.Array,
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
	uniform := func(shape tensor.ShapeArg) *tensor.Array {
		return kit.FailedAs(c, op, Uniform(belowZero(c), scalarOf(c, 1), shape, tensor.Float32, key, c))
	}
	var x *tensor.Array
	if d.IsComplex() {
		parts := ops.ErfInv(uniform(tensor.Concat(shape, tensor.Sizes(2))), c)
		part := func(i int) *tensor.Array {
			return ops.AsType(ops.Slice(parts, []ops.Part{ops.Ellipsis(), ops.At(i)}, c), d, c)
		}
		x = ops.Add(part(0), ops.Multiply(part(1), ops.FromSlice([]complex64{1i}, []int{}, c), c), c)
		if scale != nil {
			x = ops.Multiply(scale, x, c)
		}
		if loc != nil {
			x = ops.Add(loc, x, c)
		}
		return x
	}
	factor := ops.Number(math.Sqrt2, d, c)
	if scale != nil {
		factor = ops.Multiply(factor, ops.AsType(scale, d, c), c)
	}
	x = ops.Multiply(factor, ops.AsType(ops.ErfInv(uniform(shape), c), d, c), c)
	if loc != nil {
		x = ops.Add(ops.AsType(loc, d, c), x, c)
	}
	return x
}

// belowZero is -1, rounded up: the lower bound of uniform numbers whose erfinv and logarithm are finite.
func belowZero(c *tensor.Ctx) *tensor.Array { return scalarOf(c, math.Nextafter32(-1, 0)) }
