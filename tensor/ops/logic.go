package ops

import (
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

var (
	logicalNot = unaryOp("logical_not")
	logicalAnd = binaryOp("logical_and")
	logicalOr  = binaryOp("logical_or")
	logicalXor = binaryOp("logical_xor")
)

func init() {
	logicalNot.define(row{Arg: kit.AsBool, Expr: exprs{Any: "!$0"}})
	logicalAnd.define(row{Arg: kit.AsBool, Expr: exprs{Any: "$0 && $1"}})
	logicalOr.define(row{Arg: kit.AsBool, Expr: exprs{Any: "$0 || $1"}})
	logicalXor.define(row{Arg: kit.AsBool, Expr: exprs{Any: "$0 != $1"}})
}

var _ = sig.Unary("logical_not", LogicalNot)

// LogicalNot is true where an element is zero, as bool. NaN counts as true.
func LogicalNot(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return logicalNot.call(tensor.Call(ctx), a)
}

// truths declares a function of two truths: a number takes no dtype from the other operand.
func truths(name string, f func(x, y *tensor.Array, c ...*tensor.Ctx) *tensor.Array) *sig.Func {
	return sig.Def(name, "a b", func(a *sig.Args) any { return f(a.Array(0), a.Array(1), a.Ctx) }, sig.Commutative)
}

var _ = truths("logical_and", LogicalAnd)

// LogicalAnd is true where both a and b are not zero, as bool. Shapes are broadcast; NaN counts as true.
func LogicalAnd(a, b *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return logicalAnd.call(tensor.Call(ctx), a, b)
}

var _ = truths("logical_or", LogicalOr)

// LogicalOr is true where a or b is not zero, as bool. Shapes are broadcast; NaN counts as true.
func LogicalOr(a, b *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return logicalOr.call(tensor.Call(ctx), a, b)
}

var _ = truths("logical_xor", LogicalXor)

// LogicalXor is true where one of a and b is zero and the other one is not, as bool. Shapes are broadcast; NaN counts
// as true.
func LogicalXor(a, b *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return logicalXor.call(tensor.Call(ctx), a, b)
}
