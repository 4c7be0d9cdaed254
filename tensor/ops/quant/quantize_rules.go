package quant

import (
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
)

// quantizeGradient is that of scales and biases by the matrix. As in MLX the packed numbers have none, and equal
// ends of a group's range share its gradient. With more than one bit a bias is the end that is further from 0,
// its edge, and the scale is that by a whole number of steps; if that number is 0 the bias is too, and the scale
// is plus or minus the range by the greatest q, which it is with one bit as well, where the bias is the lower
// end.
func quantizeGradient(g *tensor.VJP[quantAttrs]) []*tensor.Array {
	grads := make([]*tensor.Array, len(g.In))
	if g.Attrs.Mode != affine {
		return grads
	}
	c, w := g.Ctx, g.In[0]
	d := kit.Accumulator(w.DType())
	cot := ops.WithZeros(c, g.Cot[1:], g.Out[1:])
	if cot == nil {
		return grads
	}
	one := func(x *tensor.Array) *tensor.Array { return ops.ExpandDims(ops.AsType(x, d, c), []int{-1}, c) }
	byScale, byBias := one(cot[0]), one(cot[1])
	zero := ops.Number(0, d, c)
	x := ops.Reshape(ops.AsType(ops.StopGradient(w, c), d, c), groupsShape(g.Out[1], g.Attrs), c)
	low, high := ops.Min(x, []int{-1}, true, c), ops.Max(x, []int{-1}, true, c)
	bins := ops.Number(float64(int(1)<<g.Attrs.Bits-1), d, c)
	width := ops.Divide(ops.Subtract(high, low, c), bins, c)
	least := ops.Number(1e-7, d, c)
	byWidth := ops.Where(ops.Greater(width, least, c), byScale, zero, c)
	byLow, byHigh := byBias, zero
	if g.Attrs.Bits > 1 {
		negative := ops.Greater(ops.Abs(low, c), ops.Abs(high, c), c)
		edge := ops.Where(negative, low, high, c)
		scale := ops.Maximum(width, least, c)
		steps := ops.Round(ops.Divide(edge, ops.Where(negative, scale, ops.Negative(scale, c), c), c), 0, c)
		none := ops.Equal(steps, zero, c)
		steps = ops.Where(none, ops.Number(1, d, c), steps, c) // 0/0 would be NaN in the derivatives of this
		byEdge := ops.Where(none, zero, ops.Add(ops.Divide(byScale, steps, c), byBias, c), c)
		byWidth = ops.Where(none, ops.Where(negative, byWidth, ops.Negative(byWidth, c), c), zero, c)
		byLow, byHigh = ops.Where(negative, byEdge, zero, c), ops.Where(negative, zero, byEdge, c)
	}
	byWidth = ops.Divide(byWidth, bins, c)
	share := func(end, by *tensor.Array) *tensor.Array {
		at := ops.AsType(ops.Equal(x, end, c), d, c)
		return ops.Multiply(ops.Divide(at, ops.Sum(at, []int{-1}, true, c), c), by, c)
	}
	sum := ops.Add(share(low, ops.Subtract(byLow, byWidth, c)), share(high, ops.Add(byHigh, byWidth, c)), c)
	grads[0] = ops.AsType(ops.Reshape(sum, tensor.ShapeOf(w), c), w.DType(), c)
	return grads
}

// groupsShape is the shape of a matrix by its groups, of which like has one element each.
func groupsShape(like *tensor.Array, a quantAttrs) tensor.ShapeArg {
	return tensor.Concat(tensor.ShapeOf(like), tensor.Sizes(a.Group))
}
