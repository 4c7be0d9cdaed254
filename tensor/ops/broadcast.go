package ops

import (
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/kernelgen"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

// shapeAttrs is a target shape, whose references are the inputs from 1 on.
type shapeAttrs struct{ Shape tensor.Dims }

var (
	broadcastTo = tensor.Declare[shapeAttrs]("broadcast_to")
	// full is broadcastTo of a value that the user gave to be an array's elements.
	full  = tensor.Declare[shapeAttrs]("full")
	sumTo = tensor.Declare[shapeAttrs]("sum_to")
)

func init() {
	rules := tensor.Rules[shapeAttrs]{
		Shape: func(in []tensor.Spec, a shapeAttrs, outs []tensor.Shape) ([]tensor.Shape, error) {
			to, err := a.Shape.Shape(in)
			if err != nil {
				return nil, err
			}
			return append(outs, to), kit.CheckBroadcast(in[0].Shape, to)
		},
		DType:    kit.SameDType[shapeAttrs],
		SpecFrom: afterFirst[shapeAttrs],
		View: func(in []tensor.Spec, v tensor.View, _ shapeAttrs, out []tensor.Operand) bool {
			broadcastStrides(in[0].Shape, v, &out[0])
			return true
		},
		Gradient: func(g *tensor.VJP[shapeAttrs]) *tensor.Array {
			return SumTo(g.Cot[0], tensor.ShapeOf(g.In[0]), g.Ctx)
		},
		Tangent: func(g *tensor.JVP[shapeAttrs]) *tensor.Array {
			return BroadcastTo(g.Tan[0], tensor.ShapeOf(g.Out[0]), g.Ctx)
		},
		VMap: func(g *tensor.VMap[shapeAttrs]) ([]*tensor.Array, []int) {
			to, rank, err := kit.Unbound(g, g.Attrs.Shape)
			if err != nil {
				return []*tensor.Array{tensor.Fail(g.Ctx, "broadcast_to", "%w", err)}, []int{0}
			}
			x := FrontOf(g, 0, rank)
			return []*tensor.Array{BroadcastTo(x, tensor.Concat(tensor.DimOf(x, 0), to), g.Ctx)}, []int{0}
		},
	}
	broadcastTo.Define(rules)
	rules.Fills = true
	full.Define(rules)

	sumTo.Define(tensor.Rules[shapeAttrs]{
		Shape: func(in []tensor.Spec, a shapeAttrs, outs []tensor.Shape) ([]tensor.Shape, error) {
			to, err := a.Shape.Shape(in)
			if err != nil {
				return nil, err
			}
			return append(outs, to), kit.CheckBroadcast(to, in[0].Shape)
		},
		DType:    kit.SameDType[shapeAttrs],
		SpecFrom: afterFirst[shapeAttrs],
		Reduce: func(a shapeAttrs, in []tensor.Spec) ([]int, kernelgen.Reducer, error) {
			to, err := a.Shape.Shape(in)
			if err != nil {
				return nil, kernelgen.Reducer{}, err
			}
			return addedAxes(to, in[0].Shape), sumReducer(in[0].DType, in[0].DType), nil
		},
		Same: true,
		Gradient: func(g *tensor.VJP[shapeAttrs]) *tensor.Array {
			return BroadcastTo(g.Cot[0], tensor.ShapeOf(g.In[0]), g.Ctx)
		},
		Tangent: func(g *tensor.JVP[shapeAttrs]) *tensor.Array {
			return SumTo(g.Tan[0], tensor.ShapeOf(g.Out[0]), g.Ctx)
		},
		VMap: vmapSumTo,
	})
}

// broadcastStrides are the strides of a view of shape from in the shape that it is broadcast to.
func broadcastStrides(from tensor.Shape, v tensor.View, out *tensor.Operand) {
	lead := len(out.Shape) - len(from)
	for i, n := range from {
		if n == out.Shape[lead+i] {
			out.Strides[lead+i] = v.Strides[i]
		}
	}
}

// vmapSumTo sums per example: the batch axis stands before the dimensions that the sum drops.
func vmapSumTo(g *tensor.VMap[shapeAttrs]) ([]*tensor.Array, []int) {
	to, rank, err := kit.Unbound(g, g.Attrs.Shape)
	if err != nil {
		return []*tensor.Array{tensor.Fail(g.Ctx, "sum_to", "%w", err)}, []int{0}
	}
	x := FrontOf(g, 0, 0)
	dropped := make([]int, max(x.NDim()-1-rank, 0))
	target := tensor.DimOf(x, 0)
	for i := range dropped {
		dropped[i] = 1 + i
		target = tensor.Concat(target, tensor.Sizes(1))
	}
	y := SumTo(x, tensor.Concat(target, to), g.Ctx)
	return []*tensor.Array{Squeeze(y, dropped, g.Ctx)}, []int{0}
}

// addedAxes are the axes of to that broadcasting from adds or lengthens.
func addedAxes(from, to tensor.Shape) []int {
	axes := []int{}
	lead := len(to) - len(from)
	for i := range to {
		if i < lead || from[i-lead] != to[i] {
			axes = append(axes, i)
		}
	}
	return axes
}

// afterFirst is the SpecFrom rule of an op that reads input 0 only, and the IndicesFrom rule of one that indexes it.
func afterFirst[A any](A, int) int { return 1 }

// afterSecond is the IndicesFrom rule of an op that writes input 1 to places in input 0.
func afterSecond[A any](A, int) int { return 2 }

var _ = sig.Def("broadcast_to", "a shape:shape", func(a *sig.Args) any {
	return BroadcastTo(a.Array(0), a.Shape(1), a.Ctx)
})

// BroadcastTo is a view of a with that shape: missing and one-sized dimensions are repeated, as in NumPy. Nothing
// is copied. A shape that a's does not broadcast to is an error.
func BroadcastTo(a *tensor.Array, shape tensor.ShapeArg, ctx ...*tensor.Ctx) *tensor.Array {
	return callShaped(tensor.Call(ctx), broadcastTo, a, shape)
}

// SumTo undoes a broadcast: it sums a over the dimensions that broadcasting an array of that shape to a's would add
// or lengthen. It is the gradient of BroadcastTo, in a's dtype. A shape that does not broadcast to a's is an error.
//
//sig:none gradients of what was broadcast
func SumTo(a *tensor.Array, shape tensor.ShapeArg, ctx ...*tensor.Ctx) *tensor.Array {
	return callShaped(tensor.Call(ctx), sumTo, a, shape)
}

func callShaped(c *tensor.Ctx, op *tensor.OpOf[shapeAttrs], a *tensor.Array, shape tensor.ShapeArg) *tensor.Array {
	dims, in := shape.Bind([]*tensor.Array{a})
	return op.One(c, shapeAttrs{dims}, in...)
}
