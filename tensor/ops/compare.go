package ops

import (
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

var (
	equal        = binaryOp("equal")
	notEqual     = binaryOp("not_equal")
	greater      = binaryOp("greater")
	greaterEqual = binaryOp("greater_equal")
	less         = binaryOp("less")
	lessEqual    = binaryOp("less_equal")
	maximum      = binaryOp("maximum")
	minimum      = binaryOp("minimum")
)

// lexicographic orders complex numbers by their real parts, equal ones by their imaginary parts, as NumPy does.
func lexicographic(strict, relation string) string {
	return "($0.real " + strict + " $1.real || ($0.real == $1.real && $0.imag " + relation + " $1.imag))"
}

// pick keeps operand 0 if it is NaN or in that relation to operand 1, so that NaN wins whichever side it is on.
func pick(relation string) exprs {
	plain := "$0 " + relation + " $1 ? $0 : $1"
	return exprs{
		Bool: plain, Int: plain,
		// NaN differs from itself. Floats are compared in their own type: the half types' values pass through
		// unchanged.
		Any: "($0 != $0 || $0 " + relation + " $1) ? $0 : $1",
		Complex: "(metal::isnan($0.real) || metal::isnan($0.imag) || (" + lexicographic(relation[:1], relation) +
			" && !metal::isnan($1.real) && !metal::isnan($1.imag))) ? $0 : $1",
	}
}

func init() {
	compare := func(e *elementwise, op string) {
		e.define(row{Out: toBool, Expr: exprs{Any: "$0 " + op + " $1", Complex: lexicographic(op[:1], op)}})
	}
	compare(greater, ">")
	compare(greaterEqual, ">=")
	compare(less, "<")
	compare(lessEqual, "<=")
	equal.define(row{Out: toBool, Expr: exprs{Any: "$0 == $1", Complex: "$0.real == $1.real && $0.imag == $1.imag"}})
	notEqual.define(row{Out: toBool, Expr: exprs{Any: "$0 != $1", Complex: "$0.real != $1.real || $0.imag != $1.imag"}})

	// Where the operands are equal the derivative goes to the second, as in MLX. The result, which is most often kept for
	// what reads it, compares with the second as the first does: so that nobody needs to keep the first.
	masked := func(keep func(a, b *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array) diff {
		return func(c *tensor.Ctx, t *tensor.Array, p point) *tensor.Array {
			return Where(keep(p.Out, p.B, c), t, Scalar(0, t, c), c)
		}
	}
	maximum.define(row{Expr: pick(">"), Diff: []diff{masked(Greater), masked(LessEqual)}})
	minimum.define(row{Expr: pick("<"), Diff: []diff{masked(Less), masked(GreaterEqual)}})
}

var _ = sig.Binary("equal", Equal, sig.Commutative)

// Equal is a == b, element by element, as bool; both are converted to their common dtype first, and shapes are
// broadcast. NaN equals nothing.
func Equal(a, b *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return equal.call(tensor.Call(ctx), a, b)
}

var _ = sig.Binary("not_equal", NotEqual, sig.Commutative)

// NotEqual is a != b, element by element, as bool; both are converted to their common dtype first, and shapes are
// broadcast. NaN differs from everything.
func NotEqual(a, b *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return notEqual.call(tensor.Call(ctx), a, b)
}

var _ = sig.Binary("greater", Greater)

// Greater is a > b, element by element, as bool, in the common dtype and shape. Complex numbers compare by their real
// parts, then by their imaginary ones; so in all comparisons. With NaN it is false.
func Greater(a, b *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return greater.call(tensor.Call(ctx), a, b)
}

var _ = sig.Binary("greater_equal", GreaterEqual)

// GreaterEqual is a >= b, element by element, as bool: see [Greater].
func GreaterEqual(a, b *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return greaterEqual.call(tensor.Call(ctx), a, b)
}

var _ = sig.Binary("less", Less)

// Less is a < b, element by element, as bool: see [Greater].
func Less(a, b *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return less.call(tensor.Call(ctx), a, b)
}

var _ = sig.Binary("less_equal", LessEqual)

// LessEqual is a <= b, element by element, as bool: see [Greater].
func LessEqual(a, b *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return lessEqual.call(tensor.Call(ctx), a, b)
}

var _ = sig.Binary("maximum", Maximum, sig.Commutative)

// Maximum is the larger of a and b, element by element, in the common dtype and shape; NaN where either is NaN.
// Where they are equal the derivative goes to b.
func Maximum(a, b *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return maximum.call(tensor.Call(ctx), a, b)
}

var _ = sig.Binary("minimum", Minimum, sig.Commutative)

// Minimum is the smaller of a and b, element by element, in the common dtype and shape; NaN where either is NaN.
// Where they are equal the derivative goes to b.
func Minimum(a, b *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return minimum.call(tensor.Call(ctx), a, b)
}
