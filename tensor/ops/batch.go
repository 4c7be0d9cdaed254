package ops

import "github.com/mlxlua/mlxlua/tensor"

// The helpers of batching rules. They put the batch axis first, so that a rule counts its axes from 1.

// frontOf is input i with its batch axis first, repeated if it has none, and the rest padded with leading ones to
// at least rank dimensions.
func frontOf[A comparable](g *tensor.VMap[A], i, rank int) *tensor.Array {
	x := g.In[i]
	if g.Axes[i] < 0 {
		lead := make([]int, 1+max(rank-x.NDim(), 0))
		for k := range lead {
			lead[k] = k
		}
		x = ExpandDims(x, lead, g.Ctx)
		rest := make([]tensor.ShapeArg, x.NDim())
		rest[0] = batchDim(g)
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

// batchDim is the batch's size, as the dimension of an input that has it.
func batchDim[A comparable](g *tensor.VMap[A]) tensor.ShapeArg {
	for i, axis := range g.Axes {
		if axis >= 0 {
			return tensor.DimOf(g.In[i], axis)
		}
	}
	return tensor.Sizes(g.Size)
}

// exampleRank is the rank of input i without its batch axis.
func exampleRank[A comparable](g *tensor.VMap[A], i int) int {
	if g.Axes[i] < 0 {
		return g.In[i].NDim()
	}
	return g.In[i].NDim() - 1
}

// unbound is a bound shape with its references to the batched inputs, without their batch axes, and its rank.
func unbound[A comparable](g *tensor.VMap[A], d tensor.Dims) (tensor.ShapeArg, int, error) {
	s, err := d.Unbind(g.In, g.Axes)
	if err != nil {
		return s, 0, err
	}
	dims, in := s.Bind(nil)
	specs := make([]tensor.Spec, len(in))
	for i, x := range in {
		specs[i] = x.Spec()
	}
	n, err := dims.Resolve(specs)
	return s, len(n), err
}

// shifted is axes, counted from 0 on an example of that rank, counted on a batch whose batch axis is first.
func shifted(axes []int) []int {
	out := make([]int, len(axes))
	for i, a := range axes {
		out[i] = a + 1
	}
	return out
}
