package ops

import (
	"errors"
	"fmt"
	"slices"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

// axesAttrs are axes as the user wrote them; nil has a meaning of its own for each op.
type axesAttrs struct{ Axes tensor.Ints }

var (
	transpose  = tensor.Declare[axesAttrs]("transpose")
	expandDims = tensor.Declare[axesAttrs]("expand_dims")
	squeeze    = tensor.Declare[axesAttrs]("squeeze")
)

// permuteView is a view rule: dimension i of the output is dimension from(i) of the input, or a new one of size 1
// for -1.
func permuteView(order func(in tensor.Shape, a axesAttrs) ([]int, error)) tensor.Rules[axesAttrs] {
	return tensor.Rules[axesAttrs]{
		Shape: func(in []tensor.Spec, a axesAttrs, outs []tensor.Shape) ([]tensor.Shape, error) {
			from, err := order(in[0].Shape, a)
			out := make(tensor.Shape, len(from))
			for i, k := range from {
				out[i] = 1
				if k >= 0 {
					out[i] = in[0].Shape[k]
				}
			}
			return append(outs, out), err
		},
		DType: kit.SameDType[axesAttrs],
		View: func(in []tensor.Spec, v tensor.View, a axesAttrs, out []tensor.Operand) bool {
			from, _ := order(in[0].Shape, a)
			for i, k := range from {
				out[0].Strides[i] = 1
				if k >= 0 {
					out[0].Strides[i] = v.Strides[k]
				}
			}
			return true
		},
	}
}

// linear adds the derivative rules of an op that moves elements: forward moves a tangent as the op moves its input,
// back moves a cotangent of the output to the input, whose rank is given.
func linear(r tensor.Rules[axesAttrs], forward func(x *tensor.Array, axes []int, ctx ...*tensor.Ctx) *tensor.Array,
	back func(c *tensor.Ctx, cot *tensor.Array, rank int, axes []int) *tensor.Array) tensor.Rules[axesAttrs] {
	r.Gradient = func(g *tensor.VJP[axesAttrs]) *tensor.Array {
		return back(g.Ctx, g.Cot[0], g.In[0].NDim(), g.Attrs.Axes.Slice())
	}
	r.Tangent = func(g *tensor.JVP[axesAttrs]) *tensor.Array {
		return forward(g.Tan[0], g.Attrs.Axes.Slice(), g.Ctx)
	}
	return r
}

func init() {
	t := permuteView(func(in tensor.Shape, a axesAttrs) ([]int, error) { return permutation(a.Axes.Slice(), len(in)) })
	t = linear(t, Transpose, func(c *tensor.Ctx, cot *tensor.Array, rank int, axes []int) *tensor.Array {
		perm, _ := permutation(axes, rank)
		inverse := make([]int, rank)
		for i, k := range perm {
			inverse[k] = i
		}
		return Transpose(cot, inverse, c)
	})
	t.VMap = func(g *tensor.VMap[axesAttrs]) ([]*tensor.Array, []int) {
		perm, _ := permutation(g.Attrs.Axes.Slice(), kit.ExampleRank(g, 0))
		return []*tensor.Array{Transpose(FrontOf(g, 0, 0), append([]int{0}, kit.Shifted(perm)...), g.Ctx)}, []int{0}
	}
	transpose.Define(t)

	e := permuteView(func(in tensor.Shape, a axesAttrs) ([]int, error) {
		axes := a.Axes.Slice()
		if err := tensor.CheckDims(len(in) + len(axes)); err != nil {
			return nil, err
		}
		added, err := addedPositions(axes, len(in))
		from := make([]int, 0, len(in)+len(added))
		for k := 0; len(from) < len(in)+len(added); {
			if slices.Contains(added, len(from)) {
				from = append(from, -1)
			} else {
				from = append(from, k)
				k++
			}
		}
		return from, err
	})
	e = linear(e, ExpandDims, func(c *tensor.Ctx, cot *tensor.Array, rank int, axes []int) *tensor.Array {
		added, _ := addedPositions(axes, rank)
		return Squeeze(cot, added, c)
	})
	e.VMap = func(g *tensor.VMap[axesAttrs]) ([]*tensor.Array, []int) {
		added, _ := addedPositions(g.Attrs.Axes.Slice(), kit.ExampleRank(g, 0))
		return []*tensor.Array{ExpandDims(FrontOf(g, 0, 0), kit.Shifted(added), g.Ctx)}, []int{0}
	}
	expandDims.Define(e)

	s := permuteView(func(in tensor.Shape, a axesAttrs) ([]int, error) {
		dropped, err := tensor.Axes(a.Axes.Slice(), len(in))
		from := []int{}
		for k, n := range in {
			if !slices.Contains(dropped, k) {
				from = append(from, k)
			} else if n != 1 {
				return nil, fmt.Errorf("axis %d of shape %v has size %d, not 1", k, in, n)
			}
		}
		return from, err
	})
	s = linear(s, Squeeze, func(c *tensor.Ctx, cot *tensor.Array, rank int, axes []int) *tensor.Array {
		dropped, _ := tensor.Axes(axes, rank)
		return ExpandDims(cot, dropped, c)
	})
	s.VMap = func(g *tensor.VMap[axesAttrs]) ([]*tensor.Array, []int) {
		dropped, _ := tensor.Axes(g.Attrs.Axes.Slice(), kit.ExampleRank(g, 0))
		return []*tensor.Array{Squeeze(FrontOf(g, 0, 0), kit.Shifted(dropped), g.Ctx)}, []int{0}
	}
	squeeze.Define(s)
}

// permutation is the axes counted from 0; nil reverses them.
func permutation(axes []int, rank int) ([]int, error) {
	perm := make([]int, rank)
	if axes == nil {
		for i := range perm {
			perm[i] = rank - 1 - i
		}
		return perm, nil
	}
	if len(axes) != rank {
		return nil, fmt.Errorf("axes %v for an array with %s", tensor.Shape(axes), tensor.Count(rank, "dimension"))
	}
	if _, err := tensor.Axes(axes, rank); err != nil {
		return nil, err
	}
	for i, a := range axes {
		perm[i], _ = tensor.Axis(a, rank)
	}
	return perm, nil
}

// addedPositions are the new dimensions' positions in the output, sorted.
func addedPositions(axes []int, rank int) ([]int, error) {
	if axes == nil {
		return nil, errors.New("no axes are given")
	}
	return tensor.Axes(axes, rank+len(axes))
}

func callAxes(c *tensor.Ctx, op *tensor.OpOf[axesAttrs], a *tensor.Array, axes []int) *tensor.Array {
	return op.One(c, axesAttrs{tensor.MakeInts(axes)}, a)
}

var _ = sig.Def("transpose", "a axes:axes...?", func(a *sig.Args) any {
	return Transpose(a.Array(0), a.Ints(1), a.Ctx)
})

var _ = sig.Alias("permute_dims", "transpose")

// Transpose is a view of a whose dimension i is a's dimension axes[i]. Without axes the dimensions are reversed. Each
// axis must occur once, negative ones count from the end.
func Transpose(a *tensor.Array, axes []int, ctx ...*tensor.Ctx) *tensor.Array {
	return callAxes(tensor.Call(ctx), transpose, a, axes)
}

var _ = sig.Def("expand_dims", "a axis:axes", func(a *sig.Args) any { return ExpandDims(a.Array(0), a.Ints(1), a.Ctx) })

// ExpandDims is a view of a with new dimensions of size 1 at those axes of the result, negative ones from the end.
// A repeated axis is an error.
func ExpandDims(a *tensor.Array, axes []int, ctx ...*tensor.Ctx) *tensor.Array {
	return callAxes(tensor.Call(ctx), expandDims, a, axes)
}

var _ = sig.Def("squeeze", "a axis:axes?", func(a *sig.Args) any { return Squeeze(a.Array(0), a.Ints(1), a.Ctx) })

// Squeeze is a view of a without those dimensions, whose sizes must be 1. Without axes all dimensions of size 1 go:
// the shape is then read, so that compile guards it.
func Squeeze(a *tensor.Array, axes []int, ctx ...*tensor.Ctx) *tensor.Array {
	c := tensor.Call(ctx)
	if f := kit.Unusable(c, "squeeze", a); f != nil {
		return f
	}
	if axes == nil {
		axes = []int{}
		for i, n := range a.Shape() {
			if n == 1 {
				axes = append(axes, i)
			}
		}
	}
	return callAxes(c, squeeze, a, axes)
}

// twoAxes are two axes of a counted from 0, or what is wrong with them.
func twoAxes(c *tensor.Ctx, op string, a *tensor.Array, first, second int) (i, j int, fail *tensor.Array) {
	if f := kit.Unusable(c, op, a); f != nil {
		return 0, 0, f
	}
	i, err1 := tensor.Axis(first, a.NDim())
	j, err2 := tensor.Axis(second, a.NDim())
	if err := errors.Join(err1, err2); err != nil {
		return 0, 0, tensor.Fail(c, op, "%w", err)
	}
	return i, j, nil
}

var _ = sig.Def("swapaxes", "a axis1:int axis2:int", func(a *sig.Args) any {
	return SwapAxes(a.Array(0), a.Int(1), a.Int(2), a.Ctx)
}, sig.Same("axis1 and axis2 swapped", "either is exchanged with the other"))

// SwapAxes is a view of a with two dimensions exchanged. Negative axes count from the end.
func SwapAxes(a *tensor.Array, axis1, axis2 int, ctx ...*tensor.Ctx) *tensor.Array {
	c := tensor.Call(ctx)
	i, j, f := twoAxes(c, "swapaxes", a, axis1, axis2)
	if f != nil {
		return f
	}
	perm := kit.Identity(a.NDim())
	perm[i], perm[j] = j, i
	return Transpose(a, perm, c)
}

var _ = sig.Def("matrix_transpose", "a", func(a *sig.Args) any { return MatrixTranspose(a.Array(0), a.Ctx) })

// MatrixTranspose is a view of a whose last two dimensions are exchanged. An array of fewer than two is an error.
func MatrixTranspose(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	const op = "matrix_transpose"
	c := tensor.Call(ctx)
	if f := kit.Unusable(c, op, a); f != nil {
		return f
	}
	if a.NDim() < 2 {
		return tensor.Fail(c, op, "an array with %s is no matrix: it needs 2 or more", tensor.Count(a.NDim(), "dimension"))
	}
	return SwapAxes(a, -2, -1, c)
}

var _ = sig.Def("moveaxis", "a source:int destination:int", func(a *sig.Args) any {
	return MoveAxis(a.Array(0), a.Int(1), a.Int(2), a.Ctx)
})

// MoveAxis is a view of a with its dimension source at the place destination; the others keep their order. Negative
// axes count from the end.
func MoveAxis(a *tensor.Array, source, destination int, ctx ...*tensor.Ctx) *tensor.Array {
	c := tensor.Call(ctx)
	from, to, f := twoAxes(c, "moveaxis", a, source, destination)
	if f != nil {
		return f
	}
	if from == to {
		return a
	}
	perm := slices.Insert(slices.Delete(kit.Identity(a.NDim()), from, from+1), to, from)
	return Transpose(a, perm, c)
}
