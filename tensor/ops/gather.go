package ops

import (
	_ "embed"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/mlxlua/mlxlua/metal"
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
	gatherText string
)

func init() {
	gather.Define(tensor.Rules[gatherAttrs]{
		Shape: func(in []tensor.Spec, a gatherAttrs, outs []tensor.Shape) ([]tensor.Shape, error) {
			s, err := gatherShape(in[0].Shape, in[1:], a)
			return append(outs, s), err
		},
		DType: func(in []tensor.Spec, _ gatherAttrs, outs []tensor.DType) ([]tensor.DType, error) {
			return append(outs, in[0].DType), kit.CheckIndexDTypes(in[1:])
		},
		Run: runGather,
		VJP: func(g *tensor.VJP[gatherAttrs]) []*tensor.Array {
			grads := make([]*tensor.Array, len(g.In))
			if g.Cot[0] != nil && g.Want[0] {
				zeros := Zeros(tensor.ShapeOf(g.In[0]), g.Cot[0].DType(), g.Ctx)
				in := append([]*tensor.Array{zeros, g.Cot[0]}, g.In[1:]...)
				grads[0] = scatter.One(g.Ctx, scatterAttrs{g.Attrs, scatterAdd}, in...)
			}
			return grads
		},
		JVP: func(g *tensor.JVP[gatherAttrs]) []*tensor.Array {
			if g.Tan[0] == nil {
				return []*tensor.Array{nil}
			}
			in := append([]*tensor.Array{g.Tan[0]}, g.In[1:]...)
			return []*tensor.Array{gather.One(g.Ctx, g.Attrs, in...)}
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
	if out.Shape.Size() == 0 {
		return nil
	}
	offsets, rest, err := indexOffsets(r, x, r.In[1:], a)
	if err != nil {
		return err
	}
	count, slice := offsets.Shape.Size(), rest.Shape.Size()
	if slice > math.MaxUint32 {
		return fmt.Errorf("slices of %d elements, the most are %d", slice, math.MaxUint32)
	}
	p, err := r.Kernel(metal.Source{
		Label:   "gather",
		Text:    gatherTexts.Get(x.DType, gatherTextOf),
		Options: metal.Options{MathMode: metal.MathSafe, Portable: true},
	}, "gather")
	if err != nil {
		return err
	}
	shape, strides := kit.Collapse(rest.Shape, rest.Strides)
	grid, group := kit.Plane(slice, count)
	return r.Dispatch(p, grid, group, x.Arg(), offsets.Arg(), out.Arg(), tensor.Const(shape), tensor.Const(strides),
		tensor.Const(int32(len(shape))), tensor.Const(uint32(count)), tensor.Const(uint32(rest.Shape[a.Dest:].Size())))
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
	if count > math.MaxUint32 {
		return offsets, rest, fmt.Errorf("%d indices, the most are %d", count, math.MaxUint32)
	}
	if offsets, err = r.Temp(tensor.Spec{Shape: common, DType: tensor.Int64}); err != nil {
		return offsets, rest, err
	}
	bad, err := r.Temp(tensor.Spec{Shape: tensor.Shape{len(axes)}, DType: tensor.Uint32})
	if err != nil {
		return offsets, rest, err
	}
	if err := r.Fill(bad, make([]byte, 4)); err != nil {
		return offsets, rest, err
	}
	for i, axis := range axes {
		word := bad
		word.OffsetBytes += int64(4 * i)
		first := int32(0)
		if i == 0 {
			first = 1
		}
		o := kit.BroadcastOperand(index[i], common)
		p, err := r.Kernel(indexSource(o.DType), "index_offsets")
		if err != nil {
			return offsets, rest, err
		}
		shape, strides := kit.Collapse(o.Shape, o.Strides)
		err = r.Dispatch(p, kit.Line(count), kit.Line(min(count, 256)), o.Arg(), offsets.Arg(), word.Arg(),
			tensor.Const(shape),
			tensor.Const(strides), tensor.Const(int32(len(shape))), tensor.Const(int64(x.Shape[axis])),
			tensor.Const(int64(x.Strides[axis])), tensor.Const(first))
		if err != nil {
			return offsets, rest, err
		}
	}
	checkIndices(r, bad, a.Op, axes, x.Shape)
	return offsets, rest, nil
}

// indexTexts and gatherTexts are the kernels' texts.
var indexTexts, gatherTexts kit.Texts[tensor.DType]

func gatherTextOf(d tensor.DType) string { return "#define T " + kit.Bits(d) + "\n" + gatherText }

func indexSource(d tensor.DType) metal.Source {
	return metal.Source{
		Label: "index_offsets",
		Text: indexTexts.Get(d, func(d tensor.DType) string {
			signed := 0
			if d.IsSigned() {
				signed = 1
			}
			return fmt.Sprintf("#define IDX %s\n#define SIGNED %d\n%s", d.MSL(), signed, gatherText)
		}),
		Options: metal.Options{MathMode: metal.MathSafe, Portable: true},
	}
}

// checkIndices fails the node if a kernel noted an index out of range; axes are those of shape that the words of
// bad are for.
func checkIndices(r *tensor.Run, bad tensor.Operand, op string, axes []int, shape tensor.Shape) {
	c, shape := &tensor.Ctx{Place: r.Place()}, shape.Clone()
	r.Check(bad, func(b []byte) error {
		for i, axis := range axes {
			if v := binary.LittleEndian.Uint32(b[4*i:]); v != 0 {
				return c.Errorf(op, "index %s is out of range for axis %d with size %d", kit.IndexText(v), axis, shape[axis])
			}
		}
		return nil
	})
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
	if f := kit.CheckIndex(c, "take", indices); f != nil {
		return f
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
	return kit.Named(c, "take", gather.One(c, gatherAttrs{"take", tensor.MakeInts([]int{at}), at}, a, indices))
}
