package quant

import (
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
)

// The derivatives and batching rules of products with packed matrices.

// weightGradient is the gradient of the unpacked matrix of a product, in the layout in which it is packed.
func weightGradient(c *tensor.Ctx, a productAttrs, x, cot *tensor.Array) *tensor.Array {
	if a.Transpose {
		return ops.Matmul(ops.SwapAxes(cot, -1, -2, c), x, c)
	}
	return ops.Matmul(ops.SwapAxes(x, -1, -2, c), cot, c)
}

// bitGradients are failures in the place of gradients by what has whole numbers of bits: packed words, and scales of
// modes that have them in bytes.
func bitGradients(g *tensor.VJP[productAttrs], op string) []*tensor.Array {
	grads := make([]*tensor.Array, len(g.In))
	if g.Want[1] {
		grads[1] = tensor.Fail(g.Ctx, op, "there is no gradient by the packed matrix")
	}
	if m := g.Attrs.Mode; g.Want[2] && m != affine {
		grads[2] = tensor.Fail(g.Ctx, op, "there is no gradient by the scales of mode %s", formats[m].name)
	}
	return grads
}

func quantizedMatmulVJP(g *tensor.VJP[productAttrs]) []*tensor.Array {
	grads := bitGradients(g, "quantized_matmul")
	cot, c := g.Cot[0], g.Ctx
	if g.Want[0] {
		a := productAttrs{g.Attrs.quantAttrs, !g.Attrs.Transpose, false}
		grads[0] = quantizedMatmul.One(c, a, cot, g.In[1], g.In[2], g.In[3])
	}
	if g.Attrs.Mode == affine && (g.Want[2] || g.Want[3]) {
		dw := weightGradient(c, g.Attrs, asMatrix(c, g.In[0]), asMatrix(c, cot))
		grads[2], grads[3] = groupGradients(c, g.Attrs.quantAttrs, g.In[1], g.In[2], dw)
	}
	return grads
}

// asMatrix makes one matrix of x: all dimensions but the last become rows.
func asMatrix(c *tensor.Ctx, x *tensor.Array) *tensor.Array {
	if x.NDim() == 1 {
		return ops.ExpandDims(x, []int{0}, c)
	}
	return ops.Flatten(x, 0, -2, c)
}

func quantizedMatmulVMap(g *tensor.VMap[productAttrs]) ([]*tensor.Array, []int) {
	if g.Axes[1] < 0 && g.Axes[2] < 0 && g.Axes[3] < 0 {
		in := append([]*tensor.Array{ops.FrontOf(g, 0, 0)}, g.In[1:]...)
		return []*tensor.Array{quantizedMatmul.One(g.Ctx, g.Attrs, in...)}, []int{0}
	}
	rank := kit.ExampleRank(g, 0)
	x := ops.FrontOf(g, 0, 0)
	if rank == 1 { // a row
		x = ops.ExpandDims(x, []int{1}, g.Ctx)
	}
	in := []*tensor.Array{x}
	for i := 1; i < 4; i++ {
		in = append(in, ops.FrontOf(g, i, max(rank, 2)))
	}
	y := batchedProduct(g.Ctx, g.Attrs, in)
	if rank == 1 {
		y = ops.Squeeze(y, []int{1}, g.Ctx)
	}
	return []*tensor.Array{y}, []int{0}
}

// flatBatch is x with one batch dimension before its matrices.
func flatBatch(c *tensor.Ctx, x *tensor.Array) *tensor.Array {
	if x.NDim() == 2 {
		return ops.ExpandDims(x, []int{0}, c)
	}
	return ops.Flatten(x, 0, -3, c)
}

func gatherQMMVJP(g *tensor.VJP[productAttrs]) []*tensor.Array {
	grads := bitGradients(g, "gather_qmm")
	cot, c := g.Cot[0], g.Ctx
	x, w, scales, biases := g.In[0], g.In[1], g.In[2], g.In[3]
	lhs, rhs := ops.BroadcastTo(g.In[5], batchShape(cot), c), ops.BroadcastTo(g.In[4], batchShape(cot), c)
	addUp := func(like, updates, index *tensor.Array) *tensor.Array {
		zeros := flatBatch(c, ops.Zeros(tensor.ShapeOf(like), updates.DType(), c))
		sum := ops.IndexUpdate(zeros, []ops.Part{ops.ByArray(index)}, "add", updates, c)
		return ops.Reshape(sum, tensor.ShapeOf(like), c)
	}
	if g.Want[0] {
		a := productAttrs{g.Attrs.quantAttrs, !g.Attrs.Transpose, true}
		each := gatherQMM.One(c, a, cot, w, scales, biases, rhs, numberMatrices(c, cot))
		grads[0] = addUp(x, each, lhs)
	}
	if g.Attrs.Mode == affine && (g.Want[2] || g.Want[3]) {
		pick := func(y, index *tensor.Array) *tensor.Array { return ops.Take(flatBatch(c, y), index, new(0), c) }
		dw := weightGradient(c, g.Attrs, pick(x, lhs), cot)
		byScale, byBias := groupGradients(c, g.Attrs.quantAttrs, pick(w, rhs), pick(scales, rhs), dw)
		grads[2], grads[3] = addUp(scales, byScale, rhs), addUp(biases, byBias, rhs)
	}
	return grads
}

// gatherQMMVMap makes the batch one more batch dimension, and of each example's indices indices into all matrices.
func gatherQMMVMap(g *tensor.VMap[productAttrs]) ([]*tensor.Array, []int) {
	c := g.Ctx
	rank := max(kit.ExampleRank(g, 4), kit.ExampleRank(g, 5))
	number := ops.Iota(c, kit.BatchDim(g))
	if rank > 0 {
		number = ops.ExpandDims(number, kit.Shifted(kit.Identity(rank)), c)
	}
	indices := func(i int, x *tensor.Array, batched bool) *tensor.Array {
		index := ops.FrontOf(g, i, rank)
		if !batched {
			return index
		}
		axes := make([]int, 0, x.NDim())
		for k := 1; k < x.NDim()-2; k++ {
			axes = append(axes, k)
		}
		index = ops.AsType(index, tensor.Int64, c)
		n := ops.Size(x, axes, tensor.Int64, c) // matrices of an example
		zero := ops.Number(0, tensor.Int64, c)
		lowest := ops.Negative(n, c)
		// An index that is out of range must not name another example's matrix: it is moved out of all.
		beyond := ops.Multiply(n, ops.Size(x, []int{0}, tensor.Int64, c), c)
		wrapped := ops.Where(ops.Less(index, zero, c), ops.Add(index, n, c), index, c)
		inside := ops.LogicalAnd(ops.GreaterEqual(index, lowest, c), ops.Less(index, n, c), c)
		outside := ops.Where(ops.Less(index, zero, c), ops.Subtract(index, beyond, c), ops.Add(index, beyond, c), c)
		return ops.Where(inside, ops.Add(wrapped, ops.Multiply(number, n, c), c), outside, c)
	}
	x := g.In[0]
	if g.Axes[0] >= 0 {
		x = ops.FrontOf(g, 0, 0)
	}
	in := []*tensor.Array{x}
	packedBatched := g.Axes[1] >= 0 || g.Axes[2] >= 0 || g.Axes[3] >= 0
	for i := 1; i < 4; i++ {
		y := g.In[i]
		if packedBatched {
			y = ops.FrontOf(g, i, 0)
		}
		in = append(in, y)
	}
	in = append(in, indices(4, in[1], packedBatched), indices(5, x, g.Axes[0] >= 0))
	a := g.Attrs
	a.InOrder = false
	return []*tensor.Array{gatherQMM.One(c, a, in...)}, []int{0}
}
