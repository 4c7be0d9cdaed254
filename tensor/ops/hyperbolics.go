package ops

import (
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

var (
	hyperSine       = unaryOp("sinh")
	hyperCosine     = unaryOp("cosh")
	hyperTan        = unaryOp("tanh")
	hyperArcSine    = unaryOp("arcsinh")
	hyperArcCosine  = unaryOp("arccosh")
	hyperArcTangent = unaryOp("arctanh")
)

func init() {
	hyperSine.define(row{
		Arg:  kit.Inexact,
		Expr: exprs{Float: "metal::sinh($0)", Complex: "complex_sinh($0)"},
		Diff: scaledBy(1, func(c *tensor.Ctx, p point) *tensor.Array { return Cosh(p.A, c) }),
	})
	hyperCosine.define(row{
		Arg:  kit.Inexact,
		Expr: exprs{Float: "metal::cosh($0)", Complex: "complex_cosh($0)"},
		Diff: scaledBy(1, func(c *tensor.Ctx, p point) *tensor.Array { return Sinh(p.A, c) }),
	})
	hyperTan.define(row{
		Arg:  kit.Inexact,
		Expr: exprs{Float: "metal::tanh($0)", Complex: "complex_tanh($0)"},
		Diff: []diff{func(c *tensor.Ctx, t *tensor.Array, p point) *tensor.Array {
			return Multiply(t, Subtract(Scalar(1, p.Out, c), Square(p.Out, c), c), c)
		}},
	})
	hyperArcSine.define(inverseRow("metal::asinh($0)", "complex_asinh($0)",
		over(func(square, one *tensor.Array, c *tensor.Ctx) *tensor.Array { return Sqrt(Add(square, one, c), c) })))
	byCosine := over(func(square, one *tensor.Array, c *tensor.Ctx) *tensor.Array {
		return Sqrt(Subtract(square, one, c), c)
	})
	hyperArcCosine.define(inverseRow("metal::acosh($0)", "complex_acosh($0)",
		func(c *tensor.Ctx, t *tensor.Array, p point) *tensor.Array {
			if !t.DType().IsComplex() {
				return byCosine(c, t, p)
			}
			one := Scalar(1, p.A, c) // a root of a^2 - 1 would have the other sign where a's real part is negative
			low, high := Sqrt(Subtract(p.A, one, c), c), Sqrt(Add(p.A, one, c), c)
			return Divide(t, Multiply(low, high, c), c)
		}))
	hyperArcTangent.define(inverseRow("metal::atanh($0)", "complex_atanh($0)",
		over(func(square, one *tensor.Array, c *tensor.Ctx) *tensor.Array { return Subtract(one, square, c) })))
}

var _ = sig.Unary("sinh", Sinh)

// Sinh is the hyperbolic sine of each element. Integers and bool give float32, other dtypes their own.
func Sinh(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return hyperSine.call(tensor.Call(ctx), a)
}

var _ = sig.Unary("cosh", Cosh)

// Cosh is the hyperbolic cosine of each element. Integers and bool give float32, other dtypes their own.
func Cosh(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return hyperCosine.call(tensor.Call(ctx), a)
}

var _ = sig.Unary("tanh", Tanh)

// Tanh is the hyperbolic tangent of each element. Integers and bool give float32, other dtypes their own. The
// derivative is 1 - tanh(a)^2.
func Tanh(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return hyperTan.call(tensor.Call(ctx), a)
}

var _ = sig.Unary("arcsinh", ArcSinh)
var _ = sig.Alias("asinh", "arcsinh")

// ArcSinh is the number whose hyperbolic sine each element is. Integers and bool give float32, other dtypes their own.
func ArcSinh(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return hyperArcSine.call(tensor.Call(ctx), a)
}

var _ = sig.Unary("arccosh", ArcCosh)
var _ = sig.Alias("acosh", "arccosh")

// ArcCosh is the positive number whose hyperbolic cosine each element is: NaN below 1. Integers and bool give float32,
// other dtypes their own.
func ArcCosh(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return hyperArcCosine.call(tensor.Call(ctx), a)
}

var _ = sig.Unary("arctanh", ArcTanh)
var _ = sig.Alias("atanh", "arctanh")

// ArcTanh is the number whose hyperbolic tangent each element is: inf at 1, -inf at -1, NaN outside. Integers and bool
// give float32, other dtypes their own.
func ArcTanh(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return hyperArcTangent.call(tensor.Call(ctx), a)
}
