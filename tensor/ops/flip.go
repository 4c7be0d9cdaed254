package ops

import (
	"slices"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

var flip = tensor.Declare[axesAttrs]("flip")

func init() {
	flip.Define(linear(tensor.Rules[axesAttrs]{
		Shape: func(in []tensor.Spec, a axesAttrs, outs []tensor.Shape) ([]tensor.Shape, error) {
			_, err := flipped(a, len(in[0].Shape))
			return append(outs, in[0].Shape), err
		},
		DType: kit.SameDType[axesAttrs],
		View: func(in []tensor.Spec, v tensor.View, a axesAttrs, out []tensor.Operand) bool {
			o := &out[0]
			copy(o.Strides, v.Strides)
			axes, _ := flipped(a, len(v.Strides))
			for _, i := range axes {
				last := max(in[0].Shape[i]-1, 0)
				o.OffsetBytes += int64(last) * int64(v.Strides[i]) * int64(o.DType.Size())
				o.Strides[i] = -v.Strides[i]
			}
			return true
		},
		VMap: func(g *tensor.VMap[axesAttrs]) ([]*tensor.Array, []int) {
			axes, _ := flipped(g.Attrs, kit.ExampleRank(g, 0))
			return []*tensor.Array{Flip(FrontOf(g, 0, 0), kit.Shifted(axes), g.Ctx)}, []int{0}
		},
	}, Flip, func(c *tensor.Ctx, cot *tensor.Array, _ int, axes []int) *tensor.Array {
		return Flip(cot, axes, c)
	}))
}

// flipped are the axes counted from 0, each once.
func flipped(a axesAttrs, rank int) ([]int, error) {
	axes := a.Axes.Slice()
	for i, axis := range axes {
		var err error
		if axes[i], err = tensor.Axis(axis, rank); err != nil {
			return nil, err
		}
	}
	if axes != nil {
		slices.Sort(axes)
		return slices.Compact(axes), nil
	}
	return kit.Identity(rank), nil
}

var _ = sig.Def("flip", "a axis:axes?", func(a *sig.Args) any { return Flip(a.Array(0), a.Ints(1), a.Ctx) })

// Flip is a view of a whose dimensions at axis (nil: all; negative ones count from the end) run backwards. One that is
// named twice does so too.
func Flip(a *tensor.Array, axes []int, ctx ...*tensor.Ctx) *tensor.Array {
	return callAxes(tensor.Call(ctx), flip, a, axes)
}
