package ops

import "github.com/mlxlua/mlxlua/tensor"

var (
	arcSine         = unaryOp("arcsin")
	arcCosine       = unaryOp("arccos")
	arcTangent      = unaryOp("arctan")
	hyperArcSine    = unaryOp("arcsinh")
	hyperArcCosine  = unaryOp("arccosh")
	hyperArcTangent = unaryOp("arctanh")
)

func init() {
	inverse := func(op *elementwise, float, complex string, d diff) {
		op.define(row{Arg: inexact, Expr: exprs{Float: float, Complex: complex}, Diff: []diff{d}})
	}
	// over is t / f(a^2, 1).
	over := func(f func(square, one *tensor.Array, c *tensor.Ctx) *tensor.Array) diff {
		return func(c *tensor.Ctx, t *tensor.Array, p point) *tensor.Array {
			return Divide(t, f(Square(p.A, c), Scalar(1, p.A, c), c), c)
		}
	}
	sine := over(func(square, one *tensor.Array, c *tensor.Ctx) *tensor.Array {
		return Sqrt(Subtract(one, square, c), c)
	})
	inverse(arcSine, "metal::asin($0)", "complex_asin($0)", sine)
	inverse(arcCosine, "metal::acos($0)", "complex_acos($0)",
		func(c *tensor.Ctx, t *tensor.Array, p point) *tensor.Array { return Negative(sine(c, t, p), c) })
	inverse(arcTangent, "metal::atan($0)", "complex_atan($0)",
		over(func(square, one *tensor.Array, c *tensor.Ctx) *tensor.Array { return Add(one, square, c) }))
	inverse(hyperArcSine, "metal::asinh($0)", "complex_asinh($0)",
		over(func(square, one *tensor.Array, c *tensor.Ctx) *tensor.Array { return Sqrt(Add(square, one, c), c) }))
	cosine := over(func(square, one *tensor.Array, c *tensor.Ctx) *tensor.Array {
		return Sqrt(Subtract(square, one, c), c)
	})
	inverse(hyperArcCosine, "metal::acosh($0)", "complex_acosh($0)",
		func(c *tensor.Ctx, t *tensor.Array, p point) *tensor.Array {
			if !t.DType().IsComplex() {
				return cosine(c, t, p)
			}
			one := Scalar(1, p.A, c) // a root of a^2 - 1 would have the other sign where a's real part is negative
			low, high := Sqrt(Subtract(p.A, one, c), c), Sqrt(Add(p.A, one, c), c)
			return Divide(t, Multiply(low, high, c), c)
		})
	inverse(hyperArcTangent, "metal::atanh($0)", "complex_atanh($0)",
		over(func(square, one *tensor.Array, c *tensor.Ctx) *tensor.Array { return Subtract(one, square, c) }))
}

// ArcSin is the angle, in radians, whose sine each element is: between -pi/2 and pi/2, NaN outside [-1, 1]. Integers
// and bool give float32, other dtypes their own.
func ArcSin(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return arcSine.call(tensor.Call(ctx), a)
}

// ArcCos is the angle, in radians, whose cosine each element is: between 0 and pi, NaN outside [-1, 1]. Integers and
// bool give float32, other dtypes their own.
func ArcCos(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return arcCosine.call(tensor.Call(ctx), a)
}

// ArcTan is the angle, in radians, whose tangent each element is: between -pi/2 and pi/2; ArcTan2 knows the quadrant
// too. Integers and bool give float32, other dtypes their own.
func ArcTan(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return arcTangent.call(tensor.Call(ctx), a)
}

// ArcSinh is the number whose hyperbolic sine each element is. Integers and bool give float32, other dtypes their own.
func ArcSinh(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return hyperArcSine.call(tensor.Call(ctx), a)
}

// ArcCosh is the positive number whose hyperbolic cosine each element is: NaN below 1. Integers and bool give float32,
// other dtypes their own.
func ArcCosh(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return hyperArcCosine.call(tensor.Call(ctx), a)
}

// ArcTanh is the number whose hyperbolic tangent each element is: inf at 1, -inf at -1, NaN outside. Integers and bool
// give float32, other dtypes their own.
func ArcTanh(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return hyperArcTangent.call(tensor.Call(ctx), a)
}
