package ops

import (
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

// rollAttrs are a roll along one axis, as the user wrote it: the shift is taken modulo the axis's size by Run.
type rollAttrs struct{ Shift, Axis int }

var roll = tensor.Declare[rollAttrs]("roll")

func init() {
	roll.Define(tensor.Rules[rollAttrs]{
		Shape: func(in []tensor.Spec, a rollAttrs, outs []tensor.Shape) ([]tensor.Shape, error) {
			_, err := tensor.Axis(a.Axis, len(in[0].Shape))
			return append(outs, in[0].Shape), err
		},
		DType: kit.SameDType[rollAttrs],
		Run: func(r *tensor.Run, a rollAttrs) error {
			x, out := r.In[0], r.Out[0]
			axis, err := tensor.Axis(a.Axis, len(x.Shape))
			if err != nil {
				return err
			}
			n := x.Shape[axis]
			k := (a.Shift%n + n) % n
			if err := kit.CopyPart(r, out, x, axis, k, 0, n-k); err != nil {
				return err
			}
			return kit.CopyPart(r, out, x, axis, 0, n-k, k)
		},
		Gradient: func(g *tensor.VJP[rollAttrs]) *tensor.Array {
			return roll.One(g.Ctx, rollAttrs{-g.Attrs.Shift, g.Attrs.Axis}, g.Cot[0])
		},
		Tangent: func(g *tensor.JVP[rollAttrs]) *tensor.Array { return roll.One(g.Ctx, g.Attrs, g.Tan[0]) },
		VMap: func(g *tensor.VMap[rollAttrs]) ([]*tensor.Array, []int) {
			axis, _ := tensor.Axis(g.Attrs.Axis, kit.ExampleRank(g, 0))
			return []*tensor.Array{roll.One(g.Ctx, rollAttrs{g.Attrs.Shift, axis + 1}, FrontOf(g, 0, 0))}, []int{0}
		},
	})
}

var _ = sig.Def("roll", "a shift:int|ints axis:int|ints?", func(a *sig.Args) any {
	k, one := sig.As[int](a, 1)
	shift, _ := sig.As[[]int](a, 1)
	if one {
		shift = []int{k}
	}
	axes, _ := sig.As[[]int](a, 2)
	axis, along := sig.As[int](a, 2)
	switch {
	case along: // all shifts are along that axis
		sum := 0
		for _, v := range shift {
			sum += v
		}
		shift, axes = []int{sum}, []int{axis}
	case one && a.Given(2): // the shift is along all axes
		shift = make([]int, len(axes))
		for i := range shift {
			shift[i] = k
		}
	}
	return Roll(a.Array(0), shift, axes, a.Ctx)
})

// Roll moves a's elements shift places towards the end of an axis; those that leave it come in again at its start. A
// negative shift moves them towards the start. Of several axes each has its own shift, or all have the one number; an
// axis may occur twice, and shifts beyond the axes are ignored. Several shifts along one axis given as a number are
// added. An axis of nil rolls the flattened array by the sum of the shifts; the shape stays. Fewer shifts than axes and
// axes out of range are errors.
func Roll(a *tensor.Array, shift, axes []int, ctx ...*tensor.Ctx) *tensor.Array {
	const op = "roll"
	c := tensor.Call(ctx)
	if f := kit.Unusable(c, op, a); f != nil {
		return f
	}
	if axes == nil {
		sum := 0
		for _, v := range shift {
			sum += v
		}
		flat := roll.One(c, rollAttrs{sum, 0}, Flatten(a, 0, -1, c))
		return Reshape(flat, tensor.ShapeOf(a), c)
	}
	if len(shift) < len(axes) {
		return tensor.Fail(c, op, "%s for %d axes", tensor.Count(len(shift), "shift"), len(axes))
	}
	for i, axis := range axes {
		a = roll.One(c, rollAttrs{shift[i], axis}, a)
	}
	return a
}
