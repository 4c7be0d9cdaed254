package ops

import (
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

var (
	add         = binaryOp("add")
	subtract    = binaryOp("subtract")
	multiply    = binaryOp("multiply")
	divide      = binaryOp("divide")
	floorDivide = binaryOp("floor_divide")
	remainder   = binaryOp("remainder")
)

func init() {
	same := func(_ *tensor.Ctx, t *tensor.Array, _ point) *tensor.Array { return t }
	minus := func(c *tensor.Ctx, t *tensor.Array, _ point) *tensor.Array { return Negative(t, c) }
	add.define(row{Expr: exprs{Any: "$0 + $1", Bool: "$0 || $1"}, Diff: []diff{same, same}})
	subtract.define(row{Expr: exprs{Any: "$0 - $1", Bool: "$0 != $1"}, Diff: []diff{same, minus}})
	multiply.define(row{
		Expr: exprs{Any: "$0 * $1", Bool: "$0 && $1"},
		Diff: []diff{
			func(c *tensor.Ctx, t *tensor.Array, p point) *tensor.Array { return Multiply(t, p.B, c) },
			func(c *tensor.Ctx, t *tensor.Array, p point) *tensor.Array { return Multiply(t, p.A, c) },
		},
	})
	divide.define(row{
		Arg:  kit.Inexact,
		Expr: exprs{Any: "$0 / $1"},
		Diff: []diff{
			func(c *tensor.Ctx, t *tensor.Array, p point) *tensor.Array { return Divide(t, p.B, c) },
			func(c *tensor.Ctx, t *tensor.Array, p point) *tensor.Array {
				return Negative(Divide(Multiply(t, p.Out, c), p.B, c), c)
			},
		},
	})
	floorDivide.define(row{
		Arg: kit.Refuse(kit.AnyDType, ": complex numbers have no order", tensor.Complex64),
		Expr: exprs{Bool: "$0 && $1", Unsigned: "$0 / $1", Float: "metal::floor($0 / $1)",
			Int: "$0 / $1 - ($1 != 0 && $0 % $1 != 0 && ($0 < 0) != ($1 < 0) ? 1 : 0)"},
	})
	remainder.define(row{
		Arg: kit.Refuse(kit.AnyDType, ": complex numbers have no order", tensor.Complex64),
		Expr: exprs{Bool: "$0 && !$1", Unsigned: "$0 % $1", Float: "floor_mod($0, $1)",
			Int: "$0 % $1 + ($0 % $1 != 0 && ($0 < 0) != ($1 < 0) ? $1 : 0)"},
		Diff: []diff{same, func(c *tensor.Ctx, t *tensor.Array, p point) *tensor.Array {
			return Negative(Multiply(t, FloorDivide(p.A, p.B, c), c), c)
		}},
	})
}

var _ = sig.Binary("add", Add, sig.Commutative)

// Add is a + b, element by element, in the operands' common dtype. Shapes are broadcast; integers wrap around; for
// bool it is "or".
func Add(a, b *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return add.call(tensor.Call(ctx), a, b)
}

var _ = sig.Binary("subtract", Subtract)

// Subtract is a - b, element by element, in the operands' common dtype. Shapes are broadcast; integers wrap around;
// for bool it is "exclusive or".
func Subtract(a, b *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return subtract.call(tensor.Call(ctx), a, b)
}

var _ = sig.Binary("multiply", Multiply, sig.Commutative)

// Multiply is a * b, element by element, in the operands' common dtype. Shapes are broadcast; integers wrap around;
// for bool it is "and".
func Multiply(a, b *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return multiply.call(tensor.Call(ctx), a, b)
}

var _ = sig.Binary("divide", Divide)

// Divide is the true quotient a / b, element by element: integers and bool give float32, other dtypes their common
// one. Shapes are broadcast. Division by zero gives infinities or NaN.
func Divide(a, b *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return divide.call(tensor.Call(ctx), a, b)
}

var _ = sig.Binary("floor_divide", FloorDivide)

// FloorDivide is floor(a / b), element by element, in the operands' common dtype: integers round towards minus
// infinity, as in Python. Shapes are broadcast. Complex64 is an error. Its derivative is zero.
func FloorDivide(a, b *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return floorDivide.call(tensor.Call(ctx), a, b)
}

var _ = sig.Binary("remainder", Remainder)

// Remainder is a - b * floor(a / b), element by element, in the operands' common dtype: it has the sign of b, as in
// Python. Shapes are broadcast. Complex64 is an error. Floats give NaN for b = 0.
func Remainder(a, b *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return remainder.call(tensor.Call(ctx), a, b)
}

var _ = sig.Def("divmod", "a:operand b:operand", func(a *sig.Args) any {
	quotient, rest := DivMod(a.Array(0), a.Array(1), a.Ctx)
	return []*tensor.Array{quotient, rest}
})

// DivMod is two arrays, what [FloorDivide] and what [Remainder] give: a is b times the first one plus the second one.
// Complex64 is an error.
func DivMod(a, b *tensor.Array, ctx ...*tensor.Ctx) (quotient, rest *tensor.Array) {
	const op = "divmod"
	c := tensor.Call(ctx)
	in, f := Convert(c, op, kit.Refuse(kit.AnyDType, ": complex numbers have no order", tensor.Complex64), a, b)
	if f != nil {
		return f, f
	}
	return kit.FailedAs(c, op, FloorDivide(in[0], in[1], c)), kit.FailedAs(c, op, Remainder(in[0], in[1], c))
}
