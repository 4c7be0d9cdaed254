// Package products is sums of products of several arrays: einsum and what it is short for, and products of matrices
// that indices, masks or segments pick.
package products

import (
	"fmt"
	"slices"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

// contract multiplies a and b, whose dimensions have different names, and sums over those that both have and out has
// not: as a batch of products of matrices. What only one of them has is in out.
func contract(c *tensor.Ctx, a, b *tensor.Array, ta, tb, out term) (*tensor.Array, term) {
	var batch, summed, ofA, ofB term
	for _, name := range ta {
		switch {
		case !out.has(name):
			summed = append(summed, name)
		case tb.has(name):
			batch = append(batch, name)
		default:
			ofA = append(ofA, name)
		}
	}
	for _, name := range tb {
		if !ta.has(name) {
			ofB = append(ofB, name)
		}
	}
	if len(summed) > 0 { // dimensions of size 1 are broadcast
		a, b = likeEachOther(c, a, b, ta, tb, summed)
	}
	x := grouped(c, permuted(c, a, ta, slices.Concat(batch, ofA, summed)), len(batch), len(ofA), len(summed))
	y := grouped(c, permuted(c, b, tb, slices.Concat(batch, summed, ofB)), len(batch), len(summed), len(ofB))
	z := ops.Matmul(x, y, c)
	var shape []tensor.ShapeArg
	for i := range batch {
		shape = append(shape, tensor.DimOf(z, i))
	}
	for _, name := range ofA {
		shape = append(shape, tensor.DimOf(a, slices.Index(ta, name)))
	}
	for _, name := range ofB {
		shape = append(shape, tensor.DimOf(b, slices.Index(tb, name)))
	}
	return ops.Reshape(z, tensor.Concat(shape...), c), slices.Concat(batch, ofA, ofB)
}

// likeEachOther broadcasts the dimensions of those names against each other.
func likeEachOther(c *tensor.Ctx, a, b *tensor.Array, ta, tb, names term) (*tensor.Array, *tensor.Array) {
	dims := func(x *tensor.Array, t term) *tensor.Array { // an array of them, of which only the shape is read
		shape := make([]tensor.ShapeArg, len(names))
		for i, name := range names {
			shape[i] = tensor.DimOf(x, slices.Index(t, name))
		}
		return ops.Zeros(tensor.Concat(shape...), tensor.Bool, c)
	}
	both := ops.LogicalOr(dims(a, ta), dims(b, tb), c)
	like := func(x *tensor.Array, t term) *tensor.Array {
		shape := make([]tensor.ShapeArg, len(t))
		for axis, name := range t {
			shape[axis] = tensor.DimOf(x, axis)
			if i := slices.Index(names, name); i >= 0 {
				shape[axis] = tensor.DimOf(both, i)
			}
		}
		return ops.BroadcastTo(x, tensor.Concat(shape...), c)
	}
	return like(a, ta), like(b, tb)
}

// grouped makes a batch of matrices of x: its dimensions from batch on are those of rows, and then those of columns.
func grouped(c *tensor.Ctx, x *tensor.Array, batch, rows, cols int) *tensor.Array {
	for _, g := range [2][2]int{{batch + rows, cols}, {batch, rows}} {
		switch at, n := g[0], g[1]; n {
		case 0:
			x = ops.ExpandDims(x, []int{at}, c)
		case 1:
		default:
			x = ops.Flatten(x, at, at+n-1, c)
		}
	}
	return x
}

var _ = sig.Def("tensordot", "a b axes:intlists=2", func(a *sig.Args) any {
	axes := a.IntLists(2)
	if axes.Depth == 0 {
		return TensorDot(a.Array(0), a.Array(1), axes.Lists[0][0], a.Ctx)
	}
	if len(axes.Lists) != 2 {
		return fmt.Errorf("axes is %v, want a number or two lists", axes.Lists)
	}
	return TensorDotAt(a.Array(0), a.Array(1), axes.Lists[0], axes.Lists[1], a.Ctx)
}, sig.Doc("TensorDot"))

// TensorDot multiplies a and b and sums over dimensions of both: the last ones of a and the first ones of b if axes is
// their number, else those that axes lists, as {axes of a, axes of b}. The result has a's other dimensions, then b's.
// Dimensions that are summed together have one size. The dtypes are those of [ops.Matmul].
func TensorDot(a, b *tensor.Array, axes int, ctx ...*tensor.Ctx) *tensor.Array {
	const op = "tensordot"
	c := tensor.Call(ctx)
	if f := kit.Unusable(c, op, a, b); f != nil {
		return f
	}
	if axes < 0 || axes > min(a.NDim(), b.NDim()) {
		return tensor.Fail(c, op, "axes is %d, want 0 to the dimensions of a %v and b %v", axes, a.Spec().Shape,
			b.Spec().Shape)
	}
	last := kit.Identity(axes)
	for i := range last {
		last[i] += a.NDim() - axes
	}
	return TensorDotAt(a, b, last, kit.Identity(axes), c)
}

// TensorDotAt is TensorDot over listed axes of a and of b, one with the other.
//
//sig:none it is a way of calling tensordot
func TensorDotAt(a, b *tensor.Array, axesA, axesB []int, ctx ...*tensor.Ctx) *tensor.Array {
	const op = "tensordot"
	c := tensor.Call(ctx)
	if f := kit.Unusable(c, op, a, b); f != nil {
		return f
	}
	return dot(c, op, a, b, axesA, axesB)
}

// counted are axes in their order, counted from 0 and each once.
func counted(axes []int, rank int) ([]int, error) {
	out := make([]int, len(axes))
	for i, axis := range axes {
		at, err := tensor.Axis(axis, rank)
		if err != nil {
			return nil, err
		}
		if slices.Contains(out[:i], at) {
			return nil, fmt.Errorf("axis %d stands twice in %v", axis, axes)
		}
		out[i] = at
	}
	return out, nil
}

// dot sums over axes of a and b together.
func dot(c *tensor.Ctx, op string, a, b *tensor.Array, axesA, axesB []int) *tensor.Array {
	sa, sb := a.Spec().Shape, b.Spec().Shape
	if len(axesA) != len(axesB) {
		return tensor.Fail(c, op, "%d axes of a and %d axes of b: %v and %v", len(axesA), len(axesB), axesA, axesB)
	}
	ta, tb := kit.Identity(len(sa)), kit.Identity(len(sb))
	for i := range tb {
		tb[i] += len(ta)
	}
	first, err := counted(axesA, len(sa))
	if err != nil {
		return tensor.Fail(c, op, "a %v: %w", sa, err)
	}
	second, err := counted(axesB, len(sb))
	if err != nil {
		return tensor.Fail(c, op, "b %v: %w", sb, err)
	}
	for i := range first {
		if sa[first[i]] != sb[second[i]] {
			return tensor.Fail(c, op, "axis %d of a %v and axis %d of b %v have sizes %d and %d", axesA[i], sa, axesB[i], sb,
				sa[first[i]], sb[second[i]])
		}
		tb[second[i]] = ta[first[i]]
	}
	var summed, out term
	for _, i := range first {
		summed = append(summed, i)
	}
	for _, name := range append(slices.Clone(ta), tb...) {
		if !summed.has(name) {
			out = append(out, name)
		}
	}
	b = sameSizes(c, a, b, first, second)
	y, has := contract(c, a, b, ta, tb, out)
	return kit.FailedAs(c, op, permuted(c, y, has, out))
}

// sameSizes is b, of which a replay at other shapes demands that it has the sizes of a at those axes: otherwise they
// would be broadcast.
func sameSizes(c *tensor.Ctx, a, b *tensor.Array, axesA, axesB []int) *tensor.Array {
	if len(axesA) == 0 {
		return b
	}
	shape := make([]tensor.ShapeArg, b.NDim())
	for axis := range shape {
		shape[axis] = tensor.DimOf(b, axis)
	}
	for i, axis := range axesB {
		shape[axis] = tensor.DimOf(a, axesA[i])
	}
	return ops.Reshape(b, tensor.Concat(shape...), c)
}

var _ = sig.Binary("inner", Inner)

// Inner is the sum of products along the last dimensions of a and b, of which the result has the others: a's and then
// b's. It multiplies if one is a scalar. Last dimensions that differ are an error. The dtypes are those of
// [ops.Matmul], or of [ops.Multiply] beside a scalar.
func Inner(a, b *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	const op = "inner"
	c := tensor.Call(ctx)
	if f := kit.Unusable(c, op, a, b); f != nil {
		return f
	}
	if a.NDim() == 0 || b.NDim() == 0 {
		return ops.Multiply(a, b, c)
	}
	return dot(c, op, a, b, []int{-1}, []int{-1})
}

var _ = sig.Binary("outer", Outer)

// Outer multiplies each element of a with each one of b, both flattened: the result has a row for each element of a.
func Outer(a, b *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	const op = "outer"
	c := tensor.Call(ctx)
	if f := kit.Unusable(c, op, a, b); f != nil {
		return f
	}
	return ops.Multiply(ops.ExpandDims(ops.Flatten(a, 0, -1, c), []int{1}, c), ops.Flatten(b, 0, -1, c), c)
}

var _ = sig.Def("vecdot", "a b axis:int=-1", func(a *sig.Args) any {
	return VecDot(a.Array(0), a.Array(1), a.Int(2), a.Ctx)
})

// VecDot is the sum of the products of conjugate(a) and b along an axis; their other dimensions are broadcast. The axis
// is counted in both, from the end if it is negative, and must be the same dimension of both, of one size.
func VecDot(a, b *tensor.Array, axis int, ctx ...*tensor.Ctx) *tensor.Array {
	const op = "vecdot"
	c := tensor.Call(ctx)
	if f := kit.Unusable(c, op, a, b); f != nil {
		return f
	}
	sa, sb := a.Spec().Shape, b.Spec().Shape
	at, err := tensor.Axis(axis, len(sa))
	if err != nil {
		return tensor.Fail(c, op, "a %v: %w", sa, err)
	}
	other, err := tensor.Axis(axis, len(sb))
	switch {
	case err != nil:
		return tensor.Fail(c, op, "b %v: %w", sb, err)
	case at != other:
		return tensor.Fail(c, op, "axis %d is dimension %d of a %v and dimension %d of b %v", axis, at, sa, other, sb)
	case sa[at] != sb[at]:
		return tensor.Fail(c, op, "a %v and b %v have sizes %d and %d along axis %d", sa, sb, sa[at], sb[at], axis)
	}
	b = sameSizes(c, a, b, []int{at}, []int{at})
	return kit.FailedAs(c, op, ops.Sum(ops.Multiply(ops.Conjugate(a, c), b, c), []int{axis}, false, c))
}

var _ = sig.Def("kron", "a b", func(a *sig.Args) any { return Kron(a.Array(0), a.Array(1), a.Ctx) })

// Kron is the Kronecker product of a and b: a block of the result, of b's shape, is b times an element of a, and the
// blocks lie as the elements of a do. Dimensions of size 1 are put before those of the one that has fewer. Arrays
// without elements are an error.
func Kron(a, b *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	const op = "kron"
	c := tensor.Call(ctx)
	if f := kit.Unusable(c, op, a, b); f != nil {
		return f
	}
	if sa, sb := a.Spec().Shape, b.Spec().Shape; sa.Size() == 0 || sb.Size() == 0 {
		return tensor.Fail(c, op, "an operand has no elements: a %v, b %v", sa, sb)
	}
	rank := max(a.NDim(), b.NDim())
	// Dimension i of a becomes 2i, that of b 2i + 1.
	spread := func(x *tensor.Array, odd int) *tensor.Array {
		var axes []int
		for i := range rank {
			if i < rank-x.NDim() {
				axes = append(axes, 2*i, 2*i+1)
			} else {
				axes = append(axes, 2*i+1-odd)
			}
		}
		return ops.ExpandDims(x, axes, c)
	}
	y := a
	if rank == 0 {
		return ops.Multiply(a, b, c)
	}
	y = ops.Multiply(spread(a, 0), spread(b, 1), c)
	for i := range rank {
		y = ops.Flatten(y, i, i+1, c)
	}
	return y
}
