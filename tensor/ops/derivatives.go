package ops

import (
	"slices"

	"github.com/mlxlua/mlxlua/tensor"
)

// The helpers of derivative rules.

// WithZeros returns tangents, or cotangents, with zeros in the place of those that are nil: zeros have the shapes of
// like and the dtype of the others. It returns nil if all are nil.
//
//sig:none derivative rules
func WithZeros(c *tensor.Ctx, xs, like []*tensor.Array) []*tensor.Array {
	some := slices.IndexFunc(xs, func(x *tensor.Array) bool { return x != nil })
	if some < 0 {
		return nil
	}
	out := slices.Clone(xs)
	for i, x := range xs {
		if x == nil {
			out[i] = Zeros(tensor.ShapeOf(like[i]), xs[some].DType(), c)
		}
	}
	return out
}

// AddTerm returns sum plus a term of a derivative; sum is nil before the first term.
//
//sig:none derivative rules
func AddTerm(c *tensor.Ctx, sum, term *tensor.Array) *tensor.Array {
	if sum == nil {
		return term
	}
	return Add(sum, term, c)
}
