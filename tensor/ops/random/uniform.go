package random

import (
	"encoding/binary"
	"math"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

var _ = sig.Def("random.uniform", "low:float=0 high:float=1 shape:shape=[] dtype:dtype=float32 key:key?",
	func(a *sig.Args) any {
		return Uniform(a.Array(0), a.Array(1), a.Shape(2), a.DType(3), a.Array(4), a.Ctx)
	})

// Uniform is uniformly distributed floats in [low, high), of that shape and floating-point dtype (float32,
// float16 or bfloat16), from a key. low and high are broadcast to shape. The values are MLX's for the same key:
// min(bits / 2^32, the largest number below 1) * (high - low) + low.
func Uniform(low, high *tensor.Array, shape tensor.ShapeArg, d tensor.DType, key *tensor.Array,
	ctx ...*tensor.Ctx) *tensor.Array {
	c := tensor.Call(ctx)
	var upper float32
	switch d {
	case tensor.Float32:
		upper = math.Nextafter32(1, 0)
	case tensor.Float16:
		upper = tensor.Float16Value(tensor.Float16Bits(1) - 1)
	case tensor.BFloat16:
		upper = tensor.BFloat16Value(tensor.BFloat16Bits(1) - 1)
	default:
		return tensor.Fail(c, "random_uniform", "dtype is %v, want float32, float16 or bfloat16", d)
	}
	if f := kit.Unusable(c, "random_uniform", low, high); f != nil {
		return f
	}
	lo, hi := ops.AsType(low, d, c), ops.AsType(high, d, c)
	width := ops.Subtract(hi, lo, c)
	unit := ops.Divide(Bits(shape, 4, key, c), scalarOf(c, math.MaxUint32), c)
	unit = ops.AsType(ops.Minimum(unit, scalarOf(c, upper), c), d, c)
	out := ops.Add(ops.Multiply(width, unit, c), lo, c)
	if out.NDim() > unit.NDim() {
		return tensor.Fail(c, "random_uniform", "low and high of shape %v do not broadcast to shape %v",
			width.Spec().Shape, unit.Spec().Shape)
	}
	return ops.BroadcastTo(out, tensor.ShapeOf(unit), c)
}

// scalarOf is a float32 array of no dimensions.
func scalarOf(c *tensor.Ctx, v float32) *tensor.Array {
	b := binary.LittleEndian.AppendUint32(nil, math.Float32bits(v))
	return tensor.FromBytes(c, tensor.Spec{DType: tensor.Float32}, b)
}
