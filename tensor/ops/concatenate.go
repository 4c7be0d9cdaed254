package ops

import (
	"errors"
	"fmt"
	"slices"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

var (
	concatenate = tensor.Declare[axisAttrs]("concatenate")
	// splitLike cuts input 0 along an axis into pieces of the sizes that the inputs from 1 on have there; only their
	// shapes are read. It undoes concatenate.
	splitLike = tensor.Declare[axisAttrs]("split_like")
)

func init() {
	concatenate.Define(tensor.Rules[axisAttrs]{
		Shape: func(in []tensor.Spec, a axisAttrs, outs []tensor.Shape) ([]tensor.Shape, error) {
			s, err := joined(in, a.Axis)
			return append(outs, s), err
		},
		DType: kit.OneDType[axisAttrs],
		Run: func(r *tensor.Run, a axisAttrs) error {
			axis, err := tensor.Axis(a.Axis, len(r.Out[0].Shape))
			if err != nil {
				return err
			}
			to := r.Out[0]
			for _, x := range r.In {
				to.Shape = x.Shape
				if x.Shape.Size() > 0 {
					if err := r.CopyTo(to, x); err != nil {
						return err
					}
				}
				to.OffsetBytes += int64(x.Shape[axis]) * int64(to.Strides[axis]) * int64(to.DType.Size())
			}
			return nil
		},
		VJP: func(g *tensor.VJP[axisAttrs]) []*tensor.Array {
			return splitLike.Call(g.Ctx, g.Attrs, append([]*tensor.Array{g.Cot[0]}, g.In...)...)
		},
		JVP: func(g *tensor.JVP[axisAttrs]) []*tensor.Array {
			return []*tensor.Array{concatenate.One(g.Ctx, g.Attrs, WithZeros(g.Ctx, g.Tan, g.In)...)}
		},
		VMap: func(g *tensor.VMap[axisAttrs]) ([]*tensor.Array, []int) {
			in, a := fronts(g)
			return []*tensor.Array{concatenate.One(g.Ctx, a, in...)}, []int{0}
		},
	})

	splitLike.Define(tensor.Rules[axisAttrs]{
		Shape: func(in []tensor.Spec, a axisAttrs, outs []tensor.Shape) ([]tensor.Shape, error) {
			s, err := joined(in[1:], a.Axis)
			if err == nil && !s.Equal(in[0].Shape) {
				err = fmt.Errorf("pieces of shape %v in all, of an array of shape %v", s, in[0].Shape)
			}
			for _, x := range in[1:] {
				outs = append(outs, x.Shape)
			}
			return outs, err
		},
		DType: func(in []tensor.Spec, _ axisAttrs, outs []tensor.DType) ([]tensor.DType, error) {
			for range in[1:] {
				outs = append(outs, in[0].DType)
			}
			return outs, nil
		},
		SpecFrom: afterFirst[axisAttrs],
		View: func(_ []tensor.Spec, v tensor.View, a axisAttrs, out []tensor.Operand) bool {
			return pieceViews(v, a.Axis, out)
		},
		Gradient: func(g *tensor.VJP[axisAttrs]) *tensor.Array {
			return concatenate.One(g.Ctx, g.Attrs, WithZeros(g.Ctx, g.Cot, g.Out)...)
		},
		JVP: func(g *tensor.JVP[axisAttrs]) []*tensor.Array {
			return splitLike.Call(g.Ctx, g.Attrs, append([]*tensor.Array{g.Tan[0]}, g.In[1:]...)...)
		},
		VMap: func(g *tensor.VMap[axisAttrs]) ([]*tensor.Array, []int) {
			in, a := fronts(g)
			return splitLike.Call(g.Ctx, a, in...), make([]int, len(in)-1)
		},
	})
}

// fronts are the inputs of a join or split with their batch axes first, and its attributes past them.
func fronts(g *tensor.VMap[axisAttrs]) ([]*tensor.Array, axisAttrs) {
	in := make([]*tensor.Array, len(g.In))
	for i := range in {
		in[i] = FrontOf(g, i, 0)
	}
	axis, _ := tensor.Axis(g.Attrs.Axis, kit.ExampleRank(g, 0))
	return in, axisAttrs{axis + 1}
}

// joined is the shape of arrays put together along an axis.
func joined(in []tensor.Spec, axis int) (tensor.Shape, error) {
	out := in[0].Shape.Clone()
	axis, err := tensor.Axis(axis, len(out))
	if err != nil {
		return nil, err
	}
	for i, x := range in[1:] {
		same := len(x.Shape) == len(out)
		for d := 0; same && d < len(out); d++ {
			same = d == axis || x.Shape[d] == out[d]
		}
		if !same {
			return nil, fmt.Errorf("array %d has shape %v, which differs from %v in more than axis %d", i+1, x.Shape,
				in[0].Shape, axis)
		}
		out[axis] += x.Shape[axis]
	}
	return out, nil
}

// pieceViews makes the outputs views of neighbouring pieces along an axis.
func pieceViews(v tensor.View, axis int, out []tensor.Operand) bool {
	axis, _ = tensor.Axis(axis, len(v.Strides))
	at := v.OffsetBytes
	for i := range out {
		o := &out[i]
		o.OffsetBytes = at
		copy(o.Strides, v.Strides)
		if n := o.Shape[axis]; n > 0 { // an empty piece at the end would begin past the array
			at += int64(n) * int64(v.Strides[axis]) * int64(o.DType.Size())
		}
	}
	return true
}

var _ = sig.Def("concatenate", "arrays:arrays axis:axis=0", func(a *sig.Args) any {
	return Concatenate(a.Arrays(0), a.Axis(1), a.Ctx)
})

var _ = sig.Alias("concat", "concatenate")

// Concatenate puts arrays together along an axis (nil: the flattened arrays), in their common dtype. Their shapes may
// differ along that axis only. A list without arrays, and arrays without dimensions beside an axis, are errors.
func Concatenate(arrays []*tensor.Array, axis *int, ctx ...*tensor.Ctx) *tensor.Array {
	const op = "concatenate"
	c := tensor.Call(ctx)
	in, f := Convert(c, op, kit.AnyDType, slices.Clone(arrays)...)
	if f != nil {
		return f
	}
	a := axisAttrs{}
	if axis != nil {
		a.Axis = *axis
	} else {
		for i, x := range in {
			in[i] = Flatten(x, 0, -1, c)
		}
	}
	return join(c, op, a, in)
}

// join concatenates arrays of one dtype.
func join(c *tensor.Ctx, op string, a axisAttrs, in []*tensor.Array) *tensor.Array {
	if len(in) > 1 {
		return kit.FailedAs(c, op, concatenate.One(c, a, in...))
	}
	if _, err := tensor.Axis(a.Axis, in[0].NDim()); err != nil {
		return tensor.Fail(c, op, "%w", err)
	}
	return in[0]
}

var _ = sig.Def("stack", "arrays:arrays axis:int=0", func(a *sig.Args) any {
	return Stack(a.Arrays(0), a.Int(1), a.Ctx)
})

// Stack puts arrays of one shape together along a new axis of the result (negative: from the end), in their common
// dtype. A list without arrays, and shapes that differ, are errors.
func Stack(arrays []*tensor.Array, axis int, ctx ...*tensor.Ctx) *tensor.Array {
	const op = "stack"
	c := tensor.Call(ctx)
	in, f := Convert(c, op, kit.AnyDType, slices.Clone(arrays)...)
	if f != nil {
		return f
	}
	axis, err := tensor.Axis(axis, in[0].NDim()+1)
	if err != nil {
		return tensor.Fail(c, op, "%w", err)
	}
	first := in[0].Spec().Shape
	for i, x := range in {
		if s := x.Spec().Shape; !s.Equal(first) {
			return tensor.Fail(c, op, "array %d has shape %v, array 0 has %v", i, s, first)
		}
		in[i] = ExpandDims(x, []int{axis}, c)
	}
	return join(c, op, axisAttrs{axis}, in)
}

// splitAttrs describe a split into equal sections.
type splitAttrs struct{ Sections, Axis int }

// mostSections bounds the arrays that one split gives.
const mostSections = 1 << 20

var splitOp = tensor.Declare[splitAttrs]("split")

func init() {
	splitOp.Define(tensor.Rules[splitAttrs]{
		Shape: func(in []tensor.Spec, a splitAttrs, outs []tensor.Shape) ([]tensor.Shape, error) {
			s := in[0].Shape.Clone()
			axis, err := tensor.Axis(a.Axis, len(s))
			switch {
			case err != nil:
				return nil, err
			case a.Sections < 1 || a.Sections > mostSections:
				return nil, fmt.Errorf("%d sections, want 1 to %d", a.Sections, mostSections)
			case s[axis]%a.Sections != 0:
				return nil, fmt.Errorf("axis %d of shape %v cannot be split into %d equal sections", axis, s,
					a.Sections)
			}
			s[axis] /= a.Sections
			for range a.Sections {
				outs = append(outs, s)
			}
			return outs, nil
		},
		DType: func(in []tensor.Spec, a splitAttrs, outs []tensor.DType) ([]tensor.DType, error) {
			if a.Sections < 1 || a.Sections > mostSections {
				return nil, fmt.Errorf("%d sections, want 1 to %d", a.Sections, mostSections)
			}
			for range a.Sections {
				outs = append(outs, in[0].DType)
			}
			return outs, nil
		},
		View: func(_ []tensor.Spec, v tensor.View, a splitAttrs, out []tensor.Operand) bool {
			return pieceViews(v, a.Axis, out)
		},
		Gradient: func(g *tensor.VJP[splitAttrs]) *tensor.Array {
			return concatenate.One(g.Ctx, axisAttrs{g.Attrs.Axis}, WithZeros(g.Ctx, g.Cot, g.Out)...)
		},
		JVP: func(g *tensor.JVP[splitAttrs]) []*tensor.Array {
			return splitOp.Call(g.Ctx, g.Attrs, g.Tan[0])
		},
		VMap: func(g *tensor.VMap[splitAttrs]) ([]*tensor.Array, []int) {
			axis, _ := tensor.Axis(g.Attrs.Axis, kit.ExampleRank(g, 0))
			out := splitOp.Call(g.Ctx, splitAttrs{g.Attrs.Sections, axis + 1}, FrontOf(g, 0, 0))
			return out, make([]int, len(out))
		},
	})
}

var _ = sig.Def("split", "a indices_or_sections:int|ints axis:int=0", func(a *sig.Args) any {
	if sections, ok := sig.As[int](a, 1); ok {
		return sig.Table(Split(a.Array(0), sections, a.Int(2), a.Ctx))
	}
	return sig.Table(SplitAt(a.Array(0), a.Ints(1), a.Int(2), a.Ctx))
})

// Split cuts a along an axis into that many sections of equal size, which are views of a; in a script also at a table
// of indices, n of which give n + 1 pieces, from one index to the next. Indices are clamped, and negative ones count
// from the end; where one is before the last the piece is empty. A size that the number of sections does not divide is
// an error, which one array carries.
func Split(a *tensor.Array, sections, axis int, ctx ...*tensor.Ctx) []*tensor.Array {
	c := tensor.Call(ctx)
	if f := kit.Unusable(c, "split", a); f != nil {
		return []*tensor.Array{f}
	}
	return splitOp.Call(c, splitAttrs{sections, axis}, a)
}

// SplitAt cuts a along an axis at those indices: n of them give n + 1 views, of a's elements from one index to the
// next. Indices are clamped, and negative ones count from the end, as in Slice; where one is before the last the
// piece is empty. An axis out of range is an error: the result is then one array that carries it.
//
//sig:none mx.split, by indices
func SplitAt(a *tensor.Array, indices []int, axis int, ctx ...*tensor.Ctx) []*tensor.Array {
	const op = "split"
	c := tensor.Call(ctx)
	fail := kit.Unusable(c, op, a)
	if fail == nil {
		var err error
		if axis, err = tensor.Axis(axis, a.NDim()); err == nil && len(indices) >= mostSections {
			err = errors.New("too many indices")
		}
		if err != nil {
			fail = tensor.Fail(c, op, "%w", err)
		}
	}
	if fail != nil {
		return []*tensor.Array{fail}
	}
	out := make([]*tensor.Array, len(indices)+1)
	parts := make([]Part, axis+1)
	for i := range parts {
		parts[i] = Whole()
	}
	start := None
	for i := range out {
		stop := None
		if i < len(indices) {
			stop = indices[i]
		}
		parts[axis] = Span(start, stop, 1)
		out[i] = Slice(a, parts, c)
		start = stop
	}
	return out
}
