package fast

import (
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

var _ = sig.Def("fast.cross_entropy", "logits targets", func(a *sig.Args) any {
	return CrossEntropy(a.Array(0), a.Array(1), a.Ctx)
})

// CrossEntropy is logsumexp(logits) - logits[target] for each target, along the last axis of logits: the loss of
// class indices. Targets are integers in the shape of logits without that axis; negative ones count from the end.
// Logits are real floating-point numbers; the result is float32, and the half types are computed in float32
// throughout. Other dtypes and shapes, and logits without classes, are errors; a target that is out of range is an
// error when the result is computed.
func CrossEntropy(logits, targets *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	const op = "cross_entropy"
	c := tensor.Call(ctx)
	if f := kit.Unusable(c, op, logits, targets); f != nil {
		return f
	}
	d := logits.DType()
	if f := kit.Floats("logits have dtype").Refused(c, op, d); f != nil {
		return f
	}
	if f := kit.Integers("targets have dtype").Refused(c, op, targets.DType()); f != nil {
		return f
	}
	x, t := logits.Spec().Shape, targets.Spec().Shape
	switch {
	case len(x) == 0:
		return tensor.Fail(c, op, "logits are a scalar, want at least 1 dimension")
	case !t.Equal(x[:len(x)-1]):
		return tensor.Fail(c, op, "targets have shape %v, logits %v: want the same without the last dimension", t, x)
	}
	logits = ops.AsType(logits, kit.Accumulator(d), c)
	last := -1
	all := ops.LogSumExp(logits, []int{last}, false, c)
	if all.Err() != nil {
		return kit.FailedAs(c, op, all)
	}
	one := ops.TakeAlongAxis(logits, ops.ExpandDims(targets, []int{last}, c), &last, c)
	loss := ops.Subtract(all, ops.Squeeze(one, []int{last}, c), c)
	return kit.FailedAs(c, op, ops.AsType(loss, tensor.Float32, c))
}
