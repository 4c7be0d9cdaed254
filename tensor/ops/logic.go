package ops

import "github.com/mlxlua/mlxlua/tensor"

var (
	logicalNot = unaryOp("logical_not")
	logicalAnd = binaryOp("logical_and")
	logicalOr  = binaryOp("logical_or")
)

func init() {
	logicalNot.define(row{Arg: asBool, Expr: exprs{Any: "!$0"}})
	logicalAnd.define(row{Arg: asBool, Expr: exprs{Any: "$0 && $1"}})
	logicalOr.define(row{Arg: asBool, Expr: exprs{Any: "$0 || $1"}})
}

// LogicalNot is true where an element is zero, as bool. NaN counts as true.
func LogicalNot(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return logicalNot.call(tensor.Call(ctx), a)
}

// LogicalAnd is true where both a and b are not zero, as bool. Shapes are broadcast; NaN counts as true.
func LogicalAnd(a, b *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return logicalAnd.call(tensor.Call(ctx), a, b)
}

// LogicalOr is true where a or b is not zero, as bool. Shapes are broadcast; NaN counts as true.
func LogicalOr(a, b *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return logicalOr.call(tensor.Call(ctx), a, b)
}
