package products

import (
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

var _ = sig.Def("block_masked_mm",
	"a b block_size:int=64 mask_out:array? mask_lhs:array? mask_rhs:array?", func(a *sig.Args) any {
		return BlockMaskedMM(a.Array(0), a.Array(1), a.Int(2), a.Array(3), a.Array(4), a.Array(5), a.Ctx)
	})

// BlockMaskedMM is the product of a and b (see [ops.Matmul]) with masks for blocks of block_size rows and columns, 32
// or 64: of the result (mask_out), of a (mask_lhs) and of b (mask_rhs). A mask has a row for each row of blocks, of
// which the last ones may be smaller, or broadcasts to that. Blocks are 0 where a mask of bool is false, and are
// multiplied by masks of other dtypes. The common dtype of a and b must be a real floating-point one if there is a
// mask. Gradients flow to a and b, and to masks that are not bool.
func BlockMaskedMM(a, b *tensor.Array, blockSize int, maskOut, maskLHS, maskRHS *tensor.Array,
	ctx ...*tensor.Ctx) *tensor.Array {
	const op = "block_masked_mm"
	c := tensor.Call(ctx)
	if maskOut == nil && maskLHS == nil && maskRHS == nil {
		return kit.FailedAs(c, op, ops.Matmul(a, b, c))
	}
	in, f := ops.Convert(c, op, kit.Floats("the common dtype of a and b is"), a, b)
	if f != nil {
		return f
	}
	if blockSize != 32 && blockSize != 64 {
		return tensor.Fail(c, op, "block_size is %d, want 32 or 64", blockSize)
	}
	a, b = in[0], in[1]
	if a.NDim() == 0 || b.NDim() == 0 {
		return tensor.Fail(c, op, "a scalar has no rows or columns: a %v, b %v", a.Spec().Shape, b.Spec().Shape)
	}
	var ofA, ofB []int
	if a.NDim() == 1 {
		ofA = []int{-2}
		a = ops.ExpandDims(a, ofA, c)
	}
	if b.NDim() == 1 {
		ofB = []int{-1}
		b = ops.ExpandDims(b, ofB, c)
	}
	batch, err := tensor.Broadcast(batchOf(a), batchOf(b))
	if err != nil {
		return tensor.Fail(c, op, "batch dimensions of a %v and b %v cannot be broadcast", in[0].Spec().Shape,
			in[1].Spec().Shape)
	}
	one := append(ofA[:len(ofA):len(ofA)], ofB...)
	if a = masked(c, op, "mask_lhs", a, maskLHS, batch, blockSize, ofA); a.Err() != nil {
		return a
	}
	if b = masked(c, op, "mask_rhs", b, maskRHS, batch, blockSize, ofB); b.Err() != nil {
		return b
	}
	y := ops.Matmul(a, b, c)
	if y.Err() != nil {
		return kit.FailedAs(c, op, y)
	}
	if y = masked(c, op, "mask_out", y, maskOut, batch, blockSize, one); y.Err() == nil && len(one) > 0 {
		y = ops.Squeeze(y, one, c)
	}
	return y
}

// batchOf is the batch of matrices x.
func batchOf(x *tensor.Array) tensor.Shape {
	s := x.Spec().Shape
	return s[:len(s)-2]
}

// masked is x with a mask for blocks of its matrices in a batch, which has no dimensions for axes that x was given.
func masked(c *tensor.Ctx, op, name string, x, mask *tensor.Array, batch tensor.Shape, size int,
	axes []int) *tensor.Array {
	if mask == nil {
		return x
	}
	if f := kit.Unusable(c, op, mask); f != nil {
		return f
	}
	if len(axes) > 0 {
		mask = ops.ExpandDims(mask, axes, c)
	}
	s, m := x.Spec().Shape, mask.Spec().Shape
	blocks := batch.Clone()
	for _, n := range s[len(s)-2:] {
		blocks = append(blocks, (n+size-1)/size)
	}
	if err := kit.CheckBroadcast(m, blocks); err != nil {
		return tensor.Fail(c, op, "%s is for blocks of %d rows and columns of %v: %w", name, size, s, err)
	}
	for axis := -2; axis < 0; axis++ {
		if at := mask.NDim() + axis; at >= 0 && m[at] != 1 {
			index := ops.FloorDivide(ops.Iota(c, tensor.DimOf(x, axis)), ops.Number(float64(size), tensor.Int32, c), c)
			mask = ops.Take(mask, index, &at, c)
		}
	}
	if mask.DType() == tensor.Bool {
		return ops.Where(mask, x, ops.Scalar(0, x, c), c)
	}
	return ops.Multiply(x, ops.AsType(mask, x.DType(), c), c)
}
