package ops

import (
	"math"

	"github.com/mlxlua/mlxlua/tensor"
)

var (
	expMinus1    = unaryOp("expm1")
	log1Plus     = unaryOp("log1p")
	logBase2     = unaryOp("log2")
	logBase10    = unaryOp("log10")
	logAddExp    = binaryOp("logaddexp")
	reciprocal   = unaryOp("reciprocal")
	tangent      = unaryOp("tan")
	hyperSine    = unaryOp("sinh")
	hyperCosine  = unaryOp("cosh")
	errorFunc    = unaryOp("erf")
	errorFuncInv = unaryOp("erfinv")
	ceiling      = unaryOp("ceil")
	isFinite     = unaryOp("isfinite")
)

// scaledBy is a derivative: t times k f(p).
func scaledBy(k float64, f func(c *tensor.Ctx, p point) *tensor.Array) []diff {
	return []diff{func(c *tensor.Ctx, t *tensor.Array, p point) *tensor.Array {
		x := f(c, p)
		return Multiply(t, Multiply(Scalar(k, x, c), x, c), c)
	}}
}

func init() {
	expMinus1.define(row{
		Arg:  refuse(inexact, "", tensor.Complex64),
		Expr: exprs{Float: "expm1f($0)"},
		Diff: scaledBy(1, func(c *tensor.Ctx, p point) *tensor.Array { return Exp(p.A, c) }),
	})
	log1Plus.define(row{
		Arg:  inexact,
		Expr: exprs{Float: "log1p($0)", Complex: "log1p($0)"},
		Diff: []diff{func(c *tensor.Ctx, t *tensor.Array, p point) *tensor.Array {
			return Divide(t, Add(p.A, Scalar(1, p.A, c), c), c)
		}},
	})
	inverse := func(c *tensor.Ctx, p point) *tensor.Array { return Reciprocal(p.A, c) }
	logBase2.define(row{
		Arg: inexact,
		Expr: exprs{Float: "metal::log2($0)",
			Complex: "complex_log($0) * complex64_t(1.44269504f, 0.0f)"},
		Diff: scaledBy(math.Log2E, inverse),
	})
	logBase10.define(row{
		Arg: inexact,
		Expr: exprs{Float: "metal::log10($0)",
			Complex: "complex_log($0) * complex64_t(0.434294482f, 0.0f)"},
		Diff: scaledBy(math.Log10E, inverse),
	})
	defineLogAddExp()
	reciprocal.define(row{
		Arg:  inexact,
		Expr: exprs{Any: "1 / $0", Complex: "complex64_t(1.0f, 0.0f) / $0"},
		Diff: scaledBy(-1, func(c *tensor.Ctx, p point) *tensor.Array { return Square(p.Out, c) }),
	})
	tangent.define(row{
		Arg:  inexact,
		Expr: exprs{Float: "metal::tan($0)", Complex: "complex_tan($0)"},
		Diff: scaledBy(1, func(c *tensor.Ctx, p point) *tensor.Array {
			return Add(Square(p.Out, c), Scalar(1, p.Out, c), c)
		}),
	})
	hyperSine.define(row{
		Arg:  inexact,
		Expr: exprs{Float: "metal::sinh($0)", Complex: "complex_sinh($0)"},
		Diff: scaledBy(1, func(c *tensor.Ctx, p point) *tensor.Array { return Cosh(p.A, c) }),
	})
	hyperCosine.define(row{
		Arg:  inexact,
		Expr: exprs{Float: "metal::cosh($0)", Complex: "complex_cosh($0)"},
		Diff: scaledBy(1, func(c *tensor.Ctx, p point) *tensor.Array { return Sinh(p.A, c) }),
	})
	errorFunc.define(row{
		Arg:  refuse(inexact, "", tensor.Complex64),
		Expr: exprs{Float: "erf($0)"},
		Diff: scaledBy(2/math.SqrtPi, func(c *tensor.Ctx, p point) *tensor.Array {
			return Exp(Negative(Square(p.A, c), c), c)
		}),
	})
	errorFuncInv.define(row{
		Arg:  refuse(inexact, "", tensor.Complex64),
		Expr: exprs{Float: "erfinv($0)"},
		Diff: scaledBy(math.SqrtPi/2, func(c *tensor.Ctx, p point) *tensor.Array { return Exp(Square(p.Out, c), c) }),
	})
	ceiling.define(row{
		Arg:  refuse(anyDType, "", tensor.Complex64),
		Expr: exprs{Any: "$0", Float: "metal::ceil($0)"},
	})
	isFinite.define(row{
		Out: toBool,
		Expr: exprs{Any: "true", Float: "metal::isfinite($0)",
			Complex: "metal::isfinite($0.real) && metal::isfinite($0.imag)"},
	})
}

func defineLogAddExp() {
	// The smaller exponent is taken relative to the larger one, unless that is infinite.
	const real = "$0 != $0 || $1 != $1 ? $0 + $1 : (metal::fmin($0, $1) == -INFINITY || metal::fmax($0, $1) == INFINITY" +
		" ? metal::fmax($0, $1) : metal::fmax($0, $1) + log1p(metal::exp(-metal::fabs($0 - $1))))"
	const sum = " + log1p(complex_exp("
	const complex = "$0.real > $1.real ? ($1.real == -INFINITY || $0.real == INFINITY ? $0 : $0" + sum + "$1 - $0))) : " +
		"($0.real == -INFINITY || $1.real == INFINITY ? $1 : $1" + sum + "$0 - $1)))"
	share := func(mine, other func(p point) *tensor.Array) diff {
		return func(c *tensor.Ctx, t *tensor.Array, p point) *tensor.Array {
			if t.DType().IsComplex() {
				return Multiply(t, Exp(Subtract(mine(p), p.Out, c), c), c)
			}
			return Multiply(t, Sigmoid(Subtract(mine(p), other(p), c), c), c)
		}
	}
	a, b := func(p point) *tensor.Array { return p.A }, func(p point) *tensor.Array { return p.B }
	logAddExp.define(row{
		Arg:  inexact,
		Expr: exprs{Float: real, Complex: complex},
		Diff: []diff{share(a, b), share(b, a)},
	})
}

// Expm1 is exp(a) - 1, element by element, without the loss of places near 0. Integers and bool give float32, other
// dtypes their own; complex64 is an error.
func Expm1(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return expMinus1.call(tensor.Call(ctx), a)
}

// Log1p is log(1 + a), element by element, without the loss of places near 0: see Log.
func Log1p(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return log1Plus.call(tensor.Call(ctx), a)
}

// Log2 is the logarithm of each element to base 2: see Log.
func Log2(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return logBase2.call(tensor.Call(ctx), a)
}

// Log10 is the logarithm of each element to base 10: see Log.
func Log10(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return logBase10.call(tensor.Call(ctx), a)
}

// LogAddExp is log(exp(a) + exp(b)), element by element, without overflow; shapes are broadcast. Integers and bool give
// float32, other dtypes the common one.
func LogAddExp(a, b *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return logAddExp.call(tensor.Call(ctx), a, b)
}

// Reciprocal is 1/a, element by element: inf at 0. Integers and bool give float32, other dtypes their own.
func Reciprocal(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return reciprocal.call(tensor.Call(ctx), a)
}

// Tan is the tangent of each element, in radians. Integers and bool give float32, other dtypes their own.
func Tan(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array { return tangent.call(tensor.Call(ctx), a) }

// Sinh is the hyperbolic sine of each element. Integers and bool give float32, other dtypes their own.
func Sinh(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return hyperSine.call(tensor.Call(ctx), a)
}

// Cosh is the hyperbolic cosine of each element. Integers and bool give float32, other dtypes their own.
func Cosh(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return hyperCosine.call(tensor.Call(ctx), a)
}

// Erf is the error function of each element. Integers and bool give float32, other dtypes their own; complex64 is an
// error.
func Erf(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return errorFunc.call(tensor.Call(ctx), a)
}

// ErfInv is the inverse of the error function: inf at 1, -inf at -1, NaN outside. Integers and bool give float32, other
// dtypes their own; complex64 is an error.
func ErfInv(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return errorFuncInv.call(tensor.Call(ctx), a)
}

// Ceil is the least whole number that is not below each element, in a's dtype; integers stay. Complex64 is an error.
func Ceil(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return ceiling.call(tensor.Call(ctx), a)
}

// IsFinite says of each element whether it is neither infinite nor NaN (for complex64: both parts), as bool. Integers
// always are.
func IsFinite(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return isFinite.call(tensor.Call(ctx), a)
}
