package ops

import (
	_ "embed"
	"fmt"
	"math"
	"slices"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

// gatherAttrs describe a gather: input 0 is indexed along Axes (counted from 0) by the inputs that follow, one for each
// axis, broadcast against each other. In the output their dimensions stand in the place Dest among those that are left.
type gatherAttrs struct {
	Op   string // what the user called: errors name it
	Axes tensor.Ints
	Dest int
}

var (
	gather = tensor.Declare[gatherAttrs]("gather")
	//go:embed gather.metal
	gatherText    string
	gatherKernels = kit.NewKernels[gatherVariant](kit.StridesMSL, gatherText)
	//go:embed index_offsets.metal
	indexText    string
	indexKernels = kit.NewKernels[indexVariant](kit.StridesMSL, kit.IndicesMSL, indexText)
)

type (
	// gatherVariant is unsigned integers, which are ratio elements each.
	gatherVariant struct {
		T     string
		ratio int
	}
	indexVariant struct{ IDX tensor.DType }
)

func init() {
	gather.Define(tensor.Rules[gatherAttrs]{
		Shape: func(in []tensor.Spec, a gatherAttrs, outs []tensor.Shape) ([]tensor.Shape, error) {
			s, err := gatherShape(in[0].Shape, in[1:], a)
			return append(outs, s), err
		},
		DType: func(in []tensor.Spec, _ gatherAttrs, outs []tensor.DType) ([]tensor.DType, error) {
			return append(outs, in[0].DType), kit.CheckIndices(in[1:])
		},
		IndicesFrom: afterFirst[gatherAttrs],
		Bounds:      gatherBounds,
		CheckIndices: func(r *tensor.Run, a gatherAttrs) error {
			_, _, err := indexOffsets(r, r.In[0], r.In[1:], a)
			return err
		},
		Run: runGather,
		Gradient: func(g *tensor.VJP[gatherAttrs]) *tensor.Array {
			zeros := Zeros(tensor.ShapeOf(g.In[0]), g.Cot[0].DType(), g.Ctx)
			in := append([]*tensor.Array{zeros, g.Cot[0]}, g.In[1:]...)
			return scatter.One(g.Ctx, scatterAttrs{g.Attrs, scatterAdd}, in...)
		},
		Tangent: func(g *tensor.JVP[gatherAttrs]) *tensor.Array {
			in := append([]*tensor.Array{g.Tan[0]}, g.In[1:]...)
			return gather.One(g.Ctx, g.Attrs, in...)
		},
		VMap: func(g *tensor.VMap[gatherAttrs]) ([]*tensor.Array, []int) {
			x := FrontOf(g, 0, 0)
			index, a, batched := batchIndices(g, 1, g.Attrs)
			y := gather.One(g.Ctx, a, append([]*tensor.Array{x}, index...)...)
			if batched {
				return []*tensor.Array{y}, []int{a.Dest}
			}
			return []*tensor.Array{y}, []int{0}
		},
	})
}

// batchIndices are the indices of a gather or scatter, from input i on, for a batch whose axis stands first in the
// array that is indexed. Where the indices have a batch axis (batched), the batch is one more indexed axis.
func batchIndices[A comparable](g *tensor.VMap[A], i int, a gatherAttrs) (index []*tensor.Array, b gatherAttrs,
	batched bool) {
	rank := 0
	for k := i; k < len(g.In); k++ {
		rank = max(rank, kit.ExampleRank(g, k))
		batched = batched || g.Axes[k] >= 0
	}
	axes := kit.Shifted(a.Axes.Slice())
	if !batched {
		return g.In[i:], gatherAttrs{a.Op, tensor.MakeInts(axes), a.Dest + 1}, false
	}
	n := Iota(g.Ctx, kit.BatchDim(g))
	if rank > 0 {
		n = ExpandDims(n, kit.Shifted(kit.Identity(rank)), g.Ctx)
	}
	index = []*tensor.Array{n}
	for k := i; k < len(g.In); k++ {
		index = append(index, FrontOf(g, k, rank))
	}
	return index, gatherAttrs{a.Op, tensor.MakeInts(append([]int{0}, axes...)), a.Dest}, true
}

// gatherBounds is the Bounds rule of an op that indexes the first input.
func gatherBounds(in []tensor.Spec, a gatherAttrs, bounds []tensor.Ints) []tensor.Ints {
	for _, axis := range a.Axes.Slice() {
		bounds = append(bounds, tensor.MakeInts(in[0].Shape[axis:axis+1]))
	}
	return bounds
}

// gatherShape is the shape of a gather from an array of shape s.
func gatherShape(s tensor.Shape, index []tensor.Spec, a gatherAttrs) (tensor.Shape, error) {
	common, rest, err := gatherDims(s, index, a)
	if err != nil {
		return nil, err
	}
	return slices.Insert(rest, a.Dest, common...), nil
}

// gatherDims are the indices' common shape and the dimensions that are not indexed.
func gatherDims(s tensor.Shape, index []tensor.Spec, a gatherAttrs) (common, rest tensor.Shape, err error) {
	if common, err = broadcastSpecs(index); err != nil {
		return nil, nil, fmt.Errorf("indices: %w", err)
	}
	var few [8]int
	axes, err := a.Axes.AppendAxes(few[:0], len(s))
	if err != nil {
		return nil, nil, err
	}
	rest = make(tensor.Shape, 0, len(s))
	for i, n := range s {
		if !slices.Contains(axes, i) {
			rest = append(rest, n)
		} else if n == 0 && common.Size() > 0 {
			return nil, nil, fmt.Errorf("axis %d of shape %v has no elements to take by indices of shape %v", i, s, common)
		}
	}
	return common, rest, nil
}

func runGather(r *tensor.Run, a gatherAttrs) error {
	x, out := r.In[0], r.Out[0]
	offsets, rest, err := indexOffsets(r, x, r.In[1:], a)
	if err != nil {
		return err
	}
	step := 0 // lowest bits that are 0 in all strides are so in offsets
	for _, axis := range a.Axes.Slice() {
		step |= x.Strides[axis]
	}
	return gatherSlices(r, rest, offsets, out, a.Dest, step)
}

// leastRow is how many elements a slice has at least that a SIMD-group copies.
const leastRow = 32

// gatherSlices copies the slices of an array that begin at those offsets to out, where their dimensions from dest on
// stand behind those of the offsets; x is the slice at offset 0. A power of two that divides step divides all offsets.
func gatherSlices(r *tensor.Run, x, offsets, out tensor.Operand, dest, step int) error {
	count, slice, inner := offsets.Shape.Size(), x.Shape.Size(), x.Shape[dest:].Size()
	if err := kit.CheckRows(count, slice); err != nil {
		return err
	}
	shape, steps := kit.Merge(x.Shape, x.Strides)
	if len(shape) == 1 && steps[0][0] == 1 && inner == slice && slice >= leastRow {
		t, size, ratio := kit.Bits(x.DType), x.DType.Size(), 1
		if wide := 8 / size; step%wide == 0 && slice%wide == 0 && x.OffsetBytes%8 == 0 && out.OffsetBytes%8 == 0 {
			t, ratio = "ulong", wide
		}
		return gatherKernels.Launch(r, gatherVariant{t, ratio}, "gather_rows", kit.Rows(count), x.Arg(), offsets.Arg(),
			out.Arg(), kit.Uint(slice/ratio))
	}
	if v := (gatherVariant{kit.Bits(x.DType), 1}); inner < leastRow && count*inner <= math.MaxInt32 {
		before, after := kit.Collapse(x.Shape[:dest], x.Strides[:dest]), kit.Collapse(x.Shape[dest:], x.Strides[dest:])
		return gatherKernels.Launch(r, v, "gather_across", kit.Plane(count*inner, slice/inner), x.Arg(), offsets.Arg(),
			out.Arg(), before.Shape(), before.Strides(0), before.Rank(), after.Shape(), after.Strides(0), after.Rank(),
			kit.Uint(count), kit.Uint(inner))
	}
	dims := kit.Collapse(x.Shape, x.Strides)
	return gatherKernels.Launch(r, gatherVariant{kit.Bits(x.DType), 1}, "gather", kit.Plane(slice, count), x.Arg(),
		offsets.Arg(), out.Arg(), dims.Shape(), dims.Strides(0), dims.Rank(), kit.Uint(count), kit.Uint(inner))
}

// indexOffsets is, for each element of the indices' common shape, the offset in elements of the slice of x that the
// indices name, as int64; rest is the slice at offset 0. An index out of range fails the node when the kernels have
// run.
func indexOffsets(r *tensor.Run, x tensor.Operand, index []tensor.Operand, a gatherAttrs) (offsets, rest tensor.Operand,
	err error) {
	specs := make([]tensor.Spec, len(index))
	for i, o := range index {
		specs[i] = o.Spec
	}
	common, restShape, err := gatherDims(x.Shape, specs, a)
	if err != nil {
		return offsets, rest, err
	}
	axes := a.Axes.Slice()
	rest = x
	rest.Shape, rest.Strides = restShape, nil
	for i, s := range x.Strides {
		if !slices.Contains(axes, i) {
			rest.Strides = append(rest.Strides, s)
		}
	}
	count := common.Size()
	if err := kit.CheckCount(count, math.MaxUint32, "indices"); err != nil {
		return offsets, rest, err
	}
	if offsets, err = r.Temp(tensor.Spec{Shape: common, DType: tensor.Int64}); err != nil {
		return offsets, rest, err
	}
	notes, err := kit.NewNotes(r, len(axes))
	if err != nil {
		return offsets, rest, err
	}
	for i, axis := range axes {
		first := int32(0)
		if i == 0 {
			first = 1
		}
		o := kit.BroadcastOperand(index[i], common)
		dims := kit.Collapse(o.Shape, o.Strides)
		err = indexKernels.Launch(r, indexVariant{o.DType}, "index_offsets", kit.Line(count), o.Arg(), offsets.Arg(),
			notes.Arg(i), dims.Shape(), dims.Strides(0), dims.Rank(), tensor.Const(int64(x.Shape[axis])),
			tensor.Const(int64(x.Strides[axis])), tensor.Const(first))
		if err != nil {
			return offsets, rest, err
		}
	}
	shape := x.Shape.Clone()
	notes.Check(a.Op, func(i int, index string) string {
		return fmt.Sprintf("index %s is out of range for axis %d with size %d", index, axes[i], shape[axes[i]])
	})
	return offsets, rest, nil
}

var _ = sig.Def("take", "a indices:indices axis:axis?", func(a *sig.Args) any {
	return Take(a.Array(0), a.Array(1), a.Axis(2), a.Ctx)
})

// Take is the slices of a at those indices along an axis (nil: a is flattened first), whose dimension is replaced
// by the indices' dimensions. Indices are integers; negative ones count from the end; one that is out of range is
// an error when the result is computed. So is, at once, an axis without elements, unless there are no indices. The
// gradient adds up where an index stands twice, in the indices' order.
func Take(a, indices *tensor.Array, axis *int, ctx ...*tensor.Ctx) *tensor.Array {
	c := tensor.Call(ctx)
	if f := kit.Unusable(c, "take", a, indices); f != nil {
		return f
	}
	if err := kit.CheckIndex(indices.DType()); err != nil {
		return tensor.Fail(c, "take", "%w", err)
	}
	at := 0
	if axis == nil {
		a = Flatten(a, 0, -1, c)
	} else {
		var err error
		if at, err = tensor.Axis(*axis, a.NDim()); err != nil {
			return tensor.Fail(c, "take", "%w", err)
		}
	}
	return kit.FailedAs(c, "take", gather.One(c, gatherAttrs{"take", tensor.MakeInts([]int{at}), at}, a, indices))
}
