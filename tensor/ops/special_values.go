package ops

import (
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

var (
	isNaN    = unaryOp("isnan")
	isInf    = unaryOp("isinf")
	isFinite = unaryOp("isfinite")
)

func init() {
	isNaN.define(row{
		Out:  toBool,
		Expr: exprs{Any: "false", Float: "metal::isnan($0)", Complex: "metal::isnan($0.real) || metal::isnan($0.imag)"},
	})
	isInf.define(row{
		Out:  toBool,
		Expr: exprs{Any: "false", Float: "metal::isinf($0)", Complex: "metal::isinf($0.real) || metal::isinf($0.imag)"},
	})
	isFinite.define(row{
		Out: toBool,
		Expr: exprs{Any: "true", Float: "metal::isfinite($0)",
			Complex: "metal::isfinite($0.real) && metal::isfinite($0.imag)"},
	})
}

var _ = sig.Unary("isnan", IsNaN)

// IsNaN reports of each element whether it is NaN (for complex64: whether a part is), as bool. Integers never are.
func IsNaN(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array { return isNaN.call(tensor.Call(ctx), a) }

var _ = sig.Unary("isinf", IsInf)

// IsInf reports of each element whether it is infinite (for complex64: whether a part is), as bool. Integers never are.
func IsInf(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array { return isInf.call(tensor.Call(ctx), a) }

var _ = sig.Unary("isfinite", IsFinite)

// IsFinite reports of each element whether it is neither infinite nor NaN (for complex64: both parts), as bool.
// Integers always are.
func IsFinite(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return isFinite.call(tensor.Call(ctx), a)
}
