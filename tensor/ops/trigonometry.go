package ops

import (
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

var (
	sine       = unaryOp("sin")
	cosine     = unaryOp("cos")
	tangent    = unaryOp("tan")
	arcSine    = unaryOp("arcsin")
	arcCosine  = unaryOp("arccos")
	arcTangent = unaryOp("arctan")
	arcTan2    = binaryOp("arctan2")
)

func init() {
	sine.define(row{
		Arg:  kit.Inexact,
		Expr: exprs{Float: "metal::sin($0)", Complex: "complex_sin($0)"},
		Diff: []diff{func(c *tensor.Ctx, t *tensor.Array, p point) *tensor.Array {
			return Multiply(t, Cos(p.A, c), c)
		}},
	})
	cosine.define(row{
		Arg:  kit.Inexact,
		Expr: exprs{Float: "metal::cos($0)", Complex: "complex_cos($0)"},
		Diff: []diff{func(c *tensor.Ctx, t *tensor.Array, p point) *tensor.Array {
			return Negative(Multiply(t, Sin(p.A, c), c), c)
		}},
	})
	tangent.define(row{
		Arg:  kit.Inexact,
		Expr: exprs{Float: "metal::tan($0)", Complex: "complex_tan($0)"},
		Diff: scaledBy(1, func(c *tensor.Ctx, p point) *tensor.Array {
			return Add(Square(p.Out, c), Scalar(1, p.Out, c), c)
		}),
	})
	bySine := over(func(square, one *tensor.Array, c *tensor.Ctx) *tensor.Array {
		return Sqrt(Subtract(one, square, c), c)
	})
	arcSine.define(inverseRow("metal::asin($0)", "complex_asin($0)", bySine))
	arcCosine.define(inverseRow("metal::acos($0)", "complex_acos($0)",
		func(c *tensor.Ctx, t *tensor.Array, p point) *tensor.Array { return Negative(bySine(c, t, p), c) }))
	arcTangent.define(inverseRow("metal::atan($0)", "complex_atan($0)",
		over(func(square, one *tensor.Array, c *tensor.Ctx) *tensor.Array { return Add(one, square, c) })))
	// t * x / (a^2 + b^2) is the derivative by a, where x is b, and by b, where x is -a.
	by := func(x func(c *tensor.Ctx, p point) *tensor.Array) diff {
		return func(c *tensor.Ctx, t *tensor.Array, p point) *tensor.Array {
			return Divide(Multiply(t, x(c, p), c), Add(Square(p.A, c), Square(p.B, c), c), c)
		}
	}
	arcTan2.define(row{
		Arg:  kit.Refuse(kit.Inexact, "", tensor.Complex64),
		Expr: exprs{Float: "metal::atan2($0, $1)"},
		Diff: []diff{
			by(func(_ *tensor.Ctx, p point) *tensor.Array { return p.B }),
			by(func(c *tensor.Ctx, p point) *tensor.Array { return Negative(p.A, c) }),
		},
	})
}

// inverseRow is the row of the inverse of a function.
func inverseRow(float, complex string, d diff) row {
	return row{Arg: kit.Inexact, Expr: exprs{Float: float, Complex: complex}, Diff: []diff{d}}
}

// over is t / f(a^2, 1).
func over(f func(square, one *tensor.Array, c *tensor.Ctx) *tensor.Array) diff {
	return func(c *tensor.Ctx, t *tensor.Array, p point) *tensor.Array {
		return Divide(t, f(Square(p.A, c), Scalar(1, p.A, c), c), c)
	}
}

var _ = sig.Unary("sin", Sin)

// Sin is the sine of each element, in radians. Integers and bool give float32, other dtypes their own.
func Sin(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array { return sine.call(tensor.Call(ctx), a) }

var _ = sig.Unary("cos", Cos)

// Cos is the cosine of each element, in radians. Integers and bool give float32, other dtypes their own.
func Cos(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array { return cosine.call(tensor.Call(ctx), a) }

var _ = sig.Unary("tan", Tan)

// Tan is the tangent of each element, in radians. Integers and bool give float32, other dtypes their own.
func Tan(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array { return tangent.call(tensor.Call(ctx), a) }

var _ = sig.Unary("arcsin", ArcSin)
var _ = sig.Alias("asin", "arcsin")

// ArcSin is the angle, in radians, whose sine each element is: between -pi/2 and pi/2, NaN outside [-1, 1]. Integers
// and bool give float32, other dtypes their own.
func ArcSin(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return arcSine.call(tensor.Call(ctx), a)
}

var _ = sig.Unary("arccos", ArcCos)
var _ = sig.Alias("acos", "arccos")

// ArcCos is the angle, in radians, whose cosine each element is: between 0 and pi, NaN outside [-1, 1]. Integers and
// bool give float32, other dtypes their own.
func ArcCos(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return arcCosine.call(tensor.Call(ctx), a)
}

var _ = sig.Unary("arctan", ArcTan)
var _ = sig.Alias("atan", "arctan")

// ArcTan is the angle, in radians, whose tangent each element is: between -pi/2 and pi/2; [ArcTan2] knows the quadrant
// too. Integers and bool give float32, other dtypes their own.
func ArcTan(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return arcTangent.call(tensor.Call(ctx), a)
}

var _ = sig.Binary("arctan2", ArcTan2)
var _ = sig.Alias("atan2", "arctan2")

// ArcTan2 is the angle of the point (b, a), element by element, in radians from -pi to pi: the arc tangent of a/b in
// the quadrant of the two signs, 0 or pi with a's sign where a is 0. Shapes are broadcast. Integers and bool give
// float32, other dtypes the common one; complex64 is an error. The derivative at (0, 0) is NaN.
func ArcTan2(a, b *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return arcTan2.call(tensor.Call(ctx), a, b)
}
