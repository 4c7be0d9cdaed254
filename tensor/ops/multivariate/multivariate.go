// Package multivariate draws vectors of jointly normal numbers. It stands on two leaves, random and linalg, so that
// neither needs the other.
package multivariate

import (
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/linalg"
	"github.com/mlxlua/mlxlua/tensor/ops/random"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

var _ = sig.Def("random.multivariate_normal", "mean cov shape:shape=[] dtype:dtype=float32 key:key?",
	func(a *sig.Args) any {
		return Normal(a.Array(0), a.Array(1), a.Shape(2), a.DType(3), a.Array(4), a.Ctx)
	}, sig.Doc("Normal"))

// Normal is vectors of jointly normal numbers with that mean and covariance, from a key: mean's last dimension and the
// last two of cov are the vectors', the others are broadcast with shape, and dtype must be float32. As in MLX, numbers
// of [random.Normal] are multiplied by U diag(sqrt(S)) Vt of cov's [linalg.SVD]; they are MLX's for the same key, up to
// rounding. cov is not checked to be symmetric. Sizes that do not fit are errors. Gradients flow to mean and cov.
func Normal(mean, cov *tensor.Array, shape tensor.ShapeArg, d tensor.DType, key *tensor.Array,
	ctx ...*tensor.Ctx) *tensor.Array {
	const op = "random_multivariate_normal"
	c := tensor.Call(ctx)
	if f := kit.Unusable(c, op, mean, cov); f != nil {
		return f
	}
	if d != tensor.Float32 {
		return tensor.Fail(c, op, "dtype is %v, want float32", d)
	}
	m, s := mean.Spec().Shape, cov.Spec().Shape
	if len(m) < 1 || len(s) < 2 {
		return tensor.Fail(c, op, "mean has shape %v and cov %v, want vectors and matrices", m, s)
	}
	if n := len(s); s[n-1] != s[n-2] || s[n-1] != m[len(m)-1] {
		return tensor.Fail(c, op, "mean has shape %v and cov %v: cov must be as many rows and columns as mean has elements",
			m, s)
	}
	// An array that stands for the result's shape and is not read.
	zero := ops.Number(0, tensor.Bool, c)
	rows := ops.Any(ops.StopGradient(cov, c), []int{-1}, false, c)
	like := ops.LogicalOr(ops.BroadcastTo(zero, tensor.ShapeOf(mean), c), rows, c)
	like = ops.LogicalOr(like, ops.ExpandDims(ops.Zeros(shape, tensor.Bool, c), []int{-1}, c), c)
	if like.Err() != nil {
		return kit.FailedAs(c, op, like)
	}
	f := linalg.SVD(ops.AsType(cov, tensor.Float32, c), c)
	if f[0].Err() != nil {
		return kit.FailedAs(c, op, f[0])
	}
	root := ops.ExpandDims(ops.Sqrt(f[1], c), []int{-2}, c)
	deviation := ops.Matmul(ops.Multiply(f[0], root, c), f[2], c)
	x := random.Normal(tensor.ShapeOf(like), d, nil, nil, key, c)
	if x.Err() != nil {
		return kit.FailedAs(c, op, x)
	}
	x = ops.Matmul(ops.ExpandDims(x, []int{-2}, c), deviation, c)
	return ops.Add(mean, ops.Squeeze(x, []int{-2}, c), c)
}
