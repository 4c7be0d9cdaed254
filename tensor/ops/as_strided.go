package ops

import (
	"fmt"
	"slices"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

// stridedAttrs are as_strided's arguments as the user wrote them; references of the shape are the inputs from 1 on.
// The first Batch dimensions of input and output are those of batches: strides and offset are an example's.
type stridedAttrs struct {
	Shape   tensor.Dims
	Strides tensor.Ints // nil: row-major ones
	Offset  int
	Batch   int
}

var asStrided = tensor.Declare[stridedAttrs]("as_strided")

func init() {
	asStrided.Define(tensor.Rules[stridedAttrs]{
		Shape: func(in []tensor.Spec, a stridedAttrs, outs []tensor.Shape) ([]tensor.Shape, error) {
			to, err := a.Shape.Shape(in)
			if err == nil {
				_, err = a.strides(in[0].Shape, to)
			}
			return append(outs, to), err
		},
		DType:    kit.SameDType[stridedAttrs],
		SpecFrom: afterFirst[stridedAttrs],
		View: func(in []tensor.Spec, v tensor.View, a stridedAttrs, out []tensor.Operand) bool {
			if !v.Contiguous(in[0].Shape) {
				return false
			}
			o := &out[0]
			strides, _ := a.strides(in[0].Shape, o.Shape)
			copy(o.Strides, strides)
			if o.Shape.Size() > 0 {
				o.OffsetBytes += int64(a.Offset) * int64(o.DType.Size())
			}
			return true
		},
		Gradient: stridedGradient,
		Tangent: func(g *tensor.JVP[stridedAttrs]) *tensor.Array {
			return asStrided.One(g.Ctx, g.Attrs, append([]*tensor.Array{g.Tan[0]}, g.In[1:]...)...)
		},
		VMap: func(g *tensor.VMap[stridedAttrs]) ([]*tensor.Array, []int) {
			to, _, err := kit.Unbound(g, g.Attrs.Shape)
			if err != nil {
				return []*tensor.Array{tensor.Fail(g.Ctx, "as_strided", "%w", err)}, []int{0}
			}
			x := FrontOf(g, 0, 0)
			a := g.Attrs
			a.Batch++
			var in []*tensor.Array
			a.Shape, in = tensor.Concat(tensor.DimOf(x, 0), to).Bind([]*tensor.Array{x})
			return []*tensor.Array{asStrided.One(g.Ctx, a, in...)}, []int{0}
		},
	})
}

// strides are those of the output of shape to, over the elements of an array of shape from in row-major order; or what
// is wrong with them: no element may lie beyond the array.
func (a stridedAttrs) strides(from, to tensor.Shape) ([]int, error) {
	n := from[a.Batch:].Size()
	shape := to[a.Batch:]
	strides := a.Strides.Slice()
	if a.Strides.IsNil() {
		strides = shape.Strides()
	}
	if len(strides) != len(shape) {
		return nil, fmt.Errorf("%s for shape %v", tensor.Count(len(strides), "stride"), shape)
	}
	if shape.Size() > 0 {
		low, high := a.Offset, a.Offset
		inside := low >= 0 && high < n
		for i, d := range shape {
			step := strides[i]
			if d == 1 || step == 0 {
				continue
			}
			if step <= -n || step >= n || d-1 > n/max(step, -step) {
				inside = false
				break
			}
			low, high = low+min(0, (d-1)*step), high+max(0, (d-1)*step)
			inside = inside && low >= 0 && high < n
		}
		if !inside {
			return nil, fmt.Errorf("shape %v by strides %v from element %d on leaves the array, which has %s", shape,
				tensor.Shape(strides).Clone(), a.Offset, tensor.Count(n, "element"))
		}
	}
	return slices.Concat(from.Strides()[:a.Batch], strides), nil
}

// stridedGradient adds up what elements of the output are one of the input.
func stridedGradient(g *tensor.VJP[stridedAttrs]) *tensor.Array {
	c, like := g.Ctx, tensor.ShapeOf(g.In[0])
	index := asStrided.One(c, g.Attrs, append([]*tensor.Array{Iota(c, like)}, g.In[1:]...)...)
	zeros := Flatten(Zeros(like, g.Cot[0].DType(), c), 0, -1, c)
	a := scatterAttrs{gatherAttrs{"as_strided", tensor.MakeInts([]int{0}), 0}, scatterAdd}
	sum := scatter.One(c, a, zeros, Flatten(g.Cot[0], 0, -1, c), Flatten(index, 0, -1, c))
	return Reshape(sum, like, c)
}

var _ = sig.Def("as_strided", "a shape:shape? strides:ints? offset:int=0", func(a *sig.Args) any {
	shape := a.Shape(1)
	if !a.Given(1) {
		shape = tensor.ShapeOf(a.Array(0))
	}
	return AsStrided(a.Array(0), shape, a.Ints(2), a.Int(3), a.Ctx)
})

// AsStrided is an array of that shape (nil: a's) whose element at index i is the element of a, in row-major order, at
// offset plus the sum of i times strides (nil: those of the shape in row-major order). Elements of a may occur several
// times: the gradient adds them up. It is a view where a lies in row-major order. What would reach beyond a's elements
// is an error, as is a number of strides that is not the shape's.
func AsStrided(a *tensor.Array, shape tensor.ShapeArg, strides []int, offset int, ctx ...*tensor.Ctx) *tensor.Array {
	c := tensor.Call(ctx)
	if f := kit.Unusable(c, "as_strided", a); f != nil {
		return f
	}
	dims, in := shape.Bind([]*tensor.Array{a})
	return asStrided.One(c, stridedAttrs{Shape: dims, Strides: tensor.MakeInts(strides), Offset: offset}, in...)
}
