package random

import (
	"slices"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

const categoricalName = "random_categorical"

var _ = sig.Def("random.categorical", "logits axis:int=-1 shape:shape? num_samples:int? key:key?",
	func(a *sig.Args) any {
		logits, axis := a.Array(0), a.Int(1)
		switch {
		case a.Given(2) && a.Given(3):
			return tensor.Fail(a.Ctx, categoricalName, "both shape and num_samples are given, want at most one")
		case a.Given(3):
			return categoricalSamples(a.Ctx, logits, axis, a.Int(3), a.Array(4))
		case a.Given(2):
			return Categorical(logits, axis, a.Shape(2), a.Array(4), a.Ctx)
		}
		return Categorical(logits, axis, withoutAxis(logits, axis), a.Array(4), a.Ctx)
	})

// withoutAxis is x's shape without one dimension, or x's shape where it has no such dimension.
func withoutAxis(x *tensor.Array, axis int) tensor.ShapeArg {
	if x.Err() != nil {
		return tensor.ShapeArg{}
	}
	at, err := tensor.Axis(axis, x.NDim())
	if err != nil {
		return tensor.ShapeOf(x)
	}
	var rest []tensor.ShapeArg
	for i := range x.NDim() {
		if i != at {
			rest = append(rest, tensor.DimOf(x, i))
		}
	}
	return tensor.Concat(rest...)
}

// categoricalSamples draws num numbers from each of the distributions in logits: along a new last dimension.
func categoricalSamples(c *tensor.Ctx, logits *tensor.Array, axis, num int, key *tensor.Array) *tensor.Array {
	if f := kit.Unusable(c, categoricalName, logits); f != nil {
		return f
	}
	at, err := tensor.Axis(axis, logits.NDim())
	if err != nil {
		return tensor.Fail(c, categoricalName, "%w", err)
	}
	if num < 0 {
		return tensor.Fail(c, categoricalName, "num_samples is %d, want 0 or more", num)
	}
	shape := tensor.Concat(withoutAxis(logits, at), tensor.Sizes(num))
	return Categorical(ops.ExpandDims(logits, []int{-1}, c), at, shape, key, c)
}

// Categorical is random indices along axis of logits, as uint32 of that shape, from a key: each has the probability
// that the softmax of logits gives it. shape is broadcast with that of logits without axis, which it defaults to;
// num_samples in its place draws as many from each distribution, along a new last dimension. The indices are MLX's for
// the same key, unless two of them are nearly equal to float32: a single distribution, where a shape is given, is
// searched for uniform numbers; of several the greatest of the logits with noise wins, see [Gumbel]. Logits without
// elements along axis, an axis that they do not have, and a shape that does not fit are errors. No gradient flows.
func Categorical(logits *tensor.Array, axis int, shape tensor.ShapeArg, key *tensor.Array,
	ctx ...*tensor.Ctx) *tensor.Array {
	c := tensor.Call(ctx)
	if f := kit.Unusable(c, categoricalName, logits); f != nil {
		return f
	}
	at, err := tensor.Axis(axis, logits.NDim())
	if err != nil {
		return tensor.Fail(c, categoricalName, "%w", err)
	}
	logits = ops.StopGradient(logits, c)
	like := kit.FailedAs(c, categoricalName, ops.Zeros(shape, tensor.Bool, c)) // stands for the shape, and is not read
	if like.Err() != nil {
		return like
	}
	if rest := logits.NDim() - 1; rest > like.NDim() {
		return tensor.Fail(c, categoricalName, "logits %v without axis %d have more dimensions than shape %v",
			logits.Spec().Shape, axis, like.Spec().Shape)
	}
	if like.NDim() > 0 && single(logits, at) {
		return kit.FailedAs(c, categoricalName, searched(c, ops.Reshape(logits, tensor.Sizes(-1), c), shape, key))
	}
	return kit.FailedAs(c, categoricalName, greatest(c, logits, at, like, key))
}

// single reports whether logits are one distribution. In a trace their other sizes become guards.
func single(logits *tensor.Array, axis int) bool {
	for i := range logits.NDim() {
		n, err := logits.Dim(i)
		if err != nil || n == 0 || i != axis && n != 1 {
			return false
		}
	}
	return true
}

// searched finds uniform numbers in the cumulative probabilities of logits, which have one dimension.
func searched(c *tensor.Ctx, logits *tensor.Array, shape tensor.ShapeArg, key *tensor.Array) *tensor.Array {
	x := ops.AsType(logits, tensor.Promote(logits.DType(), tensor.Float32), c)
	most := ops.Max(x, nil, false, c)
	// Where the greatest is infinite, the distribution is uniform over those that equal it.
	w := ops.Where(ops.IsInf(most, c), ops.AsType(ops.Equal(x, most, c), x.DType(), c),
		ops.Exp(ops.Subtract(x, most, c), c), c)
	first := 0
	below := ops.CumSum(w, &first, false, false, c)
	zero, one := ops.Number(0, tensor.Float32, c), ops.Number(1, tensor.Float32, c)
	u := ops.Multiply(Uniform(zero, one, shape, tensor.Float32, key, c), ops.Sum(w, nil, false, c), c)
	u = ops.ExpandDims(u, []int{-1}, c)
	count := ops.Sum(ops.AsType(ops.LessEqual(below, u, c), tensor.Uint32, c), []int{-1}, false, c)
	return ops.Subtract(count, ops.Number(1, tensor.Uint32, c), c)
}

// greatest is the place along axis of the greatest of logits with Gumbel noise, for each element of like's shape.
func greatest(c *tensor.Ctx, logits *tensor.Array, axis int, like, key *tensor.Array) *tensor.Array {
	at := axis + like.NDim() - (logits.NDim() - 1) // where the noise has logits' axis, between like's dimensions
	var dims []tensor.ShapeArg
	for i := range like.NDim() {
		dims = append(dims, tensor.DimOf(like, i))
	}
	dims = slices.Insert(dims, at, tensor.DimOf(logits, axis))
	noise := Gumbel(tensor.Concat(dims...), tensor.Float32, key, c)
	if noise.Err() != nil {
		return noise
	}
	return ops.ArgMax(ops.Add(noise, ops.BroadcastTo(logits, tensor.ShapeOf(noise), c), c), []int{at}, false, c)
}
