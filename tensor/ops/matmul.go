package ops

import (
	"fmt"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

var (
	// matmul takes operands of two dimensions or more and of one dtype.
	matmul = tensor.Declare[tensor.None]("matmul")
)

func init() {
	matmul.Define(tensor.Rules[tensor.None]{
		Shape: func(in []tensor.Spec, _ tensor.None, outs []tensor.Shape) ([]tensor.Shape, error) {
			batch, a, b, err := matrices(in[0].Shape, in[1].Shape)
			return append(outs, append(batch, a[0], b[1])), err
		},
		DType: kit.OneDType[tensor.None],
		Run:   runMatmul,
		Flops: kit.ProductFlops[tensor.None],
		VJP: func(g *tensor.VJP[tensor.None]) []*tensor.Array {
			grads := make([]*tensor.Array, 2)
			c, a, b := g.Ctx, g.In[0], g.In[1]
			if g.Want[0] {
				grads[0] = SumTo(matmul.One(c, tensor.None{}, g.Cot[0], adjoint(c, b)), tensor.ShapeOf(a), c)
			}
			if g.Want[1] {
				grads[1] = sharedGradient(c, a, b, g.Cot[0])
			}
			return grads
		},
		JVP: func(g *tensor.JVP[tensor.None]) []*tensor.Array {
			var sum *tensor.Array
			if g.Tan[0] != nil {
				sum = matmul.One(g.Ctx, tensor.None{}, g.Tan[0], g.In[1])
			}
			if g.Tan[1] != nil {
				sum = AddTerm(g.Ctx, sum, matmul.One(g.Ctx, tensor.None{}, g.In[0], g.Tan[1]))
			}
			return []*tensor.Array{sum}
		},
		VMap: func(g *tensor.VMap[tensor.None]) ([]*tensor.Array, []int) {
			rank := max(kit.ExampleRank(g, 0), kit.ExampleRank(g, 1))
			y := matmul.One(g.Ctx, tensor.None{}, FrontOf(g, 0, rank), FrontOf(g, 1, rank))
			return []*tensor.Array{y}, []int{0}
		},
	})
}

// sharedGradient is the gradient of a b by b. If b is one matrix for a batch, that is one product of all rows of a and
// of the cotangent: a product for each example would be as large as b, to be added up. If b is a matrix turned round,
// as weights are, so is its gradient: that of the matrix then lies as the matrix does, for whoever updates it.
func sharedGradient(c *tensor.Ctx, a, b, cot *tensor.Array) *tensor.Array {
	if b.NDim() != 2 {
		return SumTo(matmul.One(c, tensor.None{}, adjoint(c, a), cot), tensor.ShapeOf(b), c)
	}
	if a.NDim() > 2 {
		a, cot = Flatten(a, 0, -2, c), Flatten(cot, 0, -2, c)
	}
	if b.Value().Node.Op() == transpose.Op() {
		return SwapAxes(matmul.One(c, tensor.None{}, SwapAxes(cot, 0, 1, c), conj(c, a)), 0, 1, c)
	}
	return matmul.One(c, tensor.None{}, adjoint(c, a), cot)
}

// adjoint is x with its last two dimensions exchanged, and conjugated.
func adjoint(c *tensor.Ctx, x *tensor.Array) *tensor.Array { return conj(c, SwapAxes(x, -1, -2, c)) }

// matrices splits the shapes of a product's operands: their common batch, and the matrices.
func matrices(a, b tensor.Shape) (batch, ma, mb tensor.Shape, err error) {
	ma, mb = a[len(a)-2:], b[len(b)-2:]
	if ma[1] != mb[0] {
		return nil, ma, mb, fmt.Errorf("inner dimensions differ: a %v, b %v", a, b)
	}
	batch, err = tensor.Broadcast(a[:len(a)-2], b[:len(b)-2])
	if err != nil {
		err = fmt.Errorf("batch dimensions of a %v and b %v cannot be broadcast", a, b)
	}
	return batch, ma, mb, err
}

var _ = sig.Binary("matmul", Matmul)

// Matmul is the matrix product of a and b in their common dtype, which must be a floating-point or complex one.
// Dimensions before the last two are a batch and are broadcast. An a of one dimension is a row, a b of one
// dimension a column, and the result does not have that dimension. Half types are added up in float32 and rounded
// once. A scalar, and inner dimensions that differ, are errors. With at most 16 rows or columns, the last bits may
// depend on whether the other matrix lies by rows or by columns.
func Matmul(a, b *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	const op = "matmul"
	c := tensor.Call(ctx)
	if f := kit.Unusable(c, op, a, b); f != nil {
		return f
	}
	if a.NDim() == 0 || b.NDim() == 0 {
		return tensor.Fail(c, op, "a scalar has no rows or columns: use multiply")
	}
	in, f := Convert(c, op, func(d tensor.DType) (tensor.DType, error) {
		if !d.IsInexact() {
			return d, fmt.Errorf("operands have dtypes %v and %v, want floating-point or complex ones: use astype", a.DType(),
				b.DType())
		}
		return d, nil
	}, a, b)
	if f != nil {
		return f
	}
	if sa, sb := a.Spec().Shape, b.Spec().Shape; (len(sa) == 1 || len(sb) == 1) &&
		sa[len(sa)-1] != sb[max(len(sb)-2, 0)] {
		return tensor.Fail(c, op, "inner dimensions differ: a %v, b %v", sa, sb)
	}
	a, b = in[0], in[1]
	var dropped []int
	if a.NDim() == 1 {
		a, dropped = ExpandDims(a, []int{0}, c), append(dropped, -2)
	}
	if b.NDim() == 1 {
		b, dropped = ExpandDims(b, []int{1}, c), append(dropped, -1)
	}
	y := matmul.One(c, tensor.None{}, a, b)
	if len(dropped) > 0 {
		y = Squeeze(y, dropped, c)
	}
	return y
}
