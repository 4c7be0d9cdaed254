package ops

import (
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

var _ = sig.Def("clip", "a:operand a_min:operand? a_max:operand?", func(a *sig.Args) any {
	return Clip(a.Array(0), a.Array(1), a.Array(2), a.Ctx)
})

// Clip is a with its elements raised to the lower bound where they are below, then lowered to the upper one where they
// are above: to the upper one where the bounds are the wrong way round. One of them may be nil, for none; both is an
// error. Shapes are broadcast, NaN stays, and the dtype is the operands' common one. The gradient flows to what is
// taken, as by [Maximum] and [Minimum].
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
