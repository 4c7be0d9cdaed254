package ops

import (
	_ "embed"
	"errors"
	"fmt"
	"strings"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
)

// scatterMode says what becomes of an element that is indexed.
type scatterMode uint8

const (
	scatterSet scatterMode = iota
	scatterAdd
	scatterSubtract
	scatterMultiply
	scatterDivide
	scatterMaximum
	scatterMinimum
)

var scatterModes = map[string]scatterMode{
	"set": scatterSet, "add": scatterAdd, "subtract": scatterSubtract, "multiply": scatterMultiply,
	"divide": scatterDivide, "maximum": scatterMaximum, "minimum": scatterMinimum,
}

// scatterAttrs describe a scatter: the slices of input 0 that a gather of it by the inputs from 2 on would give are
// combined with input 1, which has the gather's shape. Where an index stands twice, its updates are applied in the
// indices' order.
type scatterAttrs struct {
	gatherAttrs
	Mode scatterMode
}

var (
	scatter = tensor.Declare[scatterAttrs]("scatter")
	//go:embed scatter.metal
	scatterText    string
	scatterKernels = kit.NewKernels[scatterVariant](kit.StridesMSL, scatterText)
)

// scatterVariant chooses a kernel: ACC is the dtype to combine in.
type scatterVariant struct {
	T, ACC tensor.DType
	mode   scatterMode
}

// Macros defines what becomes of an element with an update.
func (v scatterVariant) Macros() string {
	combine, _ := combination(v.mode, v.T)
	return "#define COMBINE(a, b) " + combine + "\n"
}

func init() {
	scatter.Define(tensor.Rules[scatterAttrs]{
		Shape: func(in []tensor.Spec, a scatterAttrs, outs []tensor.Shape) ([]tensor.Shape, error) {
			s, err := gatherShape(in[0].Shape, in[2:], a.gatherAttrs)
			if err == nil && !s.Equal(in[1].Shape) {
				err = fmt.Errorf("updates have shape %v, want %v", in[1].Shape, s)
			}
			return append(outs, in[0].Shape), err
		},
		DType: func(in []tensor.Spec, a scatterAttrs, outs []tensor.DType) ([]tensor.DType, error) {
			if in[0].DType == tensor.Bool && a.Mode == scatterDivide {
				return nil, errors.New("dtype bool cannot be divided")
			}
			if err := kit.CheckIndices(in[2:]); err != nil {
				return nil, err
			}
			return kit.OneDTypeOf(outs, in[:2]...)
		},
		IndicesFrom: afterSecond[scatterAttrs],
		Bounds: func(in []tensor.Spec, a scatterAttrs, bounds []tensor.Ints) []tensor.Ints {
			return gatherBounds(in, a.gatherAttrs, bounds)
		},
		CheckIndices: func(r *tensor.Run, a scatterAttrs) error {
			_, _, err := indexOffsets(r, r.In[0], r.In[2:], a.gatherAttrs)
			return err
		},
		Updates: tensor.UpdatesFirst[scatterAttrs],
		Run:     runScatter,
		VJP:     scatterVJP,
		JVP:     scatterJVP,
		VMap: func(g *tensor.VMap[scatterAttrs]) ([]*tensor.Array, []int) {
			x, u := FrontOf(g, 0, 0), FrontOf(g, 1, 0)
			index, a, batched := batchIndices(g, 2, g.Attrs.gatherAttrs)
			if batched {
				u = MoveAxis(u, 0, a.Dest, g.Ctx)
			}
			y := scatter.One(g.Ctx, scatterAttrs{a, g.Attrs.Mode}, append([]*tensor.Array{x, u}, index...)...)
			return []*tensor.Array{y}, []int{0}
		},
	})
}

// combination is COMBINE of a mode for elements of dtype d, and the dtype to compute in.
func combination(m scatterMode, d tensor.DType) (string, tensor.DType) {
	var e exprs
	acc := kit.Accumulator(d)
	switch m {
	case scatterSet:
		return "(b)", d
	case scatterAdd:
		e = exprs{Any: "$0 + $1", Bool: "$0 || $1"}
	case scatterSubtract:
		e = exprs{Any: "$0 - $1", Bool: "$0 != $1"}
	case scatterMultiply:
		e = exprs{Any: "$0 * $1", Bool: "$0 && $1"}
	case scatterDivide:
		e = exprs{Any: "$0 / $1"}
	case scatterMaximum:
		e, acc = pick(">"), d
	case scatterMinimum:
		e, acc = pick("<"), d
	}
	return "(" + strings.NewReplacer("$0", "a", "$1", "b").Replace(e.at(acc)) + ")", acc
}

func runScatter(r *tensor.Run, a scatterAttrs) error {
	out := r.Out[0]
	r.Changed(r.In[1].NBytes())
	if r.In[1].Shape.Size() == 0 {
		return nil
	}
	offsets, rest, err := indexOffsets(r, out, r.In[2:], a.gatherAttrs)
	if err != nil {
		return err
	}
	count, slice := offsets.Shape.Size(), rest.Shape.Size()
	if err := kit.CheckRows(count, slice); err != nil {
		return err
	}
	keys := offsets
	keys.Shape, keys.Strides = tensor.Shape{count}, []int{1}
	order, err := argsortRows(r, keys)
	if err != nil {
		return err
	}
	updates, err := r.Contiguous(1)
	if err != nil {
		return err
	}
	if out, err = r.Updated(); err != nil {
		return err
	}
	_, acc := combination(a.Mode, out.DType)
	dims := kit.Collapse(rest.Shape, rest.Strides)
	return scatterKernels.Launch(r, scatterVariant{out.DType, acc, a.Mode}, "scatter", kit.Plane(slice, count), out.Arg(),
		updates.Arg(), offsets.Arg(), order.Arg(), dims.Shape(), dims.Strides(0), dims.Rank(), kit.Uint(count),
		kit.Uint(rest.Shape[a.Dest:].Size()))
}

// scatterVJP: an element's gradient passes through, changed as its value was; an update's is that of the element
// that it went to.
func scatterVJP(g *tensor.VJP[scatterAttrs]) []*tensor.Array {
	grads := make([]*tensor.Array, len(g.In))
	cot, c := g.Cot[0], g.Ctx
	x, u, index := g.In[0], g.In[1], g.In[2:]
	at := func(y *tensor.Array) *tensor.Array {
		return gather.One(c, g.Attrs.gatherAttrs, append([]*tensor.Array{y}, index...)...)
	}
	again := func(m scatterMode, u *tensor.Array) *tensor.Array {
		return scatter.One(c, scatterAttrs{g.Attrs.gatherAttrs, m}, append([]*tensor.Array{cot, u}, index...)...)
	}
	var byX, byU func() *tensor.Array
	switch g.Attrs.Mode {
	case scatterSet:
		byX = func() *tensor.Array { return again(scatterSet, Zeros(tensor.ShapeOf(u), cot.DType(), c)) }
		byU = func() *tensor.Array {
			return Where(lastWriter(c, g.Attrs.gatherAttrs, x, index), at(cot), Number(0, cot.DType(), c), c)
		}
	case scatterAdd, scatterSubtract:
		byX = func() *tensor.Array { return cot }
		byU = func() *tensor.Array {
			if g.Attrs.Mode == scatterSubtract {
				return Negative(at(cot), c)
			}
			return at(cot)
		}
	case scatterMultiply, scatterDivide:
		divisor := conj(c, u)
		byX = func() *tensor.Array { return again(g.Attrs.Mode, divisor) }
		byU = func() *tensor.Array {
			d := Divide(at(Multiply(cot, conj(c, g.Out[0]), c)), divisor, c)
			if g.Attrs.Mode == scatterDivide {
				return Negative(d, c)
			}
			return d
		}
	default:
		zero := Number(0, cot.DType(), c)
		byX = func() *tensor.Array { return Where(Equal(x, g.Out[0], c), cot, zero, c) }
		byU = func() *tensor.Array { return Where(Equal(u, at(g.Out[0]), c), at(cot), zero, c) }
	}
	if g.Want[0] {
		grads[0] = byX()
	}
	if g.Want[1] {
		grads[1] = byU()
	}
	return grads
}

// lastWriter reports of each update whether it is the last one for its element, so that it is the one that stays; its
// shape broadcasts to the updates'.
func lastWriter(c *tensor.Ctx, a gatherAttrs, x *tensor.Array, index []*tensor.Array) *tensor.Array {
	axes := a.Axes.Slice()
	dims := make([]tensor.ShapeArg, len(axes))
	for i, axis := range axes {
		dims[i] = tensor.DimOf(x, axis)
	}
	slots := Zeros(tensor.Concat(dims...), tensor.Int32, c)
	flat := gatherAttrs{a.Op, tensor.MakeInts(kit.Identity(len(axes))), 0}
	common := gather.One(c, flat, append([]*tensor.Array{slots}, index...)...) // for its shape
	number := Iota(c, tensor.ShapeOf(common))
	winners := scatter.One(c, scatterAttrs{flat, scatterSet}, append([]*tensor.Array{slots, number}, index...)...)
	last := Equal(gather.One(c, flat, append([]*tensor.Array{winners}, index...)...), number, c)
	if after := x.NDim() - len(axes) - a.Dest; after > 0 {
		trailing := make([]int, after)
		for i := range trailing {
			trailing[i] = last.NDim() + i
		}
		last = ExpandDims(last, trailing, c)
	}
	return last
}

// scatterJVP: setting, adding and subtracting are linear; the other modes are transposed from the vjp.
func scatterJVP(g *tensor.JVP[scatterAttrs]) []*tensor.Array {
	c := g.Ctx
	tans := WithZeros(c, g.Tan[:2], g.In[:2])
	if tans == nil { // only indices have tangents
		return nil
	}
	x, u := tans[0], tans[1]
	at := func(y *tensor.Array) *tensor.Array {
		return gather.One(c, g.Attrs.gatherAttrs, append([]*tensor.Array{y}, g.In[2:]...)...)
	}
	put := func(m scatterMode, y, u *tensor.Array) *tensor.Array {
		return scatter.One(c, scatterAttrs{g.Attrs.gatherAttrs, m}, append([]*tensor.Array{y, u}, g.In[2:]...)...)
	}
	switch m := g.Attrs.Mode; m {
	case scatterSet, scatterAdd, scatterSubtract:
		return []*tensor.Array{put(m, x, u)}
	case scatterMultiply, scatterDivide:
		// d(x * u) = dx * u + y * du / u, summed over the updates of an element; for x / u the second term is subtracted.
		y := put(m, x, g.In[1])
		second := Divide(Multiply(at(g.Out[0]), u, c), g.In[1], c)
		if m == scatterDivide {
			return []*tensor.Array{put(scatterSubtract, y, second)}
		}
		return []*tensor.Array{put(scatterAdd, y, second)}
	default:
		zero := Number(0, x.DType(), c)
		y := Where(Equal(g.In[0], g.Out[0], c), x, zero, c)
		return []*tensor.Array{put(scatterAdd, y, Where(Equal(g.In[1], at(g.Out[0]), c), u, zero, c))}
	}
}
