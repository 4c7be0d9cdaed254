package ops

import (
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

var _ = sig.Def("unstack", "x axis:int=0", func(a *sig.Args) any {
	return sig.Table(Unstack(a.Array(0), a.Int(1), a.Ctx))
})

// Unstack are the slices of x along an axis, views without that dimension: it undoes [Stack]. The size of that
// dimension is read, so that compile guards it. An axis out of range is an error, which one array carries.
func Unstack(x *tensor.Array, axis int, ctx ...*tensor.Ctx) []*tensor.Array {
	const op = "unstack"
	c := tensor.Call(ctx)
	if f := kit.Unusable(c, op, x); f != nil {
		return []*tensor.Array{f}
	}
	n, err := x.Dim(axis)
	if err != nil {
		return []*tensor.Array{tensor.Fail(c, op, "%w", err)}
	}
	if n == 0 {
		return []*tensor.Array{}
	}
	out := splitOp.Call(c, splitAttrs{n, axis}, x)
	for i, y := range out {
		if out[i] = kit.FailedAs(c, op, Squeeze(y, []int{axis}, c)); out[i].Err() != nil {
			return out[i : i+1]
		}
	}
	return out
}
