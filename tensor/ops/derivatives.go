package ops

import (
	"slices"

	"github.com/mlxlua/mlxlua/tensor"
)

// The helpers of derivative rules.

// WithZeros is tangents, or cotangents, with zeros in the place of those that are nil: of the shapes of like, and of
// the dtype of the others. It is nil if all are.
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

// AddTerm is sum plus a term of a derivative; a nil sum is none yet.
//
//sig:none derivative rules
func AddTerm(c *tensor.Ctx, sum, term *tensor.Array) *tensor.Array {
	if sum == nil {
		return term
	}
	return Add(sum, term, c)
}
