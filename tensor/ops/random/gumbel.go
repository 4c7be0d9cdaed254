package random

import (
	"math"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

var _ = sig.Def("random.gumbel", "shape:shape=[] dtype:dtype=float32 key:key?", func(a *sig.Args) any {
	return Gumbel(a.Shape(0), a.DType(1), a.Array(2), a.Ctx)
})

// Gumbel is numbers of the standard extreme-value distribution, -log(-log(u)) of uniform u in [0, 1), of that shape and
// floating-point dtype (float32, float16 or bfloat16), from a key. The uniform numbers are MLX's for the same key, the
// logarithms mx's own. Other dtypes are errors.
func Gumbel(shape tensor.ShapeArg, d tensor.DType, key *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	c := tensor.Call(ctx)
	zero, one := ops.Number(0, tensor.Float32, c), ops.Number(1, tensor.Float32, c)
	u := kit.FailedAs(c, "random_gumbel", Uniform(zero, one, shape, d, key, c))
	return ops.Negative(ops.Log(ops.Negative(ops.Log(u, c), c), c), c)
}

var _ = sig.Def("random.laplace", "shape:shape=[] dtype:dtype=float32 loc:number=0 scale:number=1 key:key?",
	func(a *sig.Args) any {
		return Laplace(a.Shape(0), a.DType(1), a.Number(2), a.Number(3), a.Array(4), a.Ctx)
	})

// Laplace is numbers of the double exponential distribution with mean loc and scale, of that shape and real dtype,
// from a key. The uniform numbers, float32 ones, are MLX's for the same key, the logarithms mx's own. Other dtypes are
// errors.
func Laplace(shape tensor.ShapeArg, d tensor.DType, loc, scale float64, key *tensor.Array,
	ctx ...*tensor.Ctx) *tensor.Array {
	const op = "random_laplace"
	c := tensor.Call(ctx)
	if f := kit.Floats("dtype is").Refused(c, op, d); f != nil {
		return f
	}
	u := kit.FailedAs(c, op, Uniform(belowZero(c), scalarOf(c, 1), shape, tensor.Float32, key, c))
	x := ops.Multiply(ops.Sign(u, c), ops.Log1p(ops.Multiply(ops.Number(-1, d, c), ops.Abs(u, c), c), c), c)
	x = ops.AsType(x, d, c)
	if scale != 1 {
		x = ops.Multiply(ops.Number(scale, d, c), x, c)
	}
	if loc != 0 {
		x = ops.Add(ops.Number(loc, d, c), x, c)
	}
	return x
}

var _ = sig.Def("random.truncated_normal", "lower upper shape:shape? dtype:dtype=float32 key:key?",
	func(a *sig.Args) any {
		lower, upper, shape := a.Array(0), a.Array(1), a.Shape(2)
		if !a.Given(2) {
			if f := kit.Unusable(a.Ctx, truncatedName, lower, upper); f != nil {
				return f
			}
			both := ops.Add(ops.StopGradient(lower, a.Ctx), ops.StopGradient(upper, a.Ctx), a.Ctx)
			if both.Err() != nil {
				return kit.FailedAs(a.Ctx, truncatedName, both)
			}
			shape = tensor.ShapeOf(both)
		}
		return TruncatedNormal(lower, upper, shape, a.DType(3), a.Array(4), a.Ctx)
	})

const truncatedName = "random_truncated_normal"

// TruncatedNormal is normally distributed numbers between lower and upper, of that shape and floating-point dtype
// (float32, float16 or bfloat16), from a key. lower and upper are broadcast to shape, which defaults to what they
// broadcast to. The uniform numbers lie between the bounds' error functions; from there on, as in MLX, erfinv makes the
// values. Other dtypes and bounds that do not broadcast are errors. Gradients flow to lower and upper.
func TruncatedNormal(lower, upper *tensor.Array, shape tensor.ShapeArg, d tensor.DType, key *tensor.Array,
	ctx ...*tensor.Ctx) *tensor.Array {
	c := tensor.Call(ctx)
	if f := kit.Unusable(c, truncatedName, lower, upper); f != nil {
		return f
	}
	root := ops.Number(math.Sqrt2, d, c)
	lo, hi := ops.AsType(lower, d, c), ops.AsType(upper, d, c)
	a, b := ops.Erf(ops.Divide(lo, root, c), c), ops.Erf(ops.Divide(hi, root, c), c)
	u := kit.FailedAs(c, truncatedName, Uniform(a, b, shape, d, key, c))
	return ops.Maximum(ops.Minimum(hi, ops.Multiply(root, ops.ErfInv(u, c), c), c), lo, c)
}
