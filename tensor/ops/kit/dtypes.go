package kit

import (
	"fmt"
	"slices"

	"github.com/mlxlua/mlxlua/tensor"
)

// DTypeRule returns the dtype that operands are converted to whose common dtype is d, or why d is refused. An op states
// it once: its call converts by it (see ops.Convert), and its DType rule relies on that.
type DTypeRule func(d tensor.DType) (tensor.DType, error)

// AnyDType keeps operands as they are.
func AnyDType(d tensor.DType) (tensor.DType, error) { return d, nil }

// Inexact converts integers and bool to float32.
func Inexact(d tensor.DType) (tensor.DType, error) { return d.Inexact(), nil }

// AsBool converts everything to bool: what is not zero is true.
func AsBool(tensor.DType) (tensor.DType, error) { return tensor.Bool, nil }

// Refuse is rule for all dtypes but those, which are refused; instead tells the user what to do, or is empty.
func Refuse(rule DTypeRule, instead string, dtypes ...tensor.DType) DTypeRule {
	return func(d tensor.DType) (tensor.DType, error) {
		if slices.Contains(dtypes, d) {
			return d, fmt.Errorf("does not take dtype %v%s", d, instead)
		}
		return rule(d)
	}
}

// Floats takes real floating-point dtypes; subject says whose dtype it is: "x has dtype".
func Floats(subject string) DTypeRule {
	return func(d tensor.DType) (tensor.DType, error) {
		if !d.IsFloat() {
			return d, fmt.Errorf("%s %v, want a floating-point one", subject, d)
		}
		return d, nil
	}
}

// Integers takes integer dtypes; subject says whose dtype it is: "targets have dtype".
func Integers(subject string) DTypeRule {
	return func(d tensor.DType) (tensor.DType, error) {
		if !d.IsInteger() {
			return d, fmt.Errorf("%s %v, want integers", subject, d)
		}
		return d, nil
	}
}

// Refused is an array with the error of a dtype that the rule refuses, and nil if it takes d: for an op that does not
// convert by the rule.
func (rule DTypeRule) Refused(c *tensor.Ctx, op string, d tensor.DType) *tensor.Array {
	if _, err := rule(d); err != nil {
		return tensor.Fail(c, op, "%w", err)
	}
	return nil
}

// SameDType is the DType rule of an op whose output has input 0's dtype.
func SameDType[A comparable](in []tensor.Spec, _ A, outs []tensor.DType) ([]tensor.DType, error) {
	return append(outs, in[0].DType), nil
}

// Always is the DType rule of an op whose output has dtype d whatever its inputs have.
func Always[A comparable](d tensor.DType) func([]tensor.Spec, A, []tensor.DType) ([]tensor.DType, error) {
	return func(_ []tensor.Spec, _ A, outs []tensor.DType) ([]tensor.DType, error) { return append(outs, d), nil }
}

// OneDType is the DType rule of an op whose inputs, and output, have one dtype.
func OneDType[A comparable](in []tensor.Spec, _ A, outs []tensor.DType) ([]tensor.DType, error) {
	return OneDTypeOf(outs, in...)
}

// OneDTypeOf is OneDType for an op of which those inputs have one dtype.
func OneDTypeOf(outs []tensor.DType, in ...tensor.Spec) ([]tensor.DType, error) {
	for _, x := range in[1:] {
		if x.DType != in[0].DType {
			return nil, fmt.Errorf("BUG: operands %v and %v were not converted to one dtype", in[0], x)
		}
	}
	return append(outs, in[0].DType), nil
}
