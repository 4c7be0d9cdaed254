package ops

import "github.com/mlxlua/mlxlua/tensor"

var (
	exponential = unaryOp("exp")
	logarithm   = unaryOp("log")
	squareRoot  = unaryOp("sqrt")
	rootInverse = unaryOp("rsqrt")
	sine        = unaryOp("sin")
	cosine      = unaryOp("cos")
	hyperTan    = unaryOp("tanh")
	sigmoid     = unaryOp("sigmoid")
)

func init() {
	exponential.define(row{
		Arg:  inexact,
		Expr: exprs{Float: "metal::exp($0)", Complex: "complex_exp($0)"},
		Diff: []diff{func(c *tensor.Ctx, t *tensor.Array, p point) *tensor.Array { return Multiply(t, p.Out, c) }},
	})
	logarithm.define(row{
		Arg:  inexact,
		Expr: exprs{Float: "metal::log($0)", Complex: "complex_log($0)"},
		Diff: []diff{func(c *tensor.Ctx, t *tensor.Array, p point) *tensor.Array { return Divide(t, p.A, c) }},
	})
	squareRoot.define(row{
		Arg:  inexact,
		Expr: exprs{Float: "metal::sqrt($0)", Complex: "complex_sqrt($0)"},
		Diff: []diff{func(c *tensor.Ctx, t *tensor.Array, p point) *tensor.Array {
			return Divide(t, Add(p.Out, p.Out, c), c)
		}},
	})
	rootInverse.define(row{
		Arg:  inexact,
		Expr: exprs{Float: "metal::rsqrt($0)", Complex: "complex64_t(1.0f, 0.0f) / complex_sqrt($0)"},
		Diff: []diff{func(c *tensor.Ctx, t *tensor.Array, p point) *tensor.Array { // -t / (2 a sqrt(a))
			return Divide(Multiply(t, p.Out, c), Multiply(Scalar(-2, p.A, c), p.A, c), c)
		}},
	})
	sine.define(row{
		Arg:  inexact,
		Expr: exprs{Float: "metal::sin($0)", Complex: "complex_sin($0)"},
		Diff: []diff{func(c *tensor.Ctx, t *tensor.Array, p point) *tensor.Array {
			return Multiply(t, Cos(p.A, c), c)
		}},
	})
	cosine.define(row{
		Arg:  inexact,
		Expr: exprs{Float: "metal::cos($0)", Complex: "complex_cos($0)"},
		Diff: []diff{func(c *tensor.Ctx, t *tensor.Array, p point) *tensor.Array {
			return Negative(Multiply(t, Sin(p.A, c), c), c)
		}},
	})
	hyperTan.define(row{
		Arg:  inexact,
		Expr: exprs{Float: "metal::tanh($0)", Complex: "complex_tanh($0)"},
		Diff: []diff{func(c *tensor.Ctx, t *tensor.Array, p point) *tensor.Array {
			return Multiply(t, Subtract(Scalar(1, p.Out, c), Square(p.Out, c), c), c)
		}},
	})
	sigmoid.define(row{
		Arg: refuse(inexact, "", tensor.Complex64),
		// For negative x the exponential grows: 1/(1+inf) is 0, as it should be, and nothing cancels.
		Expr: exprs{Float: "1 / (1 + metal::exp(-$0))"},
		Diff: []diff{func(c *tensor.Ctx, t *tensor.Array, p point) *tensor.Array {
			return Multiply(t, Multiply(p.Out, Subtract(Scalar(1, p.Out, c), p.Out, c), c), c)
		}},
	})
}

// Exp is e to the power of each element. Integers and bool give float32, other dtypes their own. The derivative is
// the result itself.
func Exp(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return exponential.call(tensor.Call(ctx), a)
}

// Log is the natural logarithm of each element: -inf at 0, NaN below, the principal branch for complex64. Integers
// and bool give float32, other dtypes their own. The derivative is 1/a.
func Log(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return logarithm.call(tensor.Call(ctx), a)
}

// Sqrt is the square root of each element, correctly rounded: NaN below 0, the principal branch for complex64.
// Integers and bool give float32, other dtypes their own. The derivative is 1/(2 sqrt(a)).
func Sqrt(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return squareRoot.call(tensor.Call(ctx), a)
}

// Rsqrt is 1/sqrt(a), element by element: inf at 0, NaN for negative numbers. Integers and bool give float32, other
// dtypes their own.
func Rsqrt(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return rootInverse.call(tensor.Call(ctx), a)
}

// Sin is the sine of each element, in radians. Integers and bool give float32, other dtypes their own.
func Sin(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array { return sine.call(tensor.Call(ctx), a) }

// Cos is the cosine of each element, in radians. Integers and bool give float32, other dtypes their own.
func Cos(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array { return cosine.call(tensor.Call(ctx), a) }

// Tanh is the hyperbolic tangent of each element. Integers and bool give float32, other dtypes their own. The
// derivative is 1 - tanh(a)^2.
func Tanh(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return hyperTan.call(tensor.Call(ctx), a)
}

// Sigmoid is 1/(1+exp(-a)), element by element. Integers and bool give float32, other dtypes their own; complex64
// is an error. The derivative is s(1-s) for the result s.
func Sigmoid(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return sigmoid.call(tensor.Call(ctx), a)
}
