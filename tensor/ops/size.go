package ops

import (
	"slices"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
)

// sizeAttrs are Size's arguments as the user wrote them; nil axes mean all.
type sizeAttrs struct {
	Axes  tensor.Ints
	DType tensor.DType
}

var size = tensor.Declare[sizeAttrs]("number_of_elements")

func init() {
	size.Define(tensor.Rules[sizeAttrs]{
		Shape: func(in []tensor.Spec, a sizeAttrs, outs []tensor.Shape) ([]tensor.Shape, error) {
			_, err := a.Axes.AppendAxes(nil, len(in[0].Shape))
			return append(outs, tensor.Shape{}), err
		},
		DType: func(_ []tensor.Spec, a sizeAttrs, outs []tensor.DType) ([]tensor.DType, error) {
			return append(outs, a.DType), nil
		},
		SpecFrom: func(sizeAttrs, int) int { return 0 },
		Host: func(h *tensor.HostCall, a sizeAttrs) error {
			shape := h.In[0].Shape
			axes, err := a.Axes.AppendAxes(nil, len(shape))
			if err != nil {
				return err
			}
			n := 1.0
			for _, axis := range axes {
				n *= float64(shape[axis])
			}
			b, err := AppendNumber(nil, n, a.DType)
			copy(h.Out[0].Bytes, b)
			return err
		},
		Sure:     true,
		Constant: true,
		VMap: func(g *tensor.VMap[sizeAttrs]) ([]*tensor.Array, []int) {
			batch := g.Axes[0]
			axes, _ := tensor.Axes(g.Attrs.Axes.Slice(), kit.ExampleRank(g, 0))
			axes = slices.Clone(axes)
			for i, axis := range axes {
				if batch >= 0 && axis >= batch {
					axes[i]++
				}
			}
			n := size.One(g.Ctx, sizeAttrs{tensor.MakeInts(axes), g.Attrs.DType}, g.In[0])
			return []*tensor.Array{n}, []int{-1}
		},
	})
}

// Size is the number of elements of a along those axes (nil: all) as a scalar array of dtype d. Neither a's shape
// nor its elements are read when the graph is built, so that a replay at another shape follows it.
//
//sig:none x.size is a number; gradients want an array
func Size(a *tensor.Array, axes []int, d tensor.DType, ctx ...*tensor.Ctx) *tensor.Array {
	c := tensor.Call(ctx)
	return size.One(c, sizeAttrs{tensor.MakeInts(axes), d}, a)
}
