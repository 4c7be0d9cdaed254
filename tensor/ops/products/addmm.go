package products

import (
	"fmt"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

var _ = sig.Def("addmm", "c a b alpha:number=1 beta:number=1", func(a *sig.Args) any {
	return AddMM(a.Array(0), a.Array(1), a.Array(2), a.Number(3), a.Number(4), a.Ctx)
})

// AddMM is alpha times the product of a and b (see [ops.Matmul]) plus beta times c, in their common dtype, which must
// be a floating-point or complex one. c must broadcast to the product's shape. Half types are added in float32 and
// rounded once after the product, once in the end.
func AddMM(c, a, b *tensor.Array, alpha, beta float64, ctx ...*tensor.Ctx) *tensor.Array {
	const op = "addmm"
	at := tensor.Call(ctx)
	in, f := ops.Convert(at, op, func(d tensor.DType) (tensor.DType, error) {
		if !d.IsInexact() {
			return d, fmt.Errorf("operands have dtypes %v, %v and %v, want floating-point or complex ones: use astype",
				c.DType(), a.DType(), b.DType())
		}
		return d, nil
	}, c, a, b)
	if f != nil {
		return f
	}
	y := ops.Matmul(in[1], in[2], at)
	if y.Err() != nil {
		return kit.FailedAs(at, op, y)
	}
	if err := kit.CheckBroadcast(c.Spec().Shape, y.Spec().Shape); err != nil {
		return tensor.Fail(at, op, "c does not have the product's shape: %w", err)
	}
	d, wide := y.DType(), kit.Accumulator(y.DType())
	scaled := func(x *tensor.Array, by float64) *tensor.Array {
		if x = ops.AsType(x, wide, at); by != 1 {
			x = ops.Multiply(x, ops.Number(by, wide, at), at)
		}
		return x
	}
	z := ops.BroadcastTo(in[0], tensor.ShapeOf(y), at)
	return ops.AsType(ops.Add(scaled(y, alpha), scaled(z, beta), at), d, at)
}
