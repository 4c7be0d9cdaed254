package ops

import (
	"slices"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
)

// ByArray takes the elements of the indices in an integer array along a dimension, for Index and IndexUpdate. A
// bool array, alone, is a mask, for updates.
func ByArray(idx *tensor.Array) Part { return Part{kind: arrayPart, array: idx} }

// indexPlan is an index with arrays in two steps: a slice by the basic parts, and a gather from the slice.
type indexPlan struct {
	basic []Part
	whole bool // basic takes everything: there is no slice
	index []*tensor.Array
	attrs gatherAttrs
}

// planIndex splits an index of an array of that rank. Where the arrays' dimensions go is NumPy's rule: to the place
// of the first array if arrays and integers stand side by side, else to the front.
func planIndex(op string, parts []Part, rank int) (indexPlan, error) {
	plan := indexPlan{whole: true}
	used := 0
	for _, p := range parts {
		if p.kind != newAxisPart && p.kind != ellipsisPart {
			used++
		}
	}
	basic := slices.Clone(parts)
	var axes []int
	position := 0 // in the slice
	kept := 0     // dimensions of the slice that are not indexed by arrays
	runs, adjacent, first := 0, false, 0
	for i, p := range parts {
		advanced := p.kind == arrayPart || p.kind == atPart
		if advanced && !adjacent {
			if runs++; runs == 1 {
				first = kept
			}
		}
		adjacent = advanced
		plan.whole = plan.whole && (p.kind == arrayPart || p.kind == ellipsisPart || p == Whole())
		switch p.kind {
		case arrayPart:
			basic[i] = Whole()
			plan.index, axes = append(plan.index, p.array), append(axes, position)
			position++
		case ellipsisPart:
			n := max(rank-used, 0)
			position, kept = position+n, kept+n
		case spanPart, newAxisPart:
			position, kept = position+1, kept+1
		}
	}
	plan.basic = basic
	plan.attrs = gatherAttrs{Op: op, Axes: tensor.MakeInts(axes)}
	if runs == 1 {
		plan.attrs.Dest = first
	}
	_, _, _, err := expandParts(basic, rank)
	return plan, err
}

// indexArrays are the arrays of an index, and whether it is a lone mask; fail is what is wrong with them.
func indexArrays(c *tensor.Ctx, op string, parts []Part) (arrays []*tensor.Array, mask bool, fail *tensor.Array) {
	for _, p := range parts {
		if p.kind == arrayPart {
			arrays = append(arrays, p.array)
		}
	}
	if f := kit.Unusable(c, op, arrays...); f != nil {
		return nil, false, f
	}
	for _, x := range arrays {
		d := x.DType()
		switch {
		case d == tensor.Bool && len(parts) == 1:
			return arrays, true, nil
		case d == tensor.Bool:
			return nil, false, tensor.Fail(c, op, "a bool array must be the only index")
		}
		if err := kit.CheckIndex(d); err != nil {
			return nil, false, tensor.Fail(c, op, "%w", err)
		}
	}
	return arrays, false, nil
}

// Index is Python's x[parts...]: basic parts as in Slice, and integer arrays, which are broadcast against each
// other and whose dimensions replace those that they index, in the first one's place or, if a slice or new axis
// stands between arrays or integers, in front, as in NumPy. Without arrays it is a view. Negative indices count
// from the end. An index in an array that is out of range is an error when the result is computed. A bool array is
// an error: how many elements it selects is known only when it has run.
//
//sig:none x[i]
func Index(x *tensor.Array, parts []Part, ctx ...*tensor.Ctx) *tensor.Array {
	const op = "index"
	c := tensor.Call(ctx)
	if f := kit.Unusable(c, op, x); f != nil {
		return f
	}
	arrays, mask, fail := indexArrays(c, op, parts)
	switch {
	case fail != nil:
		return fail
	case mask:
		return tensor.Fail(c, op,
			"a bool array cannot index: the number of elements is not known before it runs; use where, or integer indices")
	case len(arrays) == 0:
		return kit.FailedAs(c, op, Slice(x, parts, c))
	}
	plan, err := planIndex(op, parts, x.NDim())
	if err != nil {
		return tensor.Fail(c, op, "%w", err)
	}
	if !plan.whole {
		x = Slice(x, plan.basic, c)
	}
	return kit.FailedAs(c, op, gather.One(c, plan.attrs, append([]*tensor.Array{x}, plan.index...)...))
}

// IndexUpdate is a copy of x in which the elements that Index(x, parts) names are changed by y, converted to x's
// dtype and broadcast: how is "set", "add", "subtract", "multiply", "divide", "maximum" or "minimum". Where an
// index stands twice, its updates are applied one after the other, in the indices' order; with "set" the last one
// stays. A lone bool array is a mask of x's leading dimensions for "set": y is broadcast to the elements where it
// is true, or has a first dimension of its own with an entry for each of them, in order. Errors are Index's, and a
// y that does not fit.
//
//sig:none x:at(i):add(y)
func IndexUpdate(x *tensor.Array, parts []Part, how string, y *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	op := "index_" + how
	c := tensor.Call(ctx)
	mode, ok := scatterModes[how]
	if !ok {
		return tensor.Fail(c, "index_update",
			"%q is no update, want set, add, subtract, multiply, divide, maximum or minimum", how)
	}
	if f := kit.Unusable(c, op, x, y); f != nil {
		return f
	}
	arrays, mask, fail := indexArrays(c, op, parts)
	if fail != nil {
		return fail
	}
	if mask {
		return kit.FailedAs(c, op, maskedUpdate(c, op, x, arrays[0], mode, y))
	}
	u := AsType(y, x.DType(), c)
	if len(arrays) == 0 {
		if mode != scatterSet {
			u = combine(c, mode, Slice(x, parts, c), u)
		}
		return kit.FailedAs(c, op, SliceUpdate(x, u, parts, c))
	}
	plan, err := planIndex(op, parts, x.NDim())
	if err != nil {
		return tensor.Fail(c, op, "%w", err)
	}
	target := x
	if !plan.whole {
		target = Slice(x, plan.basic, c)
	}
	shape := gather.One(c, plan.attrs, append([]*tensor.Array{target}, plan.index...)...) // for its shape
	if shape.Err() != nil {
		return kit.FailedAs(c, op, shape)
	}
	if lead := u.NDim() - shape.NDim(); lead > 0 { // leading ones, as NumPy permits
		u = Squeeze(u, kit.Identity(lead), c)
	}
	u = BroadcastTo(u, tensor.ShapeOf(shape), c)
	out := scatter.One(c, scatterAttrs{plan.attrs, mode}, append([]*tensor.Array{target, u}, plan.index...)...)
	if !plan.whole {
		out = SliceUpdate(x, out, plan.basic, c)
	}
	return kit.FailedAs(c, op, out)
}

// combine is a with u applied, in a's dtype.
func combine(c *tensor.Ctx, m scatterMode, a, u *tensor.Array) *tensor.Array {
	f := map[scatterMode]func(a, b *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array{
		scatterAdd: Add, scatterSubtract: Subtract, scatterMultiply: Multiply, scatterDivide: Divide,
		scatterMaximum: Maximum, scatterMinimum: Minimum,
	}[m]
	return AsType(f(a, u, c), a.DType(), c)
}

// maskedUpdate changes the elements of x where a mask of its leading dimensions is true.
func maskedUpdate(c *tensor.Ctx, op string, x, mask *tensor.Array, m scatterMode, y *tensor.Array) *tensor.Array {
	trailing := x.NDim() - mask.NDim()
	if trailing < 0 {
		return tensor.Fail(c, op, "a mask with %s for an array with %d", tensor.Count(mask.NDim(), "dimension"), x.NDim())
	}
	u := AsType(y, x.DType(), c)
	if u.NDim() > trailing+1 {
		return tensor.Fail(c, op, "updates have %s, want at most %d", tensor.Count(u.NDim(), "dimension"), trailing+1)
	}
	if u.NDim() == trailing+1 {
		n, err := u.Dim(0) // a guard: one entry is broadcast, several are told apart
		if err != nil {
			return tensor.FailWith(c, op, err)
		}
		switch {
		case n == 1:
			u = Squeeze(u, []int{0}, c)
		case mask.NDim() == 0:
			return tensor.Fail(c, op, "updates are %d for the one place of a mask without dimensions", n)
		default:
			u = gather.One(c, gatherAttrs{op, tensor.MakeInts([]int{0}), 0}, u, maskRank.One(c, tensor.None{}, mask))
		}
	}
	if m != scatterSet {
		u = combine(c, m, x, u)
	}
	cond := maskLike.One(c, tensor.None{}, mask, x)
	return BroadcastTo(Where(cond, u, x, c), tensor.ShapeOf(x), c)
}
