package ops

import "github.com/mlxlua/mlxlua/tensor"

// Clip is a with its elements raised to low where they are below, then lowered to high where they are above: high
// where low > high. Nil bounds are none; both nil is an error. Shapes are broadcast, NaN stays, and the dtype is the
// operands' common one. The gradient flows to what is taken, as by Maximum and Minimum.
func Clip(a, low, high *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	c := tensor.Call(ctx)
	if low == nil && high == nil {
		return tensor.Fail(c, "clip", "both bounds are missing: at most one may be")
	}
	if low != nil {
		a = Maximum(a, low, c)
	}
	if high != nil {
		a = Minimum(a, high, c)
	}
	return a
}
