package ops

import (
	"fmt"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

var (
	bitwiseAnd    = binaryOp("bitwise_and")
	bitwiseOr     = binaryOp("bitwise_or")
	bitwiseXor    = binaryOp("bitwise_xor")
	bitwiseInvert = unaryOp("bitwise_invert")
	leftShift     = binaryOp("left_shift")
	rightShift    = binaryOp("right_shift")
)

// wholeNumbers refuses what has no bits of a number.
func wholeNumbers(d tensor.DType) (tensor.DType, error) {
	if d.IsInexact() {
		return d, fmt.Errorf("takes integers and bool, and the operands' common dtype is %v", d)
	}
	return d, nil
}

func init() {
	bitwiseAnd.define(row{Arg: wholeNumbers, Expr: exprs{Bool: "$0 && $1", Int: "$0 & $1"}})
	bitwiseOr.define(row{Arg: wholeNumbers, Expr: exprs{Bool: "$0 || $1", Int: "$0 | $1"}})
	bitwiseXor.define(row{Arg: wholeNumbers, Expr: exprs{Bool: "$0 != $1", Int: "$0 ^ $1"}})
	bitwiseInvert.define(row{Arg: wholeNumbers, Expr: exprs{Bool: "!$0", Int: "~$0"}})

	shifted := func(d tensor.DType) (tensor.DType, error) {
		if d == tensor.Bool {
			return tensor.Uint8, nil
		}
		return wholeNumbers(d)
	}
	// A negative count is a large unsigned one.
	within := "ulong($1) < 8 * sizeof($0) ? "
	leftShift.define(row{Arg: shifted, Expr: exprs{Int: within + "$0 << $1 : 0"}})
	rightShift.define(row{Arg: shifted, Expr: exprs{Unsigned: within + "$0 >> $1 : 0",
		Int: within + "$0 >> $1 : ($0 < 0 ? -1 : 0)"}})
}

var _ = sig.Binary("bitwise_and", BitwiseAnd, sig.Commutative)

// BitwiseAnd has the bits that both a and b have, element by element, in the operands' common dtype, which must be an
// integer's or bool. Shapes are broadcast.
func BitwiseAnd(a, b *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return bitwiseAnd.call(tensor.Call(ctx), a, b)
}

var _ = sig.Binary("bitwise_or", BitwiseOr, sig.Commutative)

// BitwiseOr has the bits that a or b has, element by element, in the operands' common dtype, which must be an
// integer's or bool. Shapes are broadcast.
func BitwiseOr(a, b *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return bitwiseOr.call(tensor.Call(ctx), a, b)
}

var _ = sig.Binary("bitwise_xor", BitwiseXor, sig.Commutative)

// BitwiseXor has the bits that one of a and b has, element by element, in the operands' common dtype, which must be an
// integer's or bool. Shapes are broadcast.
func BitwiseXor(a, b *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return bitwiseXor.call(tensor.Call(ctx), a, b)
}

var _ = sig.Unary("bitwise_invert", BitwiseInvert)

// BitwiseInvert has the bits that a has not, element by element, in a's dtype, which must be an integer's or bool: of
// bool it is [LogicalNot].
func BitwiseInvert(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return bitwiseInvert.call(tensor.Call(ctx), a)
}

var _ = sig.Binary("left_shift", LeftShift)
var _ = sig.Alias("bitwise_left_shift", "left_shift")

// LeftShift moves the bits of each element of a by b places to the left, in the operands' common dtype, which must be
// an integer's; bool counts as uint8. Shapes are broadcast. Bits that leave the number are lost: where b is negative
// or not below the number of bits, all are.
func LeftShift(a, b *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return leftShift.call(tensor.Call(ctx), a, b)
}

var _ = sig.Binary("right_shift", RightShift)
var _ = sig.Alias("bitwise_right_shift", "right_shift")

// RightShift moves the bits of each element of a by b places to the right, in the operands' common dtype, which must be
// an integer's; bool counts as uint8. Shapes are broadcast. The sign stays: where b is negative or not below the number
// of bits, -1 is left of a negative number and 0 of others.
func RightShift(a, b *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return rightShift.call(tensor.Call(ctx), a, b)
}
