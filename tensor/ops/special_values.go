package ops

import (
	"math"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

var (
	isNaN    = unaryOp("isnan")
	isInf    = unaryOp("isinf")
	isFinite = unaryOp("isfinite")
	isPosInf = unaryOp("isposinf")
	isNegInf = unaryOp("isneginf")
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
	signed := func(relation string) exprs {
		return exprs{Any: "false", Float: "metal::isinf($0) && $0 " + relation + " 0",
			Complex: "metal::isinf($0.real) && $0.real " + relation + " 0 && $0.imag == 0"}
	}
	isPosInf.define(row{Out: toBool, Expr: signed(">")})
	isNegInf.define(row{Out: toBool, Expr: signed("<")})
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

var _ = sig.Unary("isposinf", IsPosInf)

// IsPosInf reports of each element whether it is inf, as bool. Integers never are; of complex64, inf+0i is.
func IsPosInf(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return isPosInf.call(tensor.Call(ctx), a)
}

var _ = sig.Unary("isneginf", IsNegInf)

// IsNegInf reports of each element whether it is -inf, as bool. Integers never are; of complex64, -inf+0i is.
func IsNegInf(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return isNegInf.call(tensor.Call(ctx), a)
}

var _ = sig.Def("nan_to_num", "a:operand nan:number=0 posinf:number? neginf:number?", func(a *sig.Args) any {
	return NaNToNum(a.Array(0), a.Number(1), a.NumberOrNone(2), a.NumberOrNone(3), a.Ctx)
})

// NaNToNum is a with nan in the place of NaN, posinf in that of inf and neginf in that of -inf, in a's dtype; integers
// and bool stay. Where posinf or neginf is nil it is the dtype's greatest or least finite number; float64 and complex64
// have none, as in MLX: there both must be given. Of complex64, NaN is what has a part that is NaN, and inf is inf+0i
// alone. The gradient flows to the elements that stay.
func NaNToNum(a *tensor.Array, nan float64, posinf, neginf *float64, ctx ...*tensor.Ctx) *tensor.Array {
	const op = "nan_to_num"
	c := tensor.Call(ctx)
	if f := kit.Unusable(c, op, a); f != nil {
		return f
	}
	d := a.DType()
	if !d.IsInexact() {
		return a
	}
	if (posinf == nil || neginf == nil) && (d == tensor.Float64 || d.IsComplex()) {
		return tensor.Fail(c, op, "%v has no posinf and neginf of its own: give both", d)
	}
	or := func(v *float64, otherwise float64) *tensor.Array {
		if v != nil {
			otherwise = *v
		}
		return Number(otherwise, d, c)
	}
	inf := func(sign int) *tensor.Array { return Equal(a, Number(math.Inf(sign), d, c), c) }
	x := Where(inf(-1), or(neginf, -d.MaxFinite()), a, c)
	x = Where(inf(1), or(posinf, d.MaxFinite()), x, c)
	return Where(IsNaN(a, c), Number(nan, d, c), x, c)
}
