package ops

import (
	"errors"
	"fmt"
	"math"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
)

// Part is one part of an index: At, Span, NewAxis, Ellipsis or, for Index and IndexUpdate, ByArray.
type Part struct {
	kind              int // atPart, ...
	start, stop, step int
	array             *tensor.Array // of arrayPart
}

const (
	atPart = iota
	spanPart
	newAxisPart
	ellipsisPart
	arrayPart
)

// None stands for an end of a Span that is left out, as in Python's x[::2].
const None = math.MinInt

// At takes the element of that index along a dimension, which disappears. A negative index counts from the end; one
// out of range is an error.
func At(index int) Part { return Part{kind: atPart, start: index, step: 1} }

// Span is Python's start:stop:step along a dimension: start and stop may be None or negative and are clamped; a
// step of 0 is an error.
func Span(start, stop, step int) Part {
	return Part{kind: spanPart, start: start, stop: stop, step: step}
}

// Whole is Span(None, None, 1): the whole dimension.
func Whole() Part { return Span(None, None, 1) }

// NewAxis is a new dimension of size 1.
func NewAxis() Part { return Part{kind: newAxisPart} }

// Ellipsis stands for Whole along as many dimensions as the other parts leave.
func Ellipsis() Part { return Part{kind: ellipsisPart} }

// sliceAttrs are four numbers for each leading dimension: a Part's fields, as the user wrote them.
type sliceAttrs struct{ Parts tensor.Ints }

func packParts(parts []Part) sliceAttrs {
	v := make([]int, 0, 4*len(parts))
	for _, p := range parts {
		v = append(v, p.kind, p.start, p.stop, p.step)
	}
	return sliceAttrs{tensor.MakeInts(v)}
}

// parts appends the parts to out.
func (a sliceAttrs) parts(out []Part) []Part {
	var some [4 * someParts]int
	for v := a.Parts.Append(some[:0]); len(v) >= 4; v = v[4:] {
		out = append(out, Part{kind: v[0], start: v[1], stop: v[2], step: v[3]})
	}
	return out
}

// someParts are as many parts as most indices have at most.
const someParts = 4

// resolve gives the first index and the number of indices along a dimension of size n.
func (p Part) resolve(n int) (start, count int, err error) {
	if p.kind == atPart {
		i := p.start
		if i < 0 {
			i += n
		}
		if i < 0 || i >= n {
			return 0, 0, fmt.Errorf("index %d is out of range for size %d", p.start, n)
		}
		return i, 1, nil
	}
	if p.step == 0 {
		return 0, 0, errors.New("step is 0")
	}
	low, high := 0, n // where starts and stops are clamped to
	if p.step < 0 {
		low, high = -1, n-1
	}
	clamp := func(v, otherwise int) int {
		if v == None {
			return otherwise
		}
		if v < 0 {
			v += n
		}
		return min(max(v, low), high)
	}
	var stop int
	if p.step > 0 {
		start, stop = clamp(p.start, low), clamp(p.stop, high)
		if stop > start {
			count = (stop-start-1)/p.step + 1
		}
		return start, count, nil
	}
	start, stop = clamp(p.start, high), clamp(p.stop, low)
	if start > stop {
		// The unsigned negation is right for the smallest integer too.
		count = int(uint(start-stop-1)/-uint(p.step)) + 1
	}
	return start, count, nil
}

// region is the shape of the part of an array that a slice names.
func region(s tensor.Shape, a sliceAttrs) (shape tensor.Shape, err error) {
	var some [someParts]Part
	parts := a.parts(some[:0])
	if len(parts) > len(s) {
		return nil, fmt.Errorf("%s for an array with %s", tensor.Count(len(parts), "index"), tensor.Count(len(s),
			"dimension"))
	}
	shape = s.Clone()
	for i, p := range parts {
		if _, shape[i], err = p.resolve(s[i]); err != nil {
			return nil, fmt.Errorf("axis %d of shape %v: %w", i, s, err)
		}
	}
	return shape, nil
}

// regionView makes a view of a whole array of shape s that of a region, whose shape it has already.
func regionView(s tensor.Shape, a sliceAttrs, v *tensor.Operand) {
	if v.Shape.Size() == 0 {
		return
	}
	var some [someParts]Part
	for i, p := range a.parts(some[:0]) {
		start, _, _ := p.resolve(s[i])
		v.OffsetBytes += int64(start) * int64(v.Strides[i]) * int64(v.DType.Size())
		if v.Shape[i] > 1 { // the stride of one element does not matter, and step may be huge
			v.Strides[i] *= p.step
		}
	}
}

var (
	slice       = tensor.Declare[sliceAttrs]("slice")
	sliceUpdate = tensor.Declare[sliceAttrs]("slice_update")
)

func init() {
	partOps[sliceAttrs]{see: slice, update: sliceUpdate, shape: region,
		place: func(s tensor.Shape, strides []int, a sliceAttrs, v *tensor.Operand) {
			copy(v.Strides, strides)
			regionView(s, a, v)
		},
		batched: func(a sliceAttrs, _ int) sliceAttrs { return packParts(a.parts([]Part{Whole()})) },
	}.define()
}

// expandParts gives one At or Span for each leading dimension of an array of that rank, the dimensions that At
// drops, and the new dimensions' positions in the result.
func expandParts(parts []Part, rank int) (spans []Part, dropped, added []int, err error) {
	used, ellipsis := 0, -1
	for i, p := range parts {
		switch {
		case p.kind == arrayPart:
			return nil, nil, nil, errors.New("it takes no arrays as indices: use Index")
		case p.kind == ellipsisPart && ellipsis >= 0:
			return nil, nil, nil, errors.New("an index can have only one ellipsis")
		case p.kind == ellipsisPart:
			ellipsis = i
		case p.kind != newAxisPart:
			used++
		}
	}
	if used > rank {
		return nil, nil, nil, fmt.Errorf("%s for an array with %s", tensor.Count(used, "index"), tensor.Count(rank,
			"dimension"))
	}
	position := 0 // in the result
	for _, p := range parts {
		switch p.kind {
		case atPart:
			dropped = append(dropped, len(spans))
			spans = append(spans, p)
		case spanPart:
			spans = append(spans, p)
			position++
		case newAxisPart:
			added = append(added, position)
			position++
		case ellipsisPart:
			for range rank - used {
				spans = append(spans, Whole())
				position++
			}
		}
	}
	return spans, dropped, added, nil
}

// Slice is a view of a by Python's basic indexing: one Part for each dimension from the first on; those left out
// are taken whole. Spans are clamped as in Python and may step backwards. An index out of range and too many parts
// are errors.
//
//sig:none x["1:3"]
func Slice(a *tensor.Array, parts []Part, ctx ...*tensor.Ctx) *tensor.Array {
	c := tensor.Call(ctx)
	if f := kit.Unusable(c, "slice", a); f != nil {
		return f
	}
	spans, dropped, added, err := expandParts(parts, a.NDim())
	if err != nil {
		return tensor.Fail(c, "slice", "%w", err)
	}
	x := slice.One(c, packParts(spans), a)
	if len(dropped) > 0 {
		x = Squeeze(x, dropped, c)
	}
	if len(added) > 0 {
		x = ExpandDims(x, added, c)
	}
	return x
}

// SliceUpdate is a copy of a in which the elements that Slice(a, parts) names are update's, converted to a's dtype
// and broadcast. Where nothing else needs a's bytes they are changed in place. Errors are Slice's, and an update
// whose shape does not broadcast to the slice's.
//
//sig:none x["1:3"] = y
func SliceUpdate(a, update *tensor.Array, parts []Part, ctx ...*tensor.Ctx) *tensor.Array {
	c := tensor.Call(ctx)
	if f := kit.Unusable(c, "slice_update", a, update); f != nil {
		return f
	}
	spans, dropped, added, err := expandParts(parts, a.NDim())
	if err != nil {
		return tensor.Fail(c, "slice_update", "%w", err)
	}
	// The update has the slice's shape as the user sees it: bring it back to a's dimensions.
	rank := a.NDim() - len(dropped) + len(added)
	u := AsType(update, a.DType(), c)
	if lead := u.NDim() - rank; lead > 0 { // leading ones, as NumPy permits
		u = Squeeze(u, kit.Identity(lead), c)
	}
	if pad := rank - u.NDim(); pad > 0 && len(dropped)+len(added) > 0 {
		u = ExpandDims(u, kit.Identity(pad), c)
	}
	if len(added) > 0 {
		u = Squeeze(u, added, c)
	}
	if len(dropped) > 0 {
		u = ExpandDims(u, dropped, c)
	}
	return sliceUpdate.One(c, packParts(spans), a, u)
}
