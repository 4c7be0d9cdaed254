package ops

import (
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

var (
	negative = unaryOp("negative")
	absolute = unaryOp("abs")
	sign     = unaryOp("sign")
)

func init() {
	negative.define(row{
		Arg:  kit.Refuse(kit.AnyDType, ": use logical_not", tensor.Bool),
		Expr: exprs{Any: "-$0"},
		Diff: []diff{func(c *tensor.Ctx, t *tensor.Array, _ point) *tensor.Array { return Negative(t, c) }},
	})
	absolute.define(row{
		Out: realPart,
		Expr: exprs{Bool: "$0", Unsigned: "$0", Int: "$0 < 0 ? -$0 : $0", Float: "metal::fabs($0)",
			Complex: "complex_abs($0)"},
		Gradient: absGradient, Tangent: absTangent,
	})
	sign.define(row{
		Expr: exprs{Bool: "$0", Unsigned: "$0 > 0 ? 1 : 0", Any: "$0 > 0 ? 1 : ($0 < 0 ? -1 : 0)",
			Complex: "complex_sign($0)"},
	})
}

// absGradient is cot * sign(x): sign is x/|x| for complex x, where |x| has no complex derivative.
func absGradient(g *tensor.VJP[tensor.None]) *tensor.Array {
	return Multiply(g.Cot[0], Sign(g.In[0], g.Ctx), g.Ctx)
}

// absTangent is the real part of conj(sign(x)) * tan.
func absTangent(g *tensor.JVP[tensor.None]) *tensor.Array {
	t := Multiply(conj(g.Ctx, Sign(g.In[0], g.Ctx)), g.Tan[0], g.Ctx)
	return AsType(t, g.Out[0].DType(), g.Ctx)
}

var _ = sig.Unary("negative", Negative)

// Negative is -a, element by element, in a's dtype; unsigned integers wrap around. Bool is an error: see [LogicalNot].
func Negative(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return negative.call(tensor.Call(ctx), a)
}

var _ = sig.Unary("abs", Abs)

// Abs is the absolute value of each element, in a's dtype; of complex64, the modulus as float32. The smallest signed
// integer stays itself. The derivative at 0 is 0.
func Abs(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return absolute.call(tensor.Call(ctx), a)
}

var _ = sig.Unary("sign", Sign)

// Sign is 1, 0 or -1 by each element's sign, in a's dtype; a/|a| for complex64 (0 at 0). NaN gives 0.
func Sign(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array { return sign.call(tensor.Call(ctx), a) }

var _ = sig.Unary("positive", Positive)

// Positive is a as it is.
func Positive(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	if f := kit.Unusable(tensor.Call(ctx), "positive", a); f != nil {
		return f
	}
	return a
}
