// Package conv is MLX's convolutions: windows of weights that move along one, two or three dimensions.
package conv

import (
	"fmt"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
)

// A convolution adds up products of elements of an input x and a weight w to an output y. Which three belong
// together is what its window says, so that the same window gives each of x, w and y from the other two: the
// derivatives of these three ops are these three ops. The last two take the shape of what they make from a third
// input.
var (
	forward  = tensor.Declare[attrs]("conv")        // y from x and w
	ofInput  = tensor.Declare[attrs]("conv_input")  // x from y and w
	ofWeight = tensor.Declare[attrs]("conv_weight") // w from x and y
)

// rule is what the three ops differ in.
type rule struct {
	// window gives the shape of the output and the window, of which batch is that of the two operands.
	window func(a attrs, in []tensor.Spec) (tensor.Shape, *window, error)
	// sums says how to compute it.
	sums func(v *window, groups int, flip bool, a, b, out tensor.Operand) *sums
	// gradient multiplies a cotangent by the operand that operand i was multiplied by.
	gradient func(i int, cot, other *tensor.Array, in []*tensor.Array) (*tensor.OpOf[attrs], []*tensor.Array)
}

func init() {
	define(forward, rule{
		window: func(a attrs, in []tensor.Spec) (tensor.Shape, *window, error) {
			v, err := a.window(in[0].Shape, in[1].Shape)
			if err != nil {
				return nil, nil, err
			}
			return v.shape(), v, nil
		},
		sums: (*window).forward,
		gradient: func(i int, cot, other *tensor.Array, in []*tensor.Array) (*tensor.OpOf[attrs], []*tensor.Array) {
			if i == 0 {
				return ofInput, []*tensor.Array{cot, other, in[0]}
			}
			return ofWeight, []*tensor.Array{other, cot, in[1]}
		},
	})
	define(ofInput, rule{
		window: func(a attrs, in []tensor.Spec) (tensor.Shape, *window, error) {
			return a.like(in, in[2].Shape, in[1].Shape, in[0].Shape)
		},
		sums: (*window).ofInput,
		gradient: func(i int, cot, other *tensor.Array, in []*tensor.Array) (*tensor.OpOf[attrs], []*tensor.Array) {
			if i == 0 {
				return forward, []*tensor.Array{cot, other}
			}
			return ofWeight, []*tensor.Array{cot, other, in[1]}
		},
	})
	define(ofWeight, rule{
		window: func(a attrs, in []tensor.Spec) (tensor.Shape, *window, error) {
			return a.like(in, in[0].Shape, in[2].Shape, in[1].Shape)
		},
		sums: (*window).ofWeight,
		gradient: func(i int, cot, other *tensor.Array, in []*tensor.Array) (*tensor.OpOf[attrs], []*tensor.Array) {
			if i == 0 {
				return ofInput, []*tensor.Array{other, cot, in[0]}
			}
			return forward, []*tensor.Array{other, cot}
		},
	})
}

// like is the shape of an op that makes something of in[2]'s shape, but for the batch, which is that of the operands
// in[0] and in[1]; x, w and y are the shapes of the three that belong together.
func (a attrs) like(in []tensor.Spec, x, w, y tensor.Shape) (tensor.Shape, *window, error) {
	n := a.Spatial + 2
	for _, s := range []tensor.Shape{x, w, y} {
		if len(s) < n {
			return nil, nil, fmt.Errorf("BUG: shape %v in %d spatial dimensions", s, a.Spatial)
		}
	}
	v, err := a.window(x[len(x)-n:], w[len(w)-n:])
	if err != nil {
		return nil, nil, err
	}
	if got := y[len(y)-n:]; !got.Equal(v.shape()) {
		return nil, nil, fmt.Errorf("BUG: an output of shape %v, the window gives %v", got, v.shape())
	}
	p, q, to := in[0].Shape, in[1].Shape, in[2].Shape
	if v.batch, err = tensor.Broadcast(p[:len(p)-n], q[:len(q)-n]); err != nil {
		return nil, nil, err
	}
	return append(v.batch.Clone(), to[len(to)-n:]...), v, nil
}

// define gives an op its rules.
func define(op *tensor.OpOf[attrs], k rule) {
	op.Define(tensor.Rules[attrs]{
		Shape: func(in []tensor.Spec, a attrs, outs []tensor.Shape) ([]tensor.Shape, error) {
			s, _, err := k.window(a, in)
			return append(outs, s), err
		},
		DType: func(in []tensor.Spec, _ attrs, outs []tensor.DType) ([]tensor.DType, error) {
			return kit.OneDTypeOf(outs, in[:2]...)
		},
		SpecFrom: func(attrs, int) int { return 2 },
		Flops: func(in, out []tensor.Spec, a attrs) float64 { // a product and a sum for each tap of each output's element
			w, y := in[1].Shape, out[0].Shape
			switch op {
			case ofInput:
				y = in[0].Shape
			case ofWeight:
				w, y = out[0].Shape, in[1].Shape
			}
			return 2 * float64(y.Size()) * float64(w[len(w)-a.Spatial-1:].Size())
		},
		Run: func(r *tensor.Run, a attrs) error {
			specs := make([]tensor.Spec, len(r.In))
			for i, x := range r.In {
				specs[i] = x.Spec
			}
			_, v, err := k.window(a, specs)
			if err != nil {
				return err
			}
			var in [2]tensor.Operand
			for i := range in {
				if in[i], err = withoutRepeats(r, i, a.Spatial+2); err != nil {
					return err
				}
			}
			return k.sums(v, a.Groups, a.Flip, in[0], in[1], r.Out[0]).run(r)
		},
		VJP: func(g *tensor.VJP[attrs]) []*tensor.Array {
			grads := make([]*tensor.Array, len(g.In))
			for i := range 2 {
				if g.Want[i] {
					op, in := k.gradient(i, g.Cot[0], conjugate(g.Ctx, g.In[1-i]), g.In)
					grads[i] = op.One(g.Ctx, g.Attrs, in...)
					if grads[i].NDim() > g.Attrs.Spatial+2 { // it has a batch, which may be of the other operand alone
						grads[i] = ops.SumTo(grads[i], tensor.ShapeOf(g.In[i]), g.Ctx)
					}
				}
			}
			return grads
		},
		JVP: func(g *tensor.JVP[attrs]) []*tensor.Array {
			var sum *tensor.Array
			for i, t := range g.Tan[:2] {
				if t != nil {
					in := append([]*tensor.Array(nil), g.In...)
					in[i] = t
					sum = ops.AddTerm(g.Ctx, sum, op.One(g.Ctx, g.Attrs, in...))
				}
			}
			return []*tensor.Array{sum}
		},
		VMap: func(g *tensor.VMap[attrs]) ([]*tensor.Array, []int) {
			rank := 0
			for i := range g.In {
				rank = max(rank, kit.ExampleRank(g, i))
			}
			in := append([]*tensor.Array(nil), g.In...)
			for i, axis := range g.Axes {
				if axis >= 0 {
					in[i] = ops.FrontOf(g, i, rank)
				}
			}
			axis := 0
			if g.Axes[0] < 0 && g.Axes[1] < 0 { // the third input alone, whose batch does not matter, has a batch
				axis = -1
			}
			return []*tensor.Array{op.One(g.Ctx, g.Attrs, in...)}, []int{axis}
		},
	})
}

// withoutRepeats is operand i, copied if one element stands for several along its last n dimensions: no way to compute
// knows such layouts, and the cotangent of a sum is one.
func withoutRepeats(r *tensor.Run, i, n int) (tensor.Operand, error) {
	x := r.In[i]
	for d := len(x.Shape) - n; d < len(x.Shape); d++ {
		if x.Shape[d] > 1 && x.Strides[d] == 0 {
			return r.Contiguous(i)
		}
	}
	return x, nil
}

// conjugate is x, conjugated if it is complex.
func conjugate(c *tensor.Ctx, x *tensor.Array) *tensor.Array {
	if x.DType().IsComplex() {
		return ops.Conjugate(x, c)
	}
	return x
}
