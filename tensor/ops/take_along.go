package ops

import (
	"fmt"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

type axisAttrs struct{ Axis int }

// broadcastAxes broadcasts input 0 against input 1, of which only the shape is read, along all dimensions but one,
// which stays.
var broadcastAxes = tensor.Declare[axisAttrs]("broadcast_axes")

func init() {
	broadcastAxes.Define(tensor.Rules[axisAttrs]{
		Shape: func(in []tensor.Spec, a axisAttrs, outs []tensor.Shape) ([]tensor.Shape, error) {
			axis, err := tensor.Axis(a.Axis, len(in[0].Shape))
			if err != nil {
				return nil, err
			}
			x, y := in[0].Shape.Clone(), in[1].Shape.Clone()
			if len(x) != len(y) {
				return nil, fmt.Errorf("shapes %v and %v have different numbers of dimensions", x, y)
			}
			size := x[axis]
			x[axis], y[axis] = 1, 1
			s, err := tensor.Broadcast(x, y)
			if err != nil {
				return nil, fmt.Errorf("shapes %v and %v cannot be broadcast along the axes other than %d", in[0].Shape,
					in[1].Shape, axis)
			}
			s[axis] = size
			return append(outs, s), nil
		},
		DType:    kit.SameDType[axisAttrs],
		SpecFrom: afterFirst[axisAttrs],
		View: func(in []tensor.Spec, v tensor.View, a axisAttrs, out []tensor.Operand) bool {
			axis, _ := tensor.Axis(a.Axis, len(v.Strides))
			for i, n := range in[0].Shape {
				if n != 1 || i == axis {
					out[0].Strides[i] = v.Strides[i]
				}
			}
			return true
		},
		Gradient: func(g *tensor.VJP[axisAttrs]) *tensor.Array {
			return SumTo(g.Cot[0], tensor.ShapeOf(g.In[0]), g.Ctx)
		},
		Tangent: func(g *tensor.JVP[axisAttrs]) *tensor.Array {
			return BroadcastTo(g.Tan[0], tensor.ShapeOf(g.Out[0]), g.Ctx)
		},
		VMap: func(g *tensor.VMap[axisAttrs]) ([]*tensor.Array, []int) {
			axis, _ := tensor.Axis(g.Attrs.Axis, kit.ExampleRank(g, 0))
			y := broadcastAxes.One(g.Ctx, axisAttrs{axis + 1}, FrontOf(g, 0, 0), FrontOf(g, 1, 0))
			return []*tensor.Array{y}, []int{0}
		},
	})
}

// alongAxis prepares an op along an axis (nil: of the flattened array): a and indices broadcast against each other
// along the other axes, the arrays of indices that name an element for each of theirs, and the gather's attributes.
func alongAxis(c *tensor.Ctx, op string, a, indices *tensor.Array, axis *int) (x *tensor.Array, index []*tensor.Array,
	attrs gatherAttrs, fail *tensor.Array) {
	if f := kit.Unusable(c, op, a, indices); f != nil {
		return nil, nil, attrs, f
	}
	if err := kit.CheckIndex(indices.DType()); err != nil {
		return nil, nil, attrs, tensor.Fail(c, op, "%w", err)
	}
	at := 0
	if axis == nil {
		a = Flatten(a, 0, -1, c)
	} else {
		at = *axis
	}
	if indices.NDim() != a.NDim() {
		return nil, nil, attrs, tensor.Fail(c, op, "indices have %s, the array has %d",
			tensor.Count(indices.NDim(), "dimension"),
			a.NDim())
	}
	at, err := tensor.Axis(at, a.NDim())
	if err != nil {
		return nil, nil, attrs, tensor.Fail(c, op, "%w", err)
	}
	x, i := a, indices
	if a.NDim() > 1 {
		x = broadcastAxes.One(c, axisAttrs{at}, a, indices)
		i = broadcastAxes.One(c, axisAttrs{at}, indices, a)
	}
	if x.Err() != nil {
		return nil, nil, attrs, kit.FailedAs(c, op, x)
	}
	index = make([]*tensor.Array, a.NDim())
	for k := range index {
		if index[k] = i; k != at {
			index[k] = IotaAlong(c, i, k)
		}
	}
	return x, index, gatherAttrs{op, tensor.MakeInts(kit.Identity(a.NDim())), 0}, nil
}

var _ = sig.Def("take_along_axis", "a indices:indices axis:axis=-1", func(a *sig.Args) any {
	return TakeAlongAxis(a.Array(0), a.Array(1), a.Axis(2), a.Ctx)
})

// TakeAlongAxis is for each of the indices, in their shape, the element of a at that index along an axis and at the
// same place along the other axes, which are broadcast; with an axis of nil, a is flattened and indices have one
// dimension. Indices are integers; negative ones count from the end; one that is out of range is an error when the
// result is computed.
func TakeAlongAxis(a, indices *tensor.Array, axis *int, ctx ...*tensor.Ctx) *tensor.Array {
	const op = "take_along_axis"
	c := tensor.Call(ctx)
	x, index, attrs, fail := alongAxis(c, op, a, indices, axis)
	if fail != nil {
		return fail
	}
	return kit.FailedAs(c, op, gather.One(c, attrs, append([]*tensor.Array{x}, index...)...))
}

var _ = sig.Def("put_along_axis", "a indices:indices values axis:axis?", func(a *sig.Args) any {
	return PutAlongAxis(a.Array(0), a.Array(1), a.Array(2), a.Axis(3), a.Ctx)
})

// PutAlongAxis is a copy of a in which the elements that [TakeAlongAxis] takes for those indices are values, converted
// to a's dtype and broadcast to the indices' shape. Where an index stands twice the last value stays. With an axis of
// nil the result has a's shape too. Errors are those of [TakeAlongAxis], and values whose shape does not broadcast.
func PutAlongAxis(a, indices, values *tensor.Array, axis *int, ctx ...*tensor.Ctx) *tensor.Array {
	const op = "put_along_axis"
	c := tensor.Call(ctx)
	if f := kit.Unusable(c, op, values); f != nil {
		return f
	}
	x, index, attrs, fail := alongAxis(c, op, a, indices, axis)
	if fail != nil {
		return fail
	}
	taken := gather.One(c, attrs, append([]*tensor.Array{x}, index...)...) // for its shape
	u := BroadcastTo(AsType(values, a.DType(), c), tensor.ShapeOf(taken), c)
	y := scatter.One(c, scatterAttrs{attrs, scatterSet}, append([]*tensor.Array{x, u}, index...)...)
	if axis == nil {
		y = Reshape(y, tensor.ShapeOf(a), c)
	}
	return kit.FailedAs(c, op, y)
}
