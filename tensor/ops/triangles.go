package ops

import (
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

// triangle keeps the elements of matrices where keep(row, column-k) holds, and makes the others zero.
func triangle(c *tensor.Ctx, op string, x *tensor.Array, k int,
	keep func(a, b *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array) *tensor.Array {
	if f := kit.Unusable(c, op, x); f != nil {
		return f
	}
	if x.NDim() < 2 {
		return tensor.Fail(c, op, "an array of %s is no matrix: it needs 2 or more", tensor.Count(x.NDim(), "dimension"))
	}
	row, col := IotaAlong(c, x, x.NDim()-2), IotaAlong(c, x, x.NDim()-1)
	col = Subtract(AsType(col, tensor.Int64, c), Number(float64(k), tensor.Int64, c), c)
	return Where(keep(AsType(row, tensor.Int64, c), col, c), x, Number(0, x.DType(), c), c)
}

var _ = sig.Def("tril", "x k:int=0", func(a *sig.Args) any { return Tril(a.Array(0), a.Int(1), a.Ctx) })

// Tril is x with zeros above the k-th diagonal of its matrices (the last two dimensions); k counts from the main one,
// positive ones lie above it. An array of fewer than two dimensions is an error.
func Tril(x *tensor.Array, k int, ctx ...*tensor.Ctx) *tensor.Array {
	return triangle(tensor.Call(ctx), "tril", x, k, GreaterEqual)
}

var _ = sig.Def("triu", "x k:int=0", func(a *sig.Args) any { return Triu(a.Array(0), a.Int(1), a.Ctx) })

// Triu is x with zeros below the k-th diagonal of its matrices: see [Tril].
func Triu(x *tensor.Array, k int, ctx ...*tensor.Ctx) *tensor.Array {
	return triangle(tensor.Call(ctx), "triu", x, k, LessEqual)
}
