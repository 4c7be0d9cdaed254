package products

import (
	_ "embed"
	"fmt"
	"math"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

var (
	// gatherMM takes a, b, of two dimensions or more and one dtype, and the indices of their matrices.
	gatherMM = tensor.Declare[tensor.None]("gather_mm")
	//go:embed gather_mm.metal
	gatherText    string
	gatherKernels = kit.NewKernels[gatherVariant](kit.IndicesMSL, gatherText)
)

// gatherVariant chooses a kernel.
type gatherVariant struct {
	T, ACC, LHS, RHS tensor.DType
	rows, cols       int
	dots, unit       bool
}

func init() {
	gatherMM.Define(tensor.Rules[tensor.None]{
		Shape: func(in []tensor.Spec, _ tensor.None, outs []tensor.Shape) ([]tensor.Shape, error) {
			a, b := in[0].Shape, in[1].Shape
			if len(a) < 2 || len(b) < 2 || a[len(a)-1] != b[len(b)-2] {
				return nil, fmt.Errorf("inner dimensions differ: a %v, b %v", a, b)
			}
			batch, err := tensor.Broadcast(in[2].Shape, in[3].Shape)
			if err != nil {
				return nil, fmt.Errorf("lhs_indices and rhs_indices: %w", err)
			}
			return append(outs, append(batch, a[len(a)-2], b[len(b)-1])), nil
		},
		Flops: kit.ProductFlops[tensor.None],
		DType: func(in []tensor.Spec, _ tensor.None, outs []tensor.DType) ([]tensor.DType, error) {
			if err := kit.CheckIndices(in[2:]); err != nil {
				return nil, err
			}
			return kit.OneDTypeOf(outs, in[:2]...)
		},
		IndicesFrom: func(tensor.None, int) int { return 2 },
		Run:         runGatherMM,
		VJP:         gatherVJP,
		VMap:        gatherVMap,
		JVP: func(g *tensor.JVP[tensor.None]) []*tensor.Array {
			var sum *tensor.Array
			if g.Tan[0] != nil {
				sum = gatherMM.One(g.Ctx, tensor.None{}, g.Tan[0], g.In[1], g.In[2], g.In[3])
			}
			if g.Tan[1] != nil {
				sum = ops.AddTerm(g.Ctx, sum, gatherMM.One(g.Ctx, tensor.None{}, g.In[0], g.Tan[1], g.In[2], g.In[3]))
			}
			return []*tensor.Array{sum}
		},
	})
}

// matrices are an operand with one stride from each of its matrices to the next: a copy of it where it has none.
func matrices(r *tensor.Run, i int) (o tensor.Operand, count, stride int, err error) {
	o = r.In[i]
	n := len(o.Shape) - 2
	shape, strides := kit.Merge(o.Shape[:n], o.Strides[:n])
	if len(shape) > 1 {
		if o, err = r.Contiguous(i); err != nil {
			return o, 0, 0, err
		}
		shape, strides = kit.Merge(o.Shape[:n], o.Strides[:n])
	}
	if len(shape) == 1 {
		stride = strides[0][0]
	}
	return o, o.Shape[:n].Size(), stride, nil
}

// chooseRows chooses the kernel that makes rows of products with the matrices of b: a SIMD-group makes blocks of rows,
// and of each some columns.
func chooseRows(b tensor.Operand, d tensor.DType, rows int) (v gatherVariant, blocks, columns int) {
	step := b.Strides[len(b.Strides)-2:]
	v = gatherVariant{T: d, ACC: kit.Accumulator(d), rows: 1}
	for v.rows < min(rows, 8) {
		v.rows *= 2
	}
	v.cols = max(8/v.rows, 2)
	v.dots = step[0] == 1 && step[1] != 1
	v.unit = step[1] == 1
	columns = v.cols
	if !v.dots {
		columns *= 32
	}
	return v, (rows + v.rows - 1) / v.rows, columns
}

func runGatherMM(r *tensor.Run, _ tensor.None) error {
	out := r.Out[0]
	last := len(out.Shape) - 1
	batch, rows, cols := out.Shape[:last-1], out.Shape[last-1], out.Shape[last]
	a, ofA, strideA, err := matrices(r, 0)
	if err != nil {
		return err
	}
	b, ofB, strideB, err := matrices(r, 1)
	if err != nil {
		return err
	}
	v, blocks, each := chooseRows(b, out.DType, rows)
	v.LHS, v.RHS = r.In[2].DType, r.In[3].DType
	if err := kit.CheckCount(batch.Size(), math.MaxUint32/blocks, "matrices"); err != nil {
		return err
	}
	lhs, rhs := kit.BroadcastOperand(r.In[2], batch), kit.BroadcastOperand(r.In[3], batch)
	dims := kit.Collapse(batch, lhs.Strides, rhs.Strides)
	notes, err := kit.NewNotes(r, 2)
	if err != nil {
		return err
	}
	stepA, stepB := a.Strides[len(a.Shape)-2:], b.Strides[len(b.Shape)-2:]
	params := kit.Params{}.Long(stepA[0], stepA[1], strideA, stepB[0], stepB[1], strideB, ofA, ofB).
		Uint(rows, a.Shape[len(a.Shape)-1], cols, blocks, dims.N)
	err = gatherKernels.Launch(r, v, "gather_mm", kit.Simds((cols+each-1)/each, batch.Size()*blocks, 8), a.Arg(), b.Arg(),
		out.Arg(), lhs.Arg(), rhs.Arg(), params.Arg(), dims.Shape(), dims.Strides(0), dims.Strides(1), notes.Arg(0))
	if err != nil {
		return err
	}
	notes.Check(r.OpName(), func(i int, index string) string {
		return fmt.Sprintf("index %s of %s is out of range for %d matrices", index,
			[...]string{"lhs_indices", "rhs_indices"}[i], [...]int{ofA, ofB}[i])
	})
	return nil
}

// batchShape is the dimensions of x before its matrices.
func batchShape(x *tensor.Array) tensor.ShapeArg {
	var dims []tensor.ShapeArg
	for i := range x.NDim() - 2 {
		dims = append(dims, tensor.DimOf(x, i))
	}
	return tensor.Concat(dims...)
}

// numbers numbers the matrices of x, in the shape of its batch.
func numbers(c *tensor.Ctx, x *tensor.Array) *tensor.Array { return ops.Iota(c, batchShape(x)) }

func gatherVJP(g *tensor.VJP[tensor.None]) []*tensor.Array {
	grads := make([]*tensor.Array, 4)
	c, cot := g.Ctx, g.Cot[0]
	a, b := g.In[0], g.In[1]
	lhs, rhs := ops.BroadcastTo(g.In[2], batchShape(cot), c), ops.BroadcastTo(g.In[3], batchShape(cot), c)
	turned := func(x *tensor.Array) *tensor.Array { return ops.SwapAxes(x, -1, -2, c) }
	addUp := func(like, updates, index *tensor.Array) *tensor.Array {
		zeros := ops.Zeros(tensor.ShapeOf(like), updates.DType(), c)
		if like.NDim() == 2 {
			zeros = ops.ExpandDims(zeros, []int{0}, c)
		} else {
			zeros = ops.Flatten(zeros, 0, -3, c)
		}
		sum := ops.IndexUpdate(zeros, []ops.Part{ops.ByArray(index)}, "add", updates, c)
		return ops.Reshape(sum, tensor.ShapeOf(like), c)
	}
	if g.Want[0] {
		grads[0] = addUp(a, gatherMM.One(c, tensor.None{}, cot, turned(b), numbers(c, cot), rhs), lhs)
	}
	if g.Want[1] {
		grads[1] = gatherGradient(c, a, b, cot, lhs, rhs)
	}
	return grads
}

// gatherGradient is the gradient of b. The rows of all matrices of a and cotangents that meet one matrix of b are put
// one after the other; what they multiply to is a segment of one product. So nothing as large as the products of single
// matrices is ever stored.
func gatherGradient(c *tensor.Ctx, a, b, cot, lhs, rhs *tensor.Array) *tensor.Array {
	list := func(x *tensor.Array) *tensor.Array { // of matrices
		if x.NDim() == 2 {
			return ops.ExpandDims(x, []int{0}, c)
		}
		return ops.Flatten(x, 0, -3, c)
	}
	long := func(x *tensor.Array) *tensor.Array { return ops.AsType(x, tensor.Int64, c) }
	of := list(b)
	index := long(ops.Flatten(rhs, 0, -1, c))
	fromEnd := ops.Add(index, ops.Size(of, []int{0}, tensor.Int64, c), c)
	index = ops.Where(ops.Less(index, ops.Number(0, tensor.Int64, c), c), fromEnd, index, c)
	order := ops.ArgSort(index, new(0), c)
	pick := func(x, index *tensor.Array) *tensor.Array { return ops.Take(x, index, new(0), c) }
	rows := ops.Flatten(pick(list(a), pick(ops.Flatten(lhs, 0, -1, c), order)), 0, 1, c)
	cots := ops.Flatten(pick(list(cot), order), 0, 1, c)
	sorted, each := pick(index, order), long(ops.Iota(c, tensor.DimOf(of, 0)))
	end := func(side string) *tensor.Array {
		return ops.Multiply(long(ops.SearchSorted(sorted, each, side, c)), ops.Size(cot, []int{-2}, tensor.Int64, c), c)
	}
	segments := ops.Stack([]*tensor.Array{end("left"), end("right")}, -1, c)
	y := segmentedMM.One(c, segmentedAttrs{}, ops.Transpose(rows, nil, c), cots, segments)
	return ops.Reshape(y, tensor.ShapeOf(b), c)
}

// gatherVMap makes of each example's indices indices into the matrices of all.
func gatherVMap(g *tensor.VMap[tensor.None]) ([]*tensor.Array, []int) {
	c := g.Ctx
	rank := max(kit.ExampleRank(g, 2), kit.ExampleRank(g, 3))
	number := ops.Iota(c, kit.BatchDim(g))
	if rank > 0 {
		number = ops.ExpandDims(number, kit.Shifted(kit.Identity(rank)), c)
	}
	in := make([]*tensor.Array, 4)
	for i := range 2 {
		in[i], in[i+2] = g.In[i], ops.FrontOf(g, i+2, rank)
		if g.Axes[i] < 0 {
			continue
		}
		in[i] = ops.FrontOf(g, i, 0)
		axes := make([]int, 0, in[i].NDim())
		for k := 1; k < in[i].NDim()-2; k++ {
			axes = append(axes, k)
		}
		n := ops.Size(in[i], axes, tensor.Int64, c) // matrices of an example
		zero := ops.Number(0, tensor.Int64, c)
		index := ops.AsType(in[i+2], tensor.Int64, c)
		wrapped := ops.Where(ops.Less(index, zero, c), ops.Add(index, n, c), index, c)
		inside := ops.LogicalAnd(ops.GreaterEqual(wrapped, zero, c), ops.Less(wrapped, n, c), c)
		// An index that is out of range must not name another example's matrix: it stays out of range.
		all := ops.Multiply(n, ops.Size(in[i], []int{0}, tensor.Int64, c), c)
		outside := ops.Where(ops.Less(index, zero, c), ops.Subtract(index, all, c), ops.Add(index, all, c), c)
		in[i+2] = ops.Where(inside, ops.Add(wrapped, ops.Multiply(number, n, c), c), outside, c)
	}
	y := gatherMM.One(c, tensor.None{}, in...)
	if g.Axes[2] < 0 && g.Axes[3] < 0 && g.Axes[0] < 0 && g.Axes[1] < 0 {
		return []*tensor.Array{y}, []int{-1}
	}
	return []*tensor.Array{y}, []int{0}
}

var _ = sig.Def("gather_mm", "a b lhs_indices:indices? rhs_indices:indices? sorted_indices:bool=false",
	func(a *sig.Args) any {
		return GatherMM(a.Array(0), a.Array(1), a.Array(2), a.Array(3), a.Ctx)
	}, sig.Same("the default of sorted_indices", "each product is made alone: no kernel needs an order of them"))

// GatherMM is a batch of products of matrices of a and b, picked by indices: lhs_indices names the matrices of a and
// rhs_indices those of b, of which all dimensions before the last two count as one; both are broadcast against each
// other and give the result its batch. Without one of them all matrices are taken in their order, without both it is
// [ops.Matmul]. Negative indices count from the end; one that is out of range is an error when the result is computed.
// An a of one dimension is a row, a b of one dimension a column. The common dtype must be a real floating-point one;
// half types are added up in float32. MLX's kernels need sorted_indices, a promise that rhs_indices ascend, to read
// each matrix once; here each product is made alone, and neither result nor speed depends on the promise, though
// neighbours with one matrix find it in the cache. Gradients flow to a and b; they add up where an index stands twice.
func GatherMM(a, b, lhs, rhs *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	const op = "gather_mm"
	c := tensor.Call(ctx)
	if lhs == nil && rhs == nil {
		return kit.FailedAs(c, op, ops.Matmul(a, b, c))
	}
	in, f := ops.Convert(c, op, kit.Floats("the common dtype of a and b is"), a, b)
	if f != nil {
		return f
	}
	a, b = in[0], in[1]
	if a.NDim() == 0 || b.NDim() == 0 {
		return tensor.Fail(c, op, "a scalar has no rows or columns: a %v, b %v", a.Spec().Shape, b.Spec().Shape)
	}
	var dropped []int
	if a.NDim() == 1 {
		a, dropped = ops.ExpandDims(a, []int{0}, c), append(dropped, -2)
	}
	if b.NDim() == 1 {
		b, dropped = ops.ExpandDims(b, []int{1}, c), append(dropped, -1)
	}
	index := []*tensor.Array{lhs, rhs}
	for i, x := range []*tensor.Array{a, b} {
		if index[i] == nil {
			index[i] = numbers(c, x)
		}
		if f := kit.Unusable(c, op, index[i]); f != nil {
			return f
		}
		if err := kit.CheckIndex(index[i].DType()); err != nil {
			return tensor.Fail(c, op, "%w", err)
		}
	}
	y := gatherMM.One(c, tensor.None{}, a, b, index[0], index[1])
	if len(dropped) > 0 {
		y = ops.Squeeze(y, dropped, c)
	}
	return y
}
