package ops

import (
	_ "embed"
	"errors"
	"fmt"
	"slices"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

// dynamicAttrs describe slices that begin where an array says: along Axes, as the user wrote them, in an example. The
// first Batch dimensions of all inputs are those of batches.
type dynamicAttrs struct {
	Axes  tensor.Ints
	Size  tensor.Dims // of a slice, whose references are the inputs from 2 on; an update has it as its shape
	Batch int
}

var (
	dynamicSlice = tensor.Declare[dynamicAttrs]("dynamic_slice")
	// dynamicUpdate is a copy of input 0 with input 1, of as many dimensions, at the starts that input 2 holds.
	dynamicUpdate = tensor.Declare[dynamicAttrs]("dynamic_slice_update")
	//go:embed dynamic_slice.metal
	dynamicText    string
	dynamicKernels = kit.NewKernels[dynamicVariant](kit.StridesMSL, dynamicText)
)

// dynamicVariant is the starts' dtype and the unsigned integers of the elements' size.
type dynamicVariant struct {
	IDX tensor.DType
	T   string
}

func init() {
	dynamicSlice.Define(tensor.Rules[dynamicAttrs]{
		Shape: func(in []tensor.Spec, a dynamicAttrs, outs []tensor.Shape) ([]tensor.Shape, error) {
			size, err := a.Size.Shape(in)
			if err == nil {
				err = a.check(in[0].Shape, in[1], size)
			}
			if err != nil {
				return nil, err
			}
			return append(outs, slices.Concat(in[0].Shape[:a.Batch], size)), nil
		},
		DType:       kit.SameDType[dynamicAttrs],
		SpecFrom:    func(dynamicAttrs, int) int { return 2 },
		IndicesFrom: afterFirst[dynamicAttrs],
		Bounds: func(in []tensor.Spec, a dynamicAttrs, bounds []tensor.Ints) []tensor.Ints {
			size, _ := a.Size.Shape(in) // as its shape was found
			return append(bounds, a.bounds(in[0].Shape, size))
		},
		CheckIndices: func(r *tensor.Run, a dynamicAttrs) error {
			return a.checkStarts(r, "slice", r.In[1], r.Out[0].Shape)
		},
		Run: runDynamicSlice,
		Gradient: func(g *tensor.VJP[dynamicAttrs]) *tensor.Array {
			zeros := Zeros(tensor.ShapeOf(g.In[0]), g.Cot[0].DType(), g.Ctx)
			return dynamicUpdate.One(g.Ctx, g.Attrs.update(), zeros, g.Cot[0], g.In[1])
		},
		Tangent: func(g *tensor.JVP[dynamicAttrs]) *tensor.Array {
			return dynamicSlice.One(g.Ctx, g.Attrs, append([]*tensor.Array{g.Tan[0]}, g.In[1:]...)...)
		},
		VMap: func(g *tensor.VMap[dynamicAttrs]) ([]*tensor.Array, []int) {
			size, _, err := kit.Unbound(g, g.Attrs.Size)
			if err != nil {
				return []*tensor.Array{tensor.Fail(g.Ctx, "slice", "%w", err)}, []int{0}
			}
			x, start, a := FrontOf(g, 0, 0), g.In[1], g.Attrs
			if a.Batch > 0 || g.Axes[1] >= 0 {
				start = FrontOf(g, 1, 0)
				a.Batch++
			} else {
				a.Axes = a.shifted(kit.ExampleRank(g, 0))
				size = tensor.Concat(tensor.DimOf(x, 0), size)
			}
			in := []*tensor.Array{x, start}
			a.Size, in = size.Bind(in)
			return []*tensor.Array{dynamicSlice.One(g.Ctx, a, in...)}, []int{0}
		},
	})

	dynamicUpdate.Define(tensor.Rules[dynamicAttrs]{
		Shape: func(in []tensor.Spec, a dynamicAttrs, outs []tensor.Shape) ([]tensor.Shape, error) {
			if len(in[1].Shape) != len(in[0].Shape) || !in[1].Shape[:a.Batch].Equal(in[0].Shape[:a.Batch]) {
				return nil, fmt.Errorf("an update of shape %v for an array of shape %v", in[1].Shape, in[0].Shape)
			}
			return append(outs, in[0].Shape), a.check(in[0].Shape, in[2], in[1].Shape[a.Batch:])
		},
		DType: func(in []tensor.Spec, _ dynamicAttrs, outs []tensor.DType) ([]tensor.DType, error) {
			return kit.OneDTypeOf(outs, in[:2]...)
		},
		IndicesFrom: afterSecond[dynamicAttrs],
		Bounds: func(in []tensor.Spec, a dynamicAttrs, bounds []tensor.Ints) []tensor.Ints {
			return append(bounds, a.bounds(in[0].Shape, in[1].Shape[a.Batch:]))
		},
		CheckIndices: func(r *tensor.Run, a dynamicAttrs) error {
			return a.checkStarts(r, "slice_update", r.In[2], r.In[1].Shape)
		},
		Updates: tensor.UpdatesFirst[dynamicAttrs],
		Run:     runDynamicUpdate,
		VJP: func(g *tensor.VJP[dynamicAttrs]) []*tensor.Array {
			grads := make([]*tensor.Array, 3)
			cot, start := g.Cot[0], g.In[2]
			if g.Want[0] {
				zeros := Zeros(tensor.ShapeOf(g.In[1]), cot.DType(), g.Ctx)
				grads[0] = dynamicUpdate.One(g.Ctx, g.Attrs, cot, zeros, start)
			}
			if g.Want[1] {
				grads[1] = g.Attrs.slice(g.Ctx, cot, start, g.In[1])
			}
			return grads
		},
		JVP: func(g *tensor.JVP[dynamicAttrs]) []*tensor.Array {
			tans := WithZeros(g.Ctx, g.Tan[:2], g.In[:2])
			if tans == nil { // only starts have tangents
				return nil
			}
			return []*tensor.Array{dynamicUpdate.One(g.Ctx, g.Attrs, tans[0], tans[1], g.In[2])}
		},
		VMap: func(g *tensor.VMap[dynamicAttrs]) ([]*tensor.Array, []int) {
			x, u, start, a := FrontOf(g, 0, 0), FrontOf(g, 1, 0), g.In[2], g.Attrs
			if a.Batch > 0 || g.Axes[2] >= 0 {
				start = FrontOf(g, 2, 0)
				a.Batch++
			} else {
				a.Axes = a.shifted(kit.ExampleRank(g, 0))
			}
			return []*tensor.Array{dynamicUpdate.One(g.Ctx, a, x, u, start)}, []int{0}
		},
	})
}

// update are the attributes of the update whose slices these are: its size is the update's own.
func (a dynamicAttrs) update() dynamicAttrs { return dynamicAttrs{Axes: a.Axes, Batch: a.Batch} }

// slice takes from x what an update like that one would change.
func (a dynamicAttrs) slice(c *tensor.Ctx, x, start, update *tensor.Array) *tensor.Array {
	dims := []tensor.ShapeArg{}
	for i := a.Batch; i < update.NDim(); i++ {
		dims = append(dims, tensor.DimOf(update, i))
	}
	in := []*tensor.Array{x, start}
	a.Size, in = tensor.Concat(dims...).Bind(in)
	return dynamicSlice.One(c, a, in...)
}

// shifted are the axes, counted from 0, past a new first dimension; rank is an example's.
func (a dynamicAttrs) shifted(rank int) tensor.Ints {
	axes := a.Axes.Slice()
	for i, axis := range axes {
		axis, _ = tensor.Axis(axis, rank)
		axes[i] = axis + 1
	}
	return tensor.MakeInts(axes)
}

// check says what is wrong with starts for slices of that size from an array of shape s.
func (a dynamicAttrs) check(s tensor.Shape, start tensor.Spec, size tensor.Shape) error {
	if err := kit.CheckIndex(start.DType); err != nil {
		return err
	}
	example := s[a.Batch:]
	if _, err := tensor.Axes(append([]int{}, a.Axes.Slice()...), len(example)); err != nil {
		return err
	}
	starts := start.Shape[min(a.Batch, len(start.Shape)):]
	switch {
	case len(starts) > 1:
		return fmt.Errorf("starts of shape %v, want one dimension", starts)
	case starts.Size() != a.Axes.Len():
		return fmt.Errorf("%s for %s", tensor.Count(starts.Size(), "start"), tensor.Count(a.Axes.Len(), "axis"))
	case len(size) != len(example):
		return fmt.Errorf("a slice of size %v for an array of shape %v", size, example)
	}
	for i, n := range size {
		if n > example[i] {
			return fmt.Errorf("a slice of size %v is larger than the array, of shape %v", size, example)
		}
	}
	return nil
}

// bounds are the numbers that decide which starts are right for slices of that size from an array of shape s: two for
// each start.
func (a dynamicAttrs) bounds(s tensor.Shape, size tensor.Shape) tensor.Ints {
	axes := a.Axes.Slice()
	numbers := make([]int, 0, 2*len(axes))
	for _, axis := range axes {
		axis, err := tensor.Axis(axis, len(size))
		if err != nil {
			return tensor.Ints{}
		}
		numbers = append(numbers, s[a.Batch+axis], size[axis])
	}
	return tensor.MakeInts(numbers)
}

// begins are the offsets in elements at which slices of that size begin in x, one for each example. A start from which
// its slice would leave x fails the node when the kernels have run.
func (a dynamicAttrs) begins(r *tensor.Run, op string, x, start tensor.Operand, size tensor.Shape) (tensor.Operand,
	error) {
	count := x.Shape[:a.Batch].Size()
	offsets, err := r.Temp(tensor.Spec{Shape: tensor.Shape{count}, DType: tensor.Int64})
	if err != nil {
		return offsets, err
	}
	axes := a.Axes.Slice()
	numbers := make([]int64, 0, 3*len(axes)+1)
	for i, axis := range axes {
		axes[i], _ = tensor.Axis(axis, len(size))
		k := a.Batch + axes[i]
		numbers = append(numbers, int64(x.Shape[k]), int64(size[axes[i]]), int64(x.Strides[k]))
	}
	if len(axes) == 0 {
		numbers = append(numbers, 0) // an argument has bytes
	}
	notes, err := kit.NewNotes(r, max(len(axes), 1))
	if err != nil {
		return offsets, err
	}
	batch := 0
	if a.Batch > 0 {
		batch = x.Strides[a.Batch-1]
	}
	err = dynamicKernels.Launch(r, dynamicVariant{start.DType, kit.Bits(x.DType)}, "slice_offsets", kit.Line(count),
		start.Arg(), offsets.Arg(), notes.Arg(0), tensor.Const(numbers),
		kit.Params{}.Long(batch).Uint(len(axes)).Arg())
	shape := x.Shape[a.Batch:].Clone()
	size = size.Clone()
	notes.Check(op, func(i int, index string) string {
		return fmt.Sprintf("a slice of size %v from %s on along axis %d leaves the array, of shape %v", size, index, axes[i],
			shape)
	})
	return offsets, err
}

// checkStarts is begins for slices of one of the shape other from input 0, where nobody wants the offsets.
func (a dynamicAttrs) checkStarts(r *tensor.Run, op string, start tensor.Operand, other tensor.Shape) error {
	x := r.In[0]
	start, err := r.ContiguousOf(start)
	if a.Batch > 0 {
		x.Shape, x.Strides, other, a = a.oneBatch(x, other)
	}
	if err == nil {
		_, err = a.begins(r, op, x, start, other[a.Batch:])
	}
	return err
}

// dense is x in row-major order if there is a batch, so that one stride leads from example to example.
func (a dynamicAttrs) dense(r *tensor.Run, x tensor.Operand) (tensor.Operand, error) {
	if a.Batch > 0 {
		return r.ContiguousOf(x)
	}
	return x, nil
}

func runDynamicSlice(r *tensor.Run, a dynamicAttrs) error {
	out := r.Out[0]
	start, err1 := r.Contiguous(1)
	x, err2 := a.dense(r, r.In[0])
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	if a.Batch > 0 { // all batch dimensions as one
		x.Shape, x.Strides, out.Shape, a = a.oneBatch(x, out.Shape)
	}
	size := out.Shape[a.Batch:]
	offsets, err := a.begins(r, "slice", x, start, size)
	if err != nil {
		return err
	}
	one := x
	one.Shape, one.Strides = size, x.Strides[a.Batch:]
	return gatherSlices(r, one, offsets, out, 0, 1)
}

// oneBatch is x's shape and strides, and the shape of another array, with all dimensions of the batch as one.
func (a dynamicAttrs) oneBatch(x tensor.Operand, other tensor.Shape) (shape tensor.Shape, strides []int,
	others tensor.Shape, b dynamicAttrs) {
	merged := func(s tensor.Shape) tensor.Shape {
		return append(tensor.Shape{s[:a.Batch].Size()}, s[a.Batch:]...)
	}
	b = a
	b.Batch = 1
	shape = merged(x.Shape)
	return shape, shape.Strides(), merged(other), b
}

func runDynamicUpdate(r *tensor.Run, a dynamicAttrs) error {
	out := r.Out[0]
	r.Changed(r.In[1].NBytes())
	if r.In[1].Shape.Size() == 0 {
		return nil
	}
	update, err1 := r.Contiguous(1)
	start, err2 := r.Contiguous(2)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	shape := update.Shape
	if a.Batch > 0 {
		out.Shape, out.Strides, shape, a = a.oneBatch(out, shape)
	}
	size := shape[a.Batch:]
	strides := out.Strides[a.Batch:]
	offsets, err := a.begins(r, "slice_update", out, start, size)
	if err != nil {
		return err
	}
	count, n := offsets.Shape.Size(), size.Size()
	if err := kit.CheckRows(count, n); err != nil {
		return err
	}
	if out, err = r.Updated(); err != nil {
		return err
	}
	dims := kit.Collapse(size, strides)
	return dynamicKernels.Launch(r, dynamicVariant{start.DType, kit.Bits(out.DType)}, "place", kit.Plane(n, count),
		out.Arg(), offsets.Arg(), update.Arg(), dims.Shape(), dims.Strides(0), dims.Rank(), kit.Uint(n))
}

var _ = sig.Def("slice", "a start_indices:indices axes:ints slice_size:shape", func(a *sig.Args) any {
	return DynamicSlice(a.Array(0), a.Array(1), a.Ints(2), a.Shape(3), a.Ctx)
}, sig.Doc("DynamicSlice"))

// DynamicSlice is the part of a of that size which begins, along axes, at the integers that start_indices holds when
// it runs, one for each axis; along others it begins at 0. Negative ones count from the end. So one compiled function
// takes slices at any place. A slice that leaves the array is an error when it is computed; one larger than a, and a
// number of starts that is not that of axes, are errors at once.
func DynamicSlice(a, start *tensor.Array, axes []int, size tensor.ShapeArg, ctx ...*tensor.Ctx) *tensor.Array {
	const op = "slice"
	c := tensor.Call(ctx)
	if f := kit.Unusable(c, op, a, start); f != nil {
		return f
	}
	attrs := dynamicAttrs{Axes: tensor.MakeInts(slices.Concat([]int{}, axes))}
	in := []*tensor.Array{a, start}
	attrs.Size, in = size.Bind(in)
	return kit.FailedAs(c, op, dynamicSlice.One(c, attrs, in...))
}

var _ = sig.Def("slice_update", "a update start_indices:indices axes:ints", func(a *sig.Args) any {
	return DynamicSliceUpdate(a.Array(0), a.Array(1), a.Array(2), a.Ints(3), a.Ctx)
}, sig.Doc("DynamicSliceUpdate"))

// DynamicSliceUpdate is a copy of a in which the slice that begins at the integers in start_indices, one for each
// axis, is update, converted to a's dtype: see [DynamicSlice]. Leading dimensions that update lacks are a's, 1 along
// axes; it is repeated along them. Where nothing else needs a's bytes they are changed in place.
func DynamicSliceUpdate(a, update, start *tensor.Array, axes []int, ctx ...*tensor.Ctx) *tensor.Array {
	const op = "slice_update"
	c := tensor.Call(ctx)
	if f := kit.Unusable(c, op, a, update, start); f != nil {
		return f
	}
	u, rank := AsType(update, a.DType(), c), a.NDim()
	if lead := rank - u.NDim(); lead > 0 {
		dims := make([]tensor.ShapeArg, rank)
		for i := range dims {
			if dims[i] = tensor.DimOf(a, i); i >= lead {
				dims[i] = tensor.DimOf(u, i-lead)
			}
		}
		for _, axis := range axes {
			axis, err := tensor.Axis(axis, rank)
			if err != nil {
				return tensor.Fail(c, op, "%w", err)
			}
			if axis < lead {
				dims[axis] = tensor.Sizes(1)
			}
		}
		u = BroadcastTo(u, tensor.Concat(dims...), c)
	}
	attrs := dynamicAttrs{Axes: tensor.MakeInts(slices.Concat([]int{}, axes))}
	return kit.FailedAs(c, op, dynamicUpdate.One(c, attrs, a, u, start))
}
