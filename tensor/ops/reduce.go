package ops

import (
	"fmt"
	"slices"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/kernelgen"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
)

// reduceAttrs are a reduction's arguments as the user wrote them. Nil axes mean all.
type reduceAttrs struct {
	Axes tensor.Ints
	Keep bool // reduced dimensions stay, with size 1
}

// reduction describes an op that reduces some axes of one array.
type reduction struct {
	// Out is the output's dtype for an input of dtype d; nil: d.
	Out func(d tensor.DType) tensor.DType
	// Reducer is the reduction of elements of dtype d to outputs of dtype out.
	Reducer func(d, out tensor.DType) kernelgen.Reducer
	// NonEmpty refuses axes of size 0.
	NonEmpty bool
	// Gradient is the input's gradient, in any dtype; without such a rule all derivatives are zero.
	Gradient func(g *tensor.VJP[reduceAttrs]) *tensor.Array
	// Tangent is the output's tangent.
	Tangent func(g *tensor.JVP[reduceAttrs]) *tensor.Array
}

func defineReduction(op *tensor.OpOf[reduceAttrs], r reduction) {
	out := r.Out
	if out == nil {
		out = func(d tensor.DType) tensor.DType { return d }
	}
	rules := tensor.Rules[reduceAttrs]{
		Shape: func(in []tensor.Spec, a reduceAttrs, outs []tensor.Shape) ([]tensor.Shape, error) {
			s, err := reducedShape(in[0].Shape, a, r.NonEmpty)
			return append(outs, s), err
		},
		DType: func(in []tensor.Spec, _ reduceAttrs, outs []tensor.DType) ([]tensor.DType, error) {
			return append(outs, out(in[0].DType)), nil
		},
		Reduce: func(a reduceAttrs, in []tensor.Spec) ([]int, kernelgen.Reducer, error) {
			axes, err := a.Axes.AppendAxes(nil, len(in[0].Shape))
			return axes, r.Reducer(in[0].DType, out(in[0].DType)), err
		},
		VMap: func(g *tensor.VMap[reduceAttrs]) ([]*tensor.Array, []int) {
			axes, _ := tensor.Axes(g.Attrs.Axes.Slice(), kit.ExampleRank(g, 0))
			a := reduceAttrs{tensor.MakeInts(kit.Shifted(axes)), g.Attrs.Keep}
			return []*tensor.Array{op.One(g.Ctx, a, FrontOf(g, 0, 0))}, []int{0}
		},
		Tangent:  r.Tangent,
		Constant: r.Gradient == nil,
	}
	if r.Gradient != nil {
		rules.Gradient = func(g *tensor.VJP[reduceAttrs]) *tensor.Array {
			return AsType(r.Gradient(g), g.In[0].DType(), g.Ctx)
		}
	}
	op.Define(rules)
}

func reducedShape(s tensor.Shape, a reduceAttrs, nonEmpty bool) (tensor.Shape, error) {
	var few [8]int
	axes, err := a.Axes.AppendAxes(few[:0], len(s))
	if err != nil {
		return nil, err
	}
	rank := len(s)
	if !a.Keep {
		rank -= len(axes)
	}
	out := make(tensor.Shape, 0, rank)
	for i, n := range s {
		if !slices.Contains(axes, i) {
			out = append(out, n)
		} else if a.Keep {
			out = append(out, 1)
		}
	}
	if nonEmpty {
		for _, i := range axes {
			if s[i] == 0 {
				return nil, fmt.Errorf("cannot reduce axis %d of shape %v: it has no elements", i, s)
			}
		}
	}
	return out, nil
}

func callReduction(c *tensor.Ctx, op *tensor.OpOf[reduceAttrs], a *tensor.Array, axes []int, keep bool) *tensor.Array {
	return op.One(c, reduceAttrs{tensor.MakeInts(axes), keep}, a)
}

// kept is x, an output or cotangent of a reduction of an array of that rank, with the reduced dimensions as ones.
func kept(c *tensor.Ctx, x *tensor.Array, a reduceAttrs, rank int) *tensor.Array {
	axes, err := tensor.Axes(a.Axes.Slice(), rank)
	if a.Keep || err != nil || len(axes) == 0 {
		return x
	}
	return ExpandDims(x, axes, c)
}

// axesOf are the reduced axes of an array of that rank, counted from 0.
func axesOf(a reduceAttrs, rank int) []int {
	axes, _ := tensor.Axes(a.Axes.Slice(), rank)
	return axes
}

// checkAxes returns what is wrong with the axes that a composite op is given.
func checkAxes(c *tensor.Ctx, name string, a *tensor.Array, axes []int) *tensor.Array {
	if f := kit.Unusable(c, name, a); f != nil {
		return f
	}
	if _, err := tensor.Axes(axes, a.NDim()); err != nil {
		return tensor.Fail(c, name, "%w", err)
	}
	return nil
}
