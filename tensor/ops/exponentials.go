package ops

import (
	"math"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

var (
	exponential = unaryOp("exp")
	expMinus1   = unaryOp("expm1")
	logarithm   = unaryOp("log")
	log1Plus    = unaryOp("log1p")
	logBase2    = unaryOp("log2")
	logBase10   = unaryOp("log10")
	logAddExp   = binaryOp("logaddexp")
	sigmoid     = unaryOp("sigmoid")
)

func init() {
	exponential.define(row{
		Arg:  kit.Inexact,
		Expr: exprs{Float: "metal::exp($0)", Complex: "complex_exp($0)"},
		Diff: []diff{func(c *tensor.Ctx, t *tensor.Array, p point) *tensor.Array { return Multiply(t, p.Out, c) }},
	})
	expMinus1.define(row{
		Arg:  kit.Refuse(kit.Inexact, "", tensor.Complex64),
		Expr: exprs{Float: "expm1f($0)"},
		Diff: scaledBy(1, func(c *tensor.Ctx, p point) *tensor.Array { return Exp(p.A, c) }),
	})
	logarithm.define(row{
		Arg:  kit.Inexact,
		Expr: exprs{Float: "metal::log($0)", Complex: "complex_log($0)"},
		Diff: []diff{func(c *tensor.Ctx, t *tensor.Array, p point) *tensor.Array { return Divide(t, p.A, c) }},
	})
	log1Plus.define(row{
		Arg:  kit.Inexact,
		Expr: exprs{Float: "log1p($0)", Complex: "log1p($0)"},
		Diff: []diff{func(c *tensor.Ctx, t *tensor.Array, p point) *tensor.Array {
			return Divide(t, Add(p.A, Scalar(1, p.A, c), c), c)
		}},
	})
	inverse := func(c *tensor.Ctx, p point) *tensor.Array { return Reciprocal(p.A, c) }
	logBase2.define(row{
		Arg: kit.Inexact,
		Expr: exprs{Float: "metal::log2($0)",
			Complex: "complex_scale(complex_log($0), 1.44269504f)"},
		Diff: scaledBy(math.Log2E, inverse),
	})
	logBase10.define(row{
		Arg: kit.Inexact,
		Expr: exprs{Float: "metal::log10($0)",
			Complex: "complex_scale(complex_log($0), 0.434294482f)"},
		Diff: scaledBy(math.Log10E, inverse),
	})
	sigmoid.define(row{
		Arg: kit.Refuse(kit.Inexact, "", tensor.Complex64),
		// For negative x the exponential grows: 1/(1+inf) is 0, as it should be, and nothing cancels.
		Expr: exprs{Float: "1 / (1 + metal::exp(-$0))"},
		Diff: []diff{func(c *tensor.Ctx, t *tensor.Array, p point) *tensor.Array {
			return Multiply(t, Multiply(p.Out, Subtract(Scalar(1, p.Out, c), p.Out, c), c), c)
		}},
	})
	defineLogAddExp()
}

// scaledBy is a derivative: t times k f(p).
func scaledBy(k float64, f func(c *tensor.Ctx, p point) *tensor.Array) []diff {
	return []diff{func(c *tensor.Ctx, t *tensor.Array, p point) *tensor.Array {
		x := f(c, p)
		return Multiply(t, Multiply(Scalar(k, x, c), x, c), c)
	}}
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
		Arg:  kit.Inexact,
		Expr: exprs{Float: real, Complex: complex},
		Diff: []diff{share(a, b), share(b, a)},
	})
}

var _ = sig.Unary("exp", Exp)

// Exp is e to the power of each element. Integers and bool give float32, other dtypes their own. The derivative is
// the result itself.
func Exp(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return exponential.call(tensor.Call(ctx), a)
}

var _ = sig.Unary("expm1", Expm1)

// Expm1 is exp(a) - 1, element by element, without the loss of places near 0. Integers and bool give float32, other
// dtypes their own; complex64 is an error.
func Expm1(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return expMinus1.call(tensor.Call(ctx), a)
}

var _ = sig.Unary("log", Log)

// Log is the natural logarithm of each element: -inf at 0, NaN below, the principal branch for complex64. Integers
// and bool give float32, other dtypes their own. The derivative is 1/a.
func Log(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return logarithm.call(tensor.Call(ctx), a)
}

var _ = sig.Unary("log1p", Log1p)

// Log1p is log(1 + a), element by element, without the loss of places near 0: see [Log].
func Log1p(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return log1Plus.call(tensor.Call(ctx), a)
}

var _ = sig.Unary("log2", Log2)

// Log2 is the logarithm of each element to base 2: see [Log].
func Log2(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return logBase2.call(tensor.Call(ctx), a)
}

var _ = sig.Unary("log10", Log10)

// Log10 is the logarithm of each element to base 10: see [Log].
func Log10(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return logBase10.call(tensor.Call(ctx), a)
}

var _ = sig.Binary("logaddexp", LogAddExp, sig.Commutative)

// LogAddExp is log(exp(a) + exp(b)), element by element, without overflow; shapes are broadcast. Integers and bool give
// float32, other dtypes the common one.
func LogAddExp(a, b *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return logAddExp.call(tensor.Call(ctx), a, b)
}

var _ = sig.Unary("sigmoid", Sigmoid)

// Sigmoid is 1/(1+exp(-a)), element by element. Integers and bool give float32, other dtypes their own; complex64
// is an error. The derivative is s(1-s) for the result s.
func Sigmoid(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return sigmoid.call(tensor.Call(ctx), a)
}
