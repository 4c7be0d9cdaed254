package ops

import (
	_ "embed"
	"math"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/kit/panels"
)

//go:embed few_rows.metal
var fewRowsText string

//go:embed matmul.metal
var matmulText string

// shallow is the most depth of which every kernel adds products up in their order: so many fill no SIMD-group.
const shallow = 16

// leastRuns is the least depth that is cut into runs where few rows are multiplied by a matrix that lies by rows.
const leastRuns = 512

// leastDirect and mostDirect are the fewest and the most columns of a small matrix that a kernel for those multiplies
// any number of rows with.
const leastDirect, mostDirect = 8, 64

// matrixProduct is a batch of products of matrices.
type matrixProduct struct {
	panels.Product
	a, b panels.Matrices
}

func runMatmul(r *tensor.Run, _ tensor.None) error {
	a, b, out := r.In[0], r.In[1], r.Out[0]
	batch, ma, mb, err := matrices(a.Shape, b.Shape)
	if err != nil {
		return err
	}
	if ma[1] == 0 {
		return r.Fill(out, make([]byte, out.DType.Size()))
	}
	split := func(o tensor.Operand) panels.Matrices {
		n := len(o.Shape) - 2
		s := panels.Matrices{Operand: o, Step: [2]int(o.Strides[n:])}
		s.Shape, s.Strides = o.Shape[:n], o.Strides[:n]
		s.Operand = kit.BroadcastOperand(s.Operand, batch)
		return s
	}
	size := panels.Product{Run: r, DType: a.DType, Batch: batch, Rows: ma[0], Depth: ma[1], Cols: mb[1]}
	p := &matrixProduct{size, split(a), split(b)}
	p.fold()
	return p.run()
}

// run multiplies by the device's library where that does it, else by kernels for the host's processors where kernels
// run on these, and of few rows on GPUs too; elsewhere by the plain one: the kernels in one order, which the device has
// no part in but for pieces.
func (p *matrixProduct) run() error {
	if done, err := p.called(); done || err != nil {
		return err
	}
	switch {
	case p.Info().Host:
		return p.runOnHost()
	case p.Info().GPU && p.Few() && p.Depth > shallow:
		return p.fewRows()
	}
	return p.plain()
}

// runOnHost chooses a kernel by what is quickest on processors with caches and wide registers.
func (p *matrixProduct) runOnHost() error {
	if p.Few() {
		return p.multiplyFew()
	}
	return p.multiplyMany()
}

// multiplyFew multiplies few rows, or few columns.
func (p *matrixProduct) multiplyFew() error {
	inOrder := p.Depth <= shallow
	if inOrder {
		if done, err := p.Tiny(p.a, p.b); done {
			return err
		}
	}
	if inOrder || p.narrow() {
		if done, err := p.Direct(p.a, p.b); done {
			return err
		}
	}
	return p.fewRows()
}

// multiplyMany multiplies many rows by many columns: all its ways add up in the order of depth.
func (p *matrixProduct) multiplyMany() error {
	if p.PlaceFirst(p.a, p.b) {
		if done, err := p.InPlace(p.a, p.b); done {
			return err
		}
	}
	if done, err := p.Direct(p.a, p.b); done {
		return err
	}
	if done, err := p.InPlace(p.a, p.b); done {
		return err
	}
	return p.panels()
}

// plainVariant chooses a plain kernel.
type plainVariant struct {
	panels.Elements
	panels.Order
}

var plainKernels = kit.NewKernels[plainVariant](panels.ArithmeticMSL, panels.DotMSL, kit.StridesMSL, matmulText)

// plain multiplies by the kernel that any device can run.
func (p *matrixProduct) plain() error {
	v := plainVariant{panels.ElementsOf(p.DType), p.order()}
	deep, over := p.Batch.Size(), kit.Grid{}
	if v.Lanes {
		var err error
		if deep, err = p.Deep(deep, p.Rows); err != nil {
			return err
		}
		over = kit.Simds(p.Cols, deep, 8)
	} else {
		over = kit.Tiles(p.Cols, p.Rows, deep)
	}
	if err := kit.CheckCount(max(deep, p.Rows, p.Cols), math.MaxUint32, "matrices, rows or columns"); err != nil {
		return err
	}
	dims := kit.Collapse(p.Batch, p.a.Strides, p.b.Strides)
	params := kit.Params{}.Long(p.a.Step[:]...).Long(p.b.Step[:]...).Uint(p.Rows, p.Depth, p.Cols, dims.N)
	return plainKernels.Launch(p.Run, v, "matmul", over, p.a.Arg(), p.b.Arg(), p.Out[0].Arg(), params.Arg(), dims.Shape(),
		dims.Strides(0), dims.Strides(1))
}

// order is how the products of an element are added up: in the order of depth where rows and columns are many, or where
// a SIMD-group would find little to share; else as the matrix that few rows (or columns) are multiplied by is best
// read.
func (p *matrixProduct) order() panels.Order {
	if !p.Few() || p.Depth <= shallow || p.narrow() && p.Small() {
		return panels.Order{}
	}
	along := p.b.Step[0]
	if !kit.Few(p.Run, p.Rows) {
		along = p.a.Step[1]
	}
	switch {
	case along == 1:
		return panels.Order{Lanes: true}
	case p.Depth >= leastRuns:
		return panels.Order{Runs: 8}
	}
	return panels.Order{}
}

// narrow reports whether b is a matrix of few columns that lies by rows.
func (p *matrixProduct) narrow() bool {
	return p.Cols >= leastDirect && p.Cols <= mostDirect && p.b.Step[1] == 1
}

// fold makes one product of a batch whose matrices are multiplied by the same one and lie below each other.
func (p *matrixProduct) fold() {
	for i, n := range p.Batch {
		if n != 1 && p.b.Strides[i] != 0 {
			return
		}
	}
	shape, steps := kit.Merge(append(p.Batch.Clone(), p.Rows), append(append([]int(nil), p.a.Strides...), p.a.Step[0]))
	switch len(shape) {
	case 0:
		p.Rows, p.a.Step[0] = 1, 0
	case 1:
		p.Rows, p.a.Step[0] = shape[0], steps[0][0]
	default:
		return
	}
	p.Batch, p.a.Shape, p.a.Strides, p.b.Shape, p.b.Strides = nil, nil, nil, nil, nil
}

// fewRowsVariant chooses a kernel of products of few rows.
type fewRowsVariant struct {
	panels.Elements
	kit.Pieces
	rows, cols, split int
	dots, unit        bool
}

var fewRowsKernels = kit.NewKernels[fewRowsVariant](panels.ArithmeticMSL, kit.PiecesMSL, fewRowsText)

// fewRows multiplies the operand with few rows (or, if there are many, few columns) with the other one where that lies,
// if its elements are neighbours along one of its dimensions; otherwise with a copy of it.
func (p *matrixProduct) fewRows() error {
	x, w, rows, cols, outRow, outCol := p.a, p.b, p.Rows, p.Cols, p.Cols, 1
	if !kit.Few(p.Run, p.Rows) {
		x, w, rows, cols, outRow, outCol = p.b, p.a, p.Cols, p.Rows, 1, p.Cols
		x.Step[0], x.Step[1] = x.Step[1], x.Step[0]
		w.Step[0], w.Step[1] = w.Step[1], w.Step[0]
	}
	order := p.order()
	dots := order.Lanes || p.Depth == 1
	if !dots && w.Step[1] != 1 && cols > 1 {
		var err error
		if w, err = p.copied(w, cols); err != nil {
			return err
		}
	}
	k := fewRowsVariant{Elements: panels.ElementsOf(p.DType), dots: dots, unit: x.Step[1] == 1, split: max(order.Runs, 1),
		rows: 1}
	for k.rows < min(rows, 8) {
		k.rows *= 2
	}
	k.cols = max(8/k.rows, 2)
	if dots {
		k.cols = min(k.cols, 4)
	}
	step := w.Step[0]
	if dots {
		step = w.Step[1]
	}
	if order.Lanes && k.unit && w.Step[0] == 1 {
		k.Pieces = kit.NewPieces(p.Run, p.DType, k.rows, p.Depth, []int{x.Step[0], step}, x.Strides, w.Strides)
	}
	if k.Wide() {
		k.cols = 2
	}
	blocks := (rows + k.rows - 1) / k.rows
	deep, err := p.Deep(p.Batch.Size(), blocks)
	if err != nil {
		return err
	}
	dims := kit.Collapse(p.Batch, x.Strides, w.Strides)
	params := kit.Params{}.Long(x.Step[0], x.Step[1], step, outRow, outCol).Uint(rows, p.Depth, cols, blocks, dims.N)
	over := kit.Simds((cols+k.cols-1)/k.cols, deep, 8)
	if !dots { // the SIMD-groups of a threadgroup share their columns
		over = kit.Simds(k.split, deep, k.split)
		over.Threads.X = (cols + 32*k.cols - 1) / (32 * k.cols) * 32
	}
	return fewRowsKernels.Launch(p.Run, k, "few_rows", over, x.Arg(), w.Arg(), p.Out[0].Arg(), params.Arg(), dims.Shape(),
		dims.Strides(0), dims.Strides(1))
}

// copied is a copy of w, depth by cols, in which columns are neighbours.
func (p *matrixProduct) copied(w panels.Matrices, cols int) (panels.Matrices, error) {
	own := w.Operand
	own.Shape, own.Strides = panels.Distinct(w)
	kept := own.Shape
	own.Shape, own.Strides = append(kept.Clone(), p.Depth, cols), append(own.Strides, w.Step[:]...)
	c, err := p.ContiguousOf(own)
	if err != nil {
		return w, err
	}
	c.Shape, c.Strides = kept, c.Strides[:len(kept)]
	return panels.Matrices{Operand: kit.BroadcastOperand(c, p.Batch), Step: [2]int{cols, 1}}, nil
}

// panels packs both operands and multiplies them.
func (p *matrixProduct) panels() error {
	p.UsePairs()
	b := p.b
	b.Step[0], b.Step[1] = b.Step[1], b.Step[0]
	pa, sa, err := p.Pack(p.a, p.Rows)
	if err != nil {
		return err
	}
	return p.MultiplyBy(pa, sa, b)
}
