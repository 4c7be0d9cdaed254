package ops

import "github.com/mlxlua/mlxlua/tensor"

var (
	negative   = unaryOp("negative")
	absolute   = unaryOp("abs")
	sign       = unaryOp("sign")
	square     = unaryOp("square")
	floor      = unaryOp("floor")
	conjugate  = unaryOp("conjugate")
	isNaN      = unaryOp("isnan")
	isInf      = unaryOp("isinf")
	logicalNot = unaryOp("logical_not")
)

func init() {
	negative.define(row{
		Arg:  refuse(anyDType, ": use logical_not", tensor.Bool),
		Expr: exprs{Any: "-$0"},
		Diff: []diff{func(c *tensor.Ctx, t *tensor.Array, _ point) *tensor.Array { return Negative(t, c) }},
	})
	absolute.define(row{
		Out: realPart,
		Expr: exprs{Bool: "$0", Unsigned: "$0", Int: "$0 < 0 ? -$0 : $0", Float: "metal::fabs($0)",
			Complex: "complex_abs($0)"},
		VJP: absVJP, JVP: absJVP,
	})
	sign.define(row{
		Expr: exprs{Bool: "$0", Unsigned: "$0 > 0 ? 1 : 0", Any: "$0 > 0 ? 1 : ($0 < 0 ? -1 : 0)",
			Complex: "complex_sign($0)"},
	})
	square.define(row{
		Expr: exprs{Any: "$0 * $0"},
		Diff: []diff{func(c *tensor.Ctx, t *tensor.Array, p point) *tensor.Array {
			return Multiply(t, Add(p.A, p.A, c), c)
		}},
	})
	floor.define(row{
		Arg:  refuse(anyDType, "", tensor.Complex64),
		Expr: exprs{Any: "$0", Float: "metal::floor($0)"},
	})
	conjugate.define(row{
		Expr: exprs{Any: "$0", Complex: "complex64_t($0.real, -$0.imag)"},
		VJP: func(g *tensor.VJP[tensor.None]) []*tensor.Array {
			if g.Cot[0] == nil {
				return []*tensor.Array{nil}
			}
			return []*tensor.Array{Conjugate(g.Cot[0], g.Ctx)}
		},
		JVP: func(g *tensor.JVP[tensor.None]) []*tensor.Array {
			if g.Tan[0] == nil {
				return []*tensor.Array{nil}
			}
			return []*tensor.Array{Conjugate(g.Tan[0], g.Ctx)}
		},
	})
	isNaN.define(row{
		Out:  toBool,
		Expr: exprs{Any: "false", Float: "metal::isnan($0)", Complex: "metal::isnan($0.real) || metal::isnan($0.imag)"},
	})
	isInf.define(row{
		Out:  toBool,
		Expr: exprs{Any: "false", Float: "metal::isinf($0)", Complex: "metal::isinf($0.real) || metal::isinf($0.imag)"},
	})
	logicalNot.define(row{Arg: asBool, Expr: exprs{Any: "!$0"}})
}

// absVJP is cot * sign(x): sign is x/|x| for complex x, where |x| has no complex derivative.
func absVJP(g *tensor.VJP[tensor.None]) []*tensor.Array {
	if g.Cot[0] == nil {
		return []*tensor.Array{nil}
	}
	return []*tensor.Array{Multiply(g.Cot[0], Sign(g.In[0], g.Ctx), g.Ctx)}
}

// absJVP is the real part of conj(sign(x)) * tan.
func absJVP(g *tensor.JVP[tensor.None]) []*tensor.Array {
	t := g.Tan[0]
	if t == nil {
		return []*tensor.Array{nil}
	}
	t = Multiply(conj(g.Ctx, Sign(g.In[0], g.Ctx)), t, g.Ctx)
	return []*tensor.Array{AsType(t, g.Out[0].DType(), g.Ctx)}
}

// Negative is -a, element by element, in a's dtype; unsigned integers wrap around. Bool is an error: see LogicalNot.
func Negative(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return negative.call(tensor.Call(ctx), a)
}

// Abs is the absolute value of each element, in a's dtype; of complex64, the modulus as float32. The smallest signed
// integer stays itself. The derivative at 0 is 0.
func Abs(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return absolute.call(tensor.Call(ctx), a)
}

// Sign is 1, 0 or -1 by each element's sign, in a's dtype; a/|a| for complex64 (0 at 0). NaN gives 0.
func Sign(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array { return sign.call(tensor.Call(ctx), a) }

// Square is a*a, element by element, in a's dtype; integers wrap around.
func Square(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return square.call(tensor.Call(ctx), a)
}

// Floor is the greatest whole number that is not above each element, in a's dtype; integers stay. Complex64 is an
// error.
func Floor(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array { return floor.call(tensor.Call(ctx), a) }

// Conjugate changes the sign of the imaginary part of each element of a complex64 array; other arrays stay.
func Conjugate(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return conjugate.call(tensor.Call(ctx), a)
}

// IsNaN says of each element whether it is NaN (for complex64: whether a part is), as bool. Integers never are.
func IsNaN(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array { return isNaN.call(tensor.Call(ctx), a) }

// IsInf says of each element whether it is infinite (for complex64: whether a part is), as bool. Integers never are.
func IsInf(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array { return isInf.call(tensor.Call(ctx), a) }

// LogicalNot is true where an element is zero, as bool. NaN counts as true.
func LogicalNot(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return logicalNot.call(tensor.Call(ctx), a)
}
