package ops

import (
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

var (
	square      = unaryOp("square")
	squareRoot  = unaryOp("sqrt")
	rootInverse = unaryOp("rsqrt")
	reciprocal  = unaryOp("reciprocal")
	power       = binaryOp("power")
)

func init() {
	square.define(row{
		Expr: exprs{Any: "$0 * $0"},
		Diff: []diff{func(c *tensor.Ctx, t *tensor.Array, p point) *tensor.Array {
			return Multiply(t, Add(p.A, p.A, c), c)
		}},
	})
	squareRoot.define(row{
		Arg:  kit.Inexact,
		Expr: exprs{Float: "metal::sqrt($0)", Complex: "complex_sqrt($0)"},
		Diff: []diff{func(c *tensor.Ctx, t *tensor.Array, p point) *tensor.Array {
			return Divide(t, Add(p.Out, p.Out, c), c)
		}},
	})
	rootInverse.define(row{
		Arg:  kit.Inexact,
		Expr: exprs{Float: "metal::rsqrt($0)", Complex: "complex64_t(1.0f, 0.0f) / complex_sqrt($0)"},
		Diff: []diff{func(c *tensor.Ctx, t *tensor.Array, p point) *tensor.Array { // -t / (2 a sqrt(a))
			return Divide(Multiply(t, p.Out, c), Multiply(Scalar(-2, p.A, c), p.A, c), c)
		}},
	})
	reciprocal.define(row{
		Arg:  kit.Inexact,
		Expr: exprs{Any: "1 / $0", Complex: "complex64_t(1.0f, 0.0f) / $0"},
		Diff: scaledBy(-1, func(c *tensor.Ctx, p point) *tensor.Array { return Square(p.Out, c) }),
	})
	power.define(row{
		Expr: exprs{Bool: "$0 || !$1", Int: "integer_power($0, $1)", Float: "metal::pow($0, $1)",
			Complex: "complex_pow($0, $1)"},
		Diff: []diff{powerByBase, powerByExponent},
	})
}

// powerByBase is t * b * a^(b-1).
func powerByBase(c *tensor.Ctx, t *tensor.Array, p point) *tensor.Array {
	return Multiply(t, Multiply(p.B, Power(p.A, Subtract(p.B, Scalar(1, p.B, c), c), c), c), c)
}

// powerByExponent is t * log(a) * a^b, and 0 where a^b is 0, as in MLX: there log(a) would make it NaN.
func powerByExponent(c *tensor.Ctx, t *tensor.Array, p point) *tensor.Array {
	d := Multiply(t, Multiply(Log(p.A, c), p.Out, c), c)
	zero := Scalar(0, p.Out, c)
	return Where(Equal(p.Out, zero, c), AsType(zero, d.DType(), c), d, c)
}

var _ = sig.Unary("square", Square)

// Square is a*a, element by element, in a's dtype; integers wrap around.
func Square(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return square.call(tensor.Call(ctx), a)
}

var _ = sig.Unary("sqrt", Sqrt)

// Sqrt is the square root of each element, correctly rounded: NaN below 0, the principal branch for complex64.
// Integers and bool give float32, other dtypes their own. The derivative is 1/(2 sqrt(a)).
func Sqrt(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return squareRoot.call(tensor.Call(ctx), a)
}

var _ = sig.Unary("rsqrt", Rsqrt)

// Rsqrt is 1/sqrt(a), element by element: inf at 0, NaN for negative numbers. Integers and bool give float32, other
// dtypes their own.
func Rsqrt(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return rootInverse.call(tensor.Call(ctx), a)
}

var _ = sig.Unary("reciprocal", Reciprocal)

// Reciprocal is 1/a, element by element: inf at 0. Integers and bool give float32, other dtypes their own.
func Reciprocal(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return reciprocal.call(tensor.Call(ctx), a)
}

var _ = sig.Binary("power", Power)
var _ = sig.Alias("pow", "power")

// Power is a to the power of b, element by element, in the operands' common dtype. Shapes are broadcast. Integers
// wrap around, and give 0 for negative exponents. Floats follow C's pow: NaN for a negative base and an exponent
// that is not whole, 1 for exponent 0.
func Power(a, b *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return power.call(tensor.Call(ctx), a, b)
}
