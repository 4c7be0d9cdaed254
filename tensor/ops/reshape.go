package ops

import (
	"errors"
	"fmt"
	"slices"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

// flattenAttrs are the axes as the user wrote them.
type flattenAttrs struct{ Start, End int }

var (
	reshape = tensor.Declare[shapeAttrs]("reshape")
	flatten = tensor.Declare[flattenAttrs]("flatten")
)

func init() {
	reshape.Define(inOrder(tensor.Rules[shapeAttrs]{
		Shape: func(in []tensor.Spec, a shapeAttrs, outs []tensor.Shape) ([]tensor.Shape, error) {
			s, err := reshaped(in, a)
			return append(outs, s), err
		},
		SpecFrom: afterFirst[shapeAttrs],
		VMap: func(g *tensor.VMap[shapeAttrs]) ([]*tensor.Array, []int) {
			to, _, err := kit.Unbound(g, g.Attrs.Shape)
			if err != nil {
				return []*tensor.Array{tensor.Fail(g.Ctx, "reshape", "%w", err)}, []int{0}
			}
			x := FrontOf(g, 0, 0)
			return []*tensor.Array{Reshape(x, tensor.Concat(tensor.DimOf(x, 0), to), g.Ctx)}, []int{0}
		},
	}))

	flatten.Define(inOrder(tensor.Rules[flattenAttrs]{
		Shape: func(in []tensor.Spec, a flattenAttrs, outs []tensor.Shape) ([]tensor.Shape, error) {
			s, err := flattened(in[0].Shape, a)
			return append(outs, s), err
		},
		VMap: func(g *tensor.VMap[flattenAttrs]) ([]*tensor.Array, []int) {
			x := FrontOf(g, 0, 0)
			rank := x.NDim() - 1
			if rank == 0 {
				return []*tensor.Array{ExpandDims(x, []int{1}, g.Ctx)}, []int{0}
			}
			start, end, _ := flattenRange(g.Attrs, rank)
			return []*tensor.Array{Flatten(x, start+1, end+1, g.Ctx)}, []int{0}
		},
	}))
}

// inOrder adds what ops share whose output has the elements of input 0 in their order.
func inOrder[A comparable](r tensor.Rules[A]) tensor.Rules[A] {
	r.DType = kit.SameDType[A]
	r.View = func(in []tensor.Spec, v tensor.View, _ A, out []tensor.Operand) bool {
		return reshapeView(in[0].Shape, v.Strides, &out[0])
	}
	r.Gradient = func(g *tensor.VJP[A]) *tensor.Array { return Reshape(g.Cot[0], tensor.ShapeOf(g.In[0]), g.Ctx) }
	r.Tangent = func(g *tensor.JVP[A]) *tensor.Array { return Reshape(g.Tan[0], tensor.ShapeOf(g.Out[0]), g.Ctx) }
	return r
}

// reshaped is reshape's output shape: a -1 is inferred.
func reshaped(in []tensor.Spec, a shapeAttrs) (tensor.Shape, error) {
	n, err := a.Shape.Resolve(in)
	if err != nil {
		return nil, err
	}
	from, size := in[0].Shape, in[0].Shape.Size()
	to := tensor.Shape(n)
	fail := func() error {
		return fmt.Errorf("cannot reshape %v, of size %d, into shape %v", from, size, tensor.Shape(n))
	}
	infer, rest := -1, 1
	for i, d := range to {
		switch {
		case d == -1 && infer >= 0:
			return nil, fmt.Errorf("shape %v has two sizes to infer", to)
		case d == -1:
			infer = i
		case d < 0:
			return nil, fail()
		case d != 0 && rest > (1<<62)/d:
			return nil, fail()
		default:
			rest *= d
		}
	}
	if infer >= 0 {
		if rest == 0 {
			return nil, errors.New(fail().Error() + ": any size would do for -1")
		}
		to = to.Clone()
		to[infer] = size / rest
		rest *= to[infer]
	}
	if rest != size {
		return nil, fail()
	}
	return to, nil
}

func flattened(s tensor.Shape, a flattenAttrs) (tensor.Shape, error) {
	if len(s) == 0 {
		return tensor.Shape{1}, nil
	}
	start, end, err := flattenRange(a, len(s))
	if err != nil {
		return nil, err
	}
	out := s[:start].Clone()
	out = append(out, s[start:end+1].Size())
	return append(out, s[end+1:]...), nil
}

// flattenRange counts the axes from 0 and clamps them, as MLX does.
func flattenRange(a flattenAttrs, rank int) (start, end int, err error) {
	start, end = a.Start, a.End
	if start < 0 {
		start = max(start+rank, 0)
	}
	if end < 0 {
		end += rank
	}
	end = min(end, rank-1)
	if start > end {
		return 0, 0, fmt.Errorf("start_axis %d is after end_axis %d in %s", a.Start, a.End, tensor.Count(rank, "dimension"))
	}
	return start, end, nil
}

// reshapeView finds strides for the new shape over the same bytes. It works by runs of dimensions whose sizes have
// equal products: the old ones of a run must lie behind one another for the new ones to divide them.
func reshapeView(from tensor.Shape, fromStrides []int, out *tensor.Operand) bool {
	to, strides := out.Shape, out.Strides
	if slices.Contains(from, 0) {
		return true // there is nothing to find
	}
	var some [16]int
	old, oldStrides := some[:0:8], some[8:8]
	for i, n := range from {
		if n != 1 {
			old, oldStrides = append(old, n), append(oldStrides, fromStrides[i])
		}
	}
	i, j := 0, 0
	for i < len(old) {
		first := i
		have, want := old[i], 1
		firstNew := j
		for want != have {
			if want < have {
				want *= to[j]
				j++
			} else {
				i++
				have *= old[i]
			}
		}
		for k := first; k < i; k++ {
			if oldStrides[k] != old[k+1]*oldStrides[k+1] {
				return false
			}
		}
		st := oldStrides[i]
		for k := j - 1; k >= firstNew; k-- {
			strides[k] = st
			st *= to[k]
		}
		i++
	}
	for ; j < len(to); j++ { // ones at the end
		strides[j] = 1
	}
	return true
}

var _ = sig.Def("reshape", "a shape:shape...", func(a *sig.Args) any { return Reshape(a.Array(0), a.Shape(1), a.Ctx) })

// Reshape is a with that shape, its elements in row-major order. One size may be -1: it is inferred. Bytes are
// copied only where a's layout has no strides for the new shape. Sizes whose product is not a's size are an error.
func Reshape(a *tensor.Array, shape tensor.ShapeArg, ctx ...*tensor.Ctx) *tensor.Array {
	return callShaped(tensor.Call(ctx), reshape, a, shape)
}

var _ = sig.Def("flatten", "a start_axis:int=0 end_axis:int=-1", func(a *sig.Args) any {
	return Flatten(a.Array(0), a.Int(1), a.Int(2), a.Ctx)
})

// Flatten makes the dimensions from the start axis to the end axis (both included, negative ones from the end) one.
// Axes beyond the ends are clamped; a scalar becomes an array of one element. A start after the end is an error.
func Flatten(a *tensor.Array, start, end int, ctx ...*tensor.Ctx) *tensor.Array {
	c := tensor.Call(ctx)
	return flatten.One(c, flattenAttrs{start, end}, a)
}
