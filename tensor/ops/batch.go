package ops

import (
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
)

// The helpers of batching rules. They put the batch axis first, so that a rule counts its axes from 1.

// FrontOf is input i with its batch axis first, repeated if it has none, and the rest padded with leading ones to
// at least rank dimensions.
func FrontOf[A comparable](g *tensor.VMap[A], i, rank int) *tensor.Array {
	x := g.In[i]
	if g.Axes[i] < 0 {
		lead := make([]int, 1+max(rank-x.NDim(), 0))
		for k := range lead {
			lead[k] = k
		}
		x = ExpandDims(x, lead, g.Ctx)
		rest := make([]tensor.ShapeArg, x.NDim())
		rest[0] = kit.BatchDim(g)
		for k := 1; k < x.NDim(); k++ {
			rest[k] = tensor.DimOf(x, k)
		}
		return BroadcastTo(x, tensor.Concat(rest...), g.Ctx)
	}
	x = MoveAxis(x, g.Axes[i], 0, g.Ctx)
	if pad := rank - (x.NDim() - 1); pad > 0 {
		axes := make([]int, pad)
		for k := range axes {
			axes[k] = 1 + k
		}
		x = ExpandDims(x, axes, g.Ctx)
	}
	return x
}

// BatchFirst is the batching rule of an op whose call on a batch, with the batch axis first, is the batch of its calls.
//
//sig:none batching rules
func BatchFirst[A comparable](op *tensor.OpOf[A]) func(g *tensor.VMap[A]) ([]*tensor.Array, []int) {
	return func(g *tensor.VMap[A]) ([]*tensor.Array, []int) {
		in := make([]*tensor.Array, len(g.In))
		for i := range in {
			in[i] = FrontOf(g, i, 0)
		}
		out := op.Call(g.Ctx, g.Attrs, in...)
		return out, make([]int, len(out))
	}
}
