package ops

import (
	"math"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

var (
	errorFunc    = unaryOp("erf")
	errorFuncInv = unaryOp("erfinv")
)

func init() {
	errorFunc.define(row{
		Arg:  kit.Refuse(kit.Inexact, "", tensor.Complex64),
		Expr: exprs{Float: "erf($0)"},
		Diff: scaledBy(2/math.SqrtPi, func(c *tensor.Ctx, p point) *tensor.Array {
			return Exp(Negative(Square(p.A, c), c), c)
		}),
	})
	errorFuncInv.define(row{
		Arg:  kit.Refuse(kit.Inexact, "", tensor.Complex64),
		Expr: exprs{Float: "erfinv($0)"},
		Diff: scaledBy(math.SqrtPi/2, func(c *tensor.Ctx, p point) *tensor.Array { return Exp(Square(p.Out, c), c) }),
	})
}

var _ = sig.Unary("erf", Erf)

// Erf is the error function of each element. Integers and bool give float32, other dtypes their own; complex64 is an
// error.
func Erf(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return errorFunc.call(tensor.Call(ctx), a)
}

var _ = sig.Unary("erfinv", ErfInv)

// ErfInv is the inverse of the error function: inf at 1, -inf at -1, NaN outside. Integers and bool give float32, other
// dtypes their own; complex64 is an error.
func ErfInv(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return errorFuncInv.call(tensor.Call(ctx), a)
}
