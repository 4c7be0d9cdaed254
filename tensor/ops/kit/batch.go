package kit

import (
	"github.com/mlxlua/mlxlua/tensor"
)

// BatchDim is the batch's size, as the dimension of an input that has it.
func BatchDim[A comparable](g *tensor.VMap[A]) tensor.ShapeArg {
	for i, axis := range g.Axes {
		if axis >= 0 {
			return tensor.DimOf(g.In[i], axis)
		}
	}
	return tensor.Sizes(g.Size)
}

// ExampleRank is the rank of input i without its batch axis.
func ExampleRank[A comparable](g *tensor.VMap[A], i int) int {
	if g.Axes[i] < 0 {
		return g.In[i].NDim()
	}
	return g.In[i].NDim() - 1
}

// Unbound returns the shape d of one example, whose references are to the batched inputs without their batch axes, and
// its rank.
func Unbound[A comparable](g *tensor.VMap[A], d tensor.Dims) (tensor.ShapeArg, int, error) {
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

// Shifted returns axes of an example, counted from 0, as axes of a batch whose batch axis is first.
func Shifted(axes []int) []int {
	out := make([]int, len(axes))
	for i, a := range axes {
		out[i] = a + 1
	}
	return out
}

// Identity is 0, 1, ..., rank-1.
func Identity(rank int) []int {
	perm := make([]int, rank)
	for i := range perm {
		perm[i] = i
	}
	return perm
}
