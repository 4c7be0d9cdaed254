package ops

import "github.com/mlxlua/mlxlua/tensor"

// RandomRandint is uniformly distributed integers from low to high-1, of that shape and dtype (an integer one or
// bool), from a key; low and high are broadcast to shape. The values are MLX's for the same key: floats in [low,
// high), rounded down and kept within the bounds, so that of ranges wider than 2^24 not every integer occurs.
// Another dtype and bounds that do not broadcast are errors. No gradient flows.
func RandomRandint(low, high *tensor.Array, shape tensor.ShapeArg, d tensor.DType, key *tensor.Array,
	ctx ...*tensor.Ctx) *tensor.Array {
	const op = "random_randint"
	c := tensor.Call(ctx)
	if f := unusable(c, op, low, high); f != nil {
		return f
	}
	if !d.IsInteger() && d != tensor.Bool {
		return tensor.Fail(c, op, "dtype is %v, want an integer one or bool", d)
	}
	x := named(c, op, RandomUniform(low, high, shape, tensor.Float32, key, c))
	i := AsType(Floor(StopGradient(x, c), c), d, c)
	top := AsType(Subtract(high, Scalar(1, high, c), c), d, c)
	return Maximum(Minimum(i, top, c), AsType(low, d, c), c)
}

// RandomBernoulli is true with probability p, as bool of that shape, from a key; p, which must be of a real
// floating-point dtype, is broadcast to shape. The values are MLX's for the same key. No gradient flows.
func RandomBernoulli(p *tensor.Array, shape tensor.ShapeArg, key *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	const op = "random_bernoulli"
	c := tensor.Call(ctx)
	if f := unusable(c, op, p); f != nil {
		return f
	}
	if !p.DType().IsFloat() {
		return tensor.Fail(c, op, "p has dtype %v, want a real floating-point one", p.DType())
	}
	zero, one := Number(0, tensor.Float32, c), Number(1, tensor.Float32, c)
	u := named(c, op, RandomUniform(zero, one, shape, tensor.Float32, key, c))
	return BroadcastTo(Less(u, p, c), tensor.ShapeOf(u), c)
}
