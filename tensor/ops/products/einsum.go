package products

import (
	"fmt"
	"slices"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

var _ = sig.Def("einsum", "subscripts:string operands:array...", func(a *sig.Args) any {
	return Einsum(a.Text(0), a.Arrays(1), a.Ctx)
})

// Einsum multiplies operands and sums over dimensions, by Einstein's convention: "ij,jk->ik" is a product of matrices.
// Subscripts name each operand's dimensions by letters, between commas; what stands behind the arrow are the
// dimensions of the result, and the products are summed over all others. A letter that an operand has twice is its
// diagonal. An ellipsis, "...", stands for any number of dimensions, which are aligned at their ends. Without an arrow
// the result has the ellipsis' dimensions and the letters that stand once, sorted. Dimensions of size 1 are broadcast.
// Of three operands or more, at most 128, two at a time are multiplied, in the order that [EinsumPath] gives.
// Subscripts that do not fit the operands, or have more than 2^16 bytes, are errors, as are sums of products of
// integers: convert them with astype.
func Einsum(subscripts string, operands []*tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	const op = "einsum"
	c := tensor.Call(ctx)
	e, fail := readEquation(c, op, subscripts, operands)
	if fail != nil {
		return fail
	}
	arrays, terms := slices.Clone(operands), slices.Clone(e.in)
	for _, s := range e.search().steps {
		x, t := make([]*tensor.Array, len(s.at)), make([]term, len(s.at))
		for i, at := range slices.Backward(s.at) {
			x[i], t[i] = arrays[at], terms[at]
			arrays, terms = slices.Delete(arrays, at, at+1), slices.Delete(terms, at, at+1)
		}
		arrays, terms = append(arrays, multiply(c, x, t, s.out)), append(terms, s.out)
	}
	return kit.FailedAs(c, op, arrays[0])
}

// maxOperands bounds the search for an order, which takes time by the square of the operands and more.
const maxOperands = 128

// maxSubscripts is how many bytes of subscripts are read: reading them takes time and memory that no limit sees.
const maxSubscripts = 1 << 16

// readEquation reads subscripts beside operands that can be used.
func readEquation(c *tensor.Ctx, op, subscripts string, operands []*tensor.Array) (e equation, fail *tensor.Array) {
	if len(operands) == 0 {
		return e, tensor.Fail(c, op, "there is no operand for subscripts %q", subscripts)
	}
	if n := len(operands); n > maxOperands {
		return e, tensor.Fail(c, op, "there are %d operands, at most %d can be put in order", n, maxOperands)
	}
	if n := len(subscripts); n > maxSubscripts {
		return e, tensor.Fail(c, op, "the subscripts have %d bytes, at most %d are read", n, maxSubscripts)
	}
	if f := kit.Unusable(c, op, operands...); f != nil {
		return e, f
	}
	shapes := make([]tensor.Shape, len(operands))
	for i, x := range operands {
		shapes[i] = x.Spec().Shape
	}
	e, err := parse(subscripts, shapes)
	if err != nil {
		return e, tensor.Fail(c, op, "%w", err)
	}
	return e, nil
}

// multiply multiplies operands of those terms, and sums the products over what out does not have.
func multiply(c *tensor.Ctx, x []*tensor.Array, t []term, out term) *tensor.Array {
	for i := range x {
		x[i], t[i] = diagonals(c, x[i], t[i])
	}
	for i := range x { // what one operand has alone is summed first
		var axes []int
		var rest term
		for axis, name := range t[i] {
			alone := !out.has(name)
			for j := range t {
				alone = alone && (j == i || !t[j].has(name))
			}
			if alone {
				axes = append(axes, axis)
			} else {
				rest = append(rest, name)
			}
		}
		if len(axes) > 0 {
			x[i], t[i] = ops.Sum(x[i], axes, false, c), rest
		}
	}
	if len(x) == 2 && slices.ContainsFunc(t[0], func(name int) bool { return !out.has(name) }) {
		y, has := contract(c, x[0], x[1], t[0], t[1], out)
		return permuted(c, y, has, out)
	}
	all := union(t...)
	var y *tensor.Array
	for i := range x {
		// As a view with all dimensions, in one order.
		z := x[i]
		var own term
		var missing []int
		for axis, name := range all {
			if t[i].has(name) {
				own = append(own, name)
			} else {
				missing = append(missing, axis)
			}
		}
		z = permuted(c, z, t[i], own)
		if len(missing) > 0 {
			z = ops.ExpandDims(z, missing, c)
		}
		if i == 0 {
			y = z
		} else {
			y = ops.Multiply(y, z, c)
		}
	}
	var axes []int
	var has term
	for axis, name := range all {
		if out.has(name) {
			has = append(has, name)
		} else {
			axes = append(axes, axis)
		}
	}
	if len(axes) > 0 {
		y = ops.Sum(y, axes, false, c)
	}
	return permuted(c, y, has, out)
}

// permuted is x, whose dimensions are has, with them in the order of out.
func permuted(c *tensor.Ctx, x *tensor.Array, has, out term) *tensor.Array {
	if slices.Equal(has, out) {
		return x
	}
	perm := make([]int, len(out))
	for i, name := range out {
		perm[i] = slices.Index(has, name)
	}
	return ops.Transpose(x, perm, c)
}

// diagonals takes the diagonals of dimensions that have one name.
func diagonals(c *tensor.Ctx, x *tensor.Array, t term) (*tensor.Array, term) {
	for _, name := range union(t) {
		var same, others []int
		rest := term{name}
		for axis, n := range t {
			if n == name {
				same = append(same, axis)
			} else {
				others, rest = append(others, axis), append(rest, n)
			}
		}
		if len(same) == 1 {
			continue
		}
		index := ops.ByArray(ops.Iota(c, tensor.DimOf(x, same[0])))
		x = ops.Index(ops.Transpose(x, append(same, others...), c), slices.Repeat([]ops.Part{index}, len(same)), c)
		t = rest
	}
	return x, t
}

var _ = sig.Def("einsum_path", "subscripts:string operands:array...", func(a *sig.Args) any {
	steps, text, fail := EinsumPath(a.Text(0), a.Arrays(1), a.Ctx)
	if fail != nil {
		return fail
	}
	return sig.Several{sig.Lists(steps), text}
})

// EinsumPath is the order in which [Einsum] multiplies operands, and a text about its cost: a list with the places of
// the operands that each step takes out of their list, counted from 0, while its result goes to the end. The order is
// found greedily.
func EinsumPath(subscripts string, operands []*tensor.Array, ctx ...*tensor.Ctx) (steps [][]int, text string,
	fail *tensor.Array) {
	e, fail := readEquation(tensor.Call(ctx), "einsum_path", subscripts, operands)
	if fail != nil {
		return nil, "", fail
	}
	p := e.search()
	for _, s := range p.steps {
		steps = append(steps, s.at)
	}
	text = fmt.Sprintf("  Complete contraction:  %s\n         Naive scaling:  %d\n     Optimized scaling:  %d\n"+
		"      Naive FLOP count:  %d\n  Optimized FLOP count:  %d\n", subscripts, p.widest, p.scaling, p.naive, p.cost)
	return steps, text, nil
}
