package ops

import (
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

var (
	floor    = unaryOp("floor")
	ceiling  = unaryOp("ceil")
	truncate = unaryOp("trunc")
)

func init() {
	floor.define(row{
		Arg:  kit.Refuse(kit.AnyDType, "", tensor.Complex64),
		Expr: exprs{Any: "$0", Float: "metal::floor($0)"},
	})
	ceiling.define(row{
		Arg:  kit.Refuse(kit.AnyDType, "", tensor.Complex64),
		Expr: exprs{Any: "$0", Float: "metal::ceil($0)"},
	})
	truncate.define(row{
		Arg:  kit.Refuse(kit.AnyDType, "", tensor.Complex64),
		Expr: exprs{Any: "$0", Float: "metal::trunc($0)"},
	})
}

var _ = sig.Unary("floor", Floor)

// Floor is the greatest whole number that is not above each element, in a's dtype; integers stay. Complex64 is an
// error.
func Floor(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array { return floor.call(tensor.Call(ctx), a) }

var _ = sig.Unary("ceil", Ceil)

// Ceil is the least whole number that is not below each element, in a's dtype; integers stay. Complex64 is an error.
func Ceil(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return ceiling.call(tensor.Call(ctx), a)
}

var _ = sig.Unary("trunc", Trunc)

// Trunc is each element without its fraction, in a's dtype; integers stay. Complex64 is an error.
func Trunc(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return truncate.call(tensor.Call(ctx), a)
}
