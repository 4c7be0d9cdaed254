package random

import (
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

var _ = sig.Def("random.randint", "low high shape:shape=[] dtype:dtype=int32 key:key?", func(a *sig.Args) any {
	return Randint(a.Array(0), a.Array(1), a.Shape(2), a.DType(3), a.Array(4), a.Ctx)
})

// Randint is uniformly distributed integers from low to high-1, of that shape and dtype (an integer one or
// bool), from a key; low and high are broadcast to shape. The values are MLX's for the same key: floats in [low,
// high), rounded down and kept within the bounds, so that of ranges wider than 2^24 not every integer occurs.
// Another dtype and bounds that do not broadcast are errors. No gradient flows.
func Randint(low, high *tensor.Array, shape tensor.ShapeArg, d tensor.DType, key *tensor.Array,
	ctx ...*tensor.Ctx) *tensor.Array {
	const op = "random_randint"
	c := tensor.Call(ctx)
	if f := kit.Unusable(c, op, low, high); f != nil {
		return f
	}
	if !d.IsInteger() && d != tensor.Bool {
		return tensor.Fail(c, op, "dtype is %v, want an integer one or bool", d)
	}
	x := kit.FailedAs(c, op, Uniform(low, high, shape, tensor.Float32, key, c))
	i := ops.AsType(ops.Floor(ops.StopGradient(x, c), c), d, c)
	top := ops.AsType(ops.Subtract(high, ops.Scalar(1, high, c), c), d, c)
	return ops.Maximum(ops.Minimum(i, top, c), ops.AsType(low, d, c), c)
}

var _ = sig.Def("random.bernoulli", "p:float=0.5 shape:shape? key:key?", func(a *sig.Args) any {
	p, shape := a.Array(0), a.Shape(1)
	if !a.Given(1) {
		shape = tensor.ShapeOf(p)
	}
	return Bernoulli(p, shape, a.Array(2), a.Ctx)
})

// Bernoulli is true with probability p, as bool of that shape, from a key; p, which must be of a real
// floating-point dtype, is broadcast to shape. The values are MLX's for the same key. No gradient flows.
func Bernoulli(p *tensor.Array, shape tensor.ShapeArg, key *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	const op = "random_bernoulli"
	c := tensor.Call(ctx)
	if f := kit.Unusable(c, op, p); f != nil {
		return f
	}
	if f := kit.Floats("p has dtype").Refused(c, op, p.DType()); f != nil {
		return f
	}
	zero, one := ops.Number(0, tensor.Float32, c), ops.Number(1, tensor.Float32, c)
	u := kit.FailedAs(c, op, Uniform(zero, one, shape, tensor.Float32, key, c))
	return kit.FailedAs(c, op, ops.BroadcastTo(ops.Less(u, p, c), tensor.ShapeOf(u), c))
}
