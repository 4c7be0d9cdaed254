package products

import (
	_ "embed"
	"fmt"
	"math"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/kit/panels"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

var (
	// gatherMM takes a, b, of two dimensions or more and one dtype, and the indices of their matrices.
	gatherMM = tensor.Declare[tensor.None]("gather_mm")
	//go:embed gather_mm.metal
	gatherText string
	//go:embed gathered.metal
	plainText string
	//go:embed segments.metal
	segmentsText  string
	gatherKernels = kit.NewKernels[gatherVariant](kit.IndicesMSL, kit.PiecesMSL, segmentsText, gatherText)
	plainKernels  = kit.NewKernels[plainVariant](panels.ArithmeticMSL, panels.DotMSL, kit.IndicesMSL, kit.StridesMSL,
		segmentsText, plainText)
)

// plainVariant chooses a plain kernel.
type plainVariant struct {
	panels.Elements
	panels.Order
	LHS, RHS tensor.DType
}

// gatherVariant chooses a kernel.
type gatherVariant struct {
	kit.Pieces
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
		Bounds:      matrices,
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

// gathered is an operand of a gathered product: so many matrices, a stride apart, that indices pick.
type gathered struct {
	tensor.Operand
	of, stride int
	step       []int // from one row or column to the next
	index      tensor.Operand
}

// newGathered is input i, picked by input i + 2 for that batch: a copy of it where its matrices are not a stride
// apart.
func newGathered(r *tensor.Run, i int, batch tensor.Shape) (g gathered, err error) {
	o := r.In[i]
	n := len(o.Shape) - 2
	shape, strides := kit.Merge(o.Shape[:n], o.Strides[:n])
	if len(shape) > 1 {
		if o, err = r.Contiguous(i); err != nil {
			return g, err
		}
		shape, strides = kit.Merge(o.Shape[:n], o.Strides[:n])
	}
	g = gathered{Operand: o, of: o.Shape[:n].Size(), step: o.Strides[n:], index: kit.BroadcastOperand(r.In[i+2], batch)}
	if len(shape) == 1 {
		g.stride = strides[0][0]
	}
	return g, nil
}

// orderOf is how products of rows with the matrices of b are added up: where few rows meet columns that lie together,
// by the lanes of a SIMD-group.
func orderOf(b tensor.Operand, few bool) panels.Order {
	step := b.Strides[len(b.Strides)-2:]
	return panels.Order{Lanes: few && step[0] == 1 && step[1] != 1}
}

// overElements is a thread for each element of a batch of products, or a SIMD-group where lanes share one.
func overElements(order panels.Order, rows, cols, batch int) (kit.Grid, error) {
	if err := kit.CheckCount(batch, math.MaxUint32/max(rows, 1), "matrices of a batch"); err != nil {
		return kit.Grid{}, err
	}
	if order.Lanes {
		return kit.Simds(cols, rows*batch, 8), nil
	}
	return kit.Tiles(cols, rows, batch), nil
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
	v.dots = orderOf(b, true).Lanes
	v.unit = step[1] == 1
	columns = v.cols
	if !v.dots {
		columns *= 32
	}
	return v, (rows + v.rows - 1) / v.rows, columns
}

func runGatherMM(r *tensor.Run, _ tensor.None) error {
	last := len(r.Out[0].Shape) - 1
	batch := r.Out[0].Shape[:last-1]
	a, err := newGathered(r, 0, batch)
	if err != nil {
		return err
	}
	b, err := newGathered(r, 1, batch)
	if err != nil {
		return err
	}
	notes, err := kit.NewNotes(r, 2)
	if err != nil {
		return err
	}
	p := &panels.Product{Run: r, DType: r.Out[0].DType, Batch: tensor.Shape{batch.Size()}, Rows: r.Out[0].Shape[last-1],
		Depth: a.Shape[len(a.Shape)-1], Cols: r.Out[0].Shape[last]}
	if err := runGathered(p, batch, a, b, notes); err != nil {
		return err
	}
	notes.Check(r.OpName(), func(i int, index string) string {
		return fmt.Sprintf("index %s of %s is out of range for %d matrices", index,
			[...]string{"lhs_indices", "rhs_indices"}[i], [...]int{a.of, b.of}[i])
	})
	return nil
}

// runGathered multiplies by kernels for the host's processors where kernels run on these, elsewhere by the plain one.
func runGathered(p *panels.Product, batch tensor.Shape, a, b gathered, notes kit.Notes) error {
	many := !p.Few() && min(p.Depth, a.of, b.of, batch.Size()) > 0
	switch {
	case !p.Info().Host && (many || !p.Info().GPU || min(p.Depth, a.of, b.of, batch.Size()) == 0):
		return gatherPlain(p, batch, a, b, notes)
	case many:
		return gatherPanels(p, a, b, notes)
	}
	return gatherRows(p, batch, a, b, notes)
}

// gatherPlain multiplies by the kernel that any device can run.
func gatherPlain(p *panels.Product, batch tensor.Shape, a, b gathered, notes kit.Notes) error {
	v := plainVariant{panels.ElementsOf(p.DType), orderOf(b.Operand, p.Few()), a.index.DType, b.index.DType}
	over, err := overElements(v.Order, p.Rows, p.Cols, batch.Size())
	if err != nil {
		return err
	}
	dims := kit.Collapse(batch, a.index.Strides, b.index.Strides)
	params := kit.Params{}.Long(a.step[0], a.step[1], a.stride, b.step[0], b.step[1], b.stride, a.of, b.of).
		Uint(p.Rows, p.Depth, p.Cols, dims.N)
	return plainKernels.Launch(p.Run, v, "gather_mm", over, a.Arg(), b.Arg(), p.Out[0].Arg(), a.index.Arg(),
		b.index.Arg(), params.Arg(), dims.Shape(), dims.Strides(0), dims.Strides(1), notes.Arg(0))
}

// gatherRows multiplies the matrices where they lie.
func gatherRows(p *panels.Product, batch tensor.Shape, a, b gathered, notes kit.Notes) error {
	v, blocks, each := chooseRows(b.Operand, p.DType, p.Rows)
	v.LHS, v.RHS = a.index.DType, b.index.DType
	if v.dots && a.step[1] == 1 && b.step[0] == 1 {
		v.Pieces = kit.NewPieces(p.Run, p.DType, v.rows, p.Depth, []int{a.step[0], a.stride, b.step[1], b.stride})
	}
	if v.Wide() {
		v.cols, each = 2, 2
	}
	deep, err := p.Deep(batch.Size(), blocks)
	if err != nil {
		return err
	}
	dims := kit.Collapse(batch, a.index.Strides, b.index.Strides)
	params := kit.Params{}.Long(a.step[0], a.step[1], a.stride, b.step[0], b.step[1], b.stride, a.of, b.of).
		Uint(p.Rows, p.Depth, p.Cols, blocks, dims.N)
	return gatherKernels.Launch(p.Run, v, "gather_mm", kit.Simds((p.Cols+each-1)/each, deep, 8), a.Arg(), b.Arg(),
		p.Out[0].Arg(), a.index.Arg(), b.index.Arg(), params.Arg(), dims.Shape(), dims.Strides(0), dims.Strides(1),
		notes.Arg(0))
}

// gatherPanels packs the matrices that are picked and multiplies them.
func gatherPanels(p *panels.Product, a, b gathered, notes kit.Notes) error {
	p.UsePairs()
	var packed [2]panels.Picked
	for i, g := range [2]gathered{a, b} {
		by, err := panels.NewPicks(p.Run, g.index, false, g.of, notes.Arg(i))
		if err != nil {
			return err
		}
		x := panels.Matrices{Operand: g.Operand, Step: [2]int{g.step[i], g.step[1-i]}} // columns of b, rows of a
		x.Shape, x.Strides = tensor.Shape{g.of}, []int{g.stride}
		if packed[i], err = p.PackPicked(x, [...]int{p.Rows, p.Cols}[i], by); err != nil {
			return err
		}
	}
	return p.MultiplyPicked(packed[0], packed[1], 0, p.Batch.Size())
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
// one after the other; what they multiply to is a segment of one product. So nothing as large as the products of
// single matrices is ever stored.
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

// matrices is the Bounds rule of gather_mm: how many matrices there are on either side.
func matrices(in []tensor.Spec, _ tensor.None, bounds []tensor.Ints) []tensor.Ints {
	for _, x := range in[:2] {
		bounds = append(bounds, tensor.MakeInts([]int{x.Shape[:len(x.Shape)-2].Size()}))
	}
	return bounds
}
