package ops

import (
	_ "embed"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/tensor"
)

var (
	//go:embed fewrows.metal
	fewRowsText string
	//go:embed panels.metal
	panelsText string
)

// fewRows is the most rows, or columns, of a product whose other operand is read where it lies: packing that one pays
// with more.
const fewRows = 16

// stack is an operand of a product: a batch of matrices, of rows and columns that steps of elements apart.
type stack struct {
	tensor.Operand // Shape and Strides are those of the batch
	step           [2]int
}

// matrixProduct is a batch of products of matrices.
type matrixProduct struct {
	*tensor.Run
	dtype             tensor.DType
	batch             tensor.Shape
	a, b              stack
	rows, depth, cols int
}

func runMatmul(r *tensor.Run, _ tensor.None) error {
	a, b, out := r.In[0], r.In[1], r.Out[0]
	if out.Shape.Size() == 0 {
		return nil
	}
	batch, ma, mb, err := matrices(a.Shape, b.Shape)
	if err != nil {
		return err
	}
	if ma[1] == 0 {
		return r.Fill(out, make([]byte, out.DType.Size()))
	}
	split := func(o tensor.Operand) stack {
		n := len(o.Shape) - 2
		s := stack{o, [2]int(o.Strides[n:])}
		s.Shape, s.Strides = o.Shape[:n], o.Strides[:n]
		s.Operand = broadcastOperand(s.Operand, batch)
		return s
	}
	p := &matrixProduct{r, a.DType, batch, split(a), split(b), ma[0], ma[1], mb[1]}
	p.fold()
	if min(p.rows, p.cols) <= fewRows {
		return p.fewRows()
	}
	return p.panels()
}

// fold makes one product of a batch whose matrices are multiplied by the same one and lie below each other.
func (p *matrixProduct) fold() {
	for i, n := range p.batch {
		if n != 1 && p.b.Strides[i] != 0 {
			return
		}
	}
	shape, steps := collapse(append(p.batch.Clone(), p.rows), append(append([]int(nil), p.a.Strides...), p.a.step[0]))
	if len(shape) != 1 {
		return
	}
	p.rows, p.a.step[0] = int(shape[0]), int(steps[0])
	p.batch, p.a.Shape, p.a.Strides, p.b.Shape, p.b.Strides = nil, nil, nil, nil, nil
}

// productKernel chooses a kernel of products.
type productKernel struct {
	dtype             tensor.DType
	rows, cols, split int // few rows
	dots              bool
	panel             int
	turn, unit        bool
}

// matmulTexts are the kernels' texts.
var matmulTexts texts[productKernel]

func (k productKernel) text() string {
	acc := accumulator(k.dtype)
	text := fmt.Sprintf("#define T %s\n#define ACC %s\n#define ZERO %s\n", k.dtype.MSL(), acc.MSL(), zeroOf(acc))
	if k.dtype.IsComplex() {
		text += "#define FMA(a, b, c) ((a) * (b) + (c))\n" +
			"#define SIMD_SUM(x) complex64_t(simd_sum((x).real), simd_sum((x).imag))\n"
	} else {
		text += "#define FMA(a, b, c) metal::fma(a, b, c)\n#define SIMD_SUM(x) simd_sum(x)\n"
	}
	flag := map[bool]int{true: 1}
	if k.panel > 0 {
		return text + fmt.Sprintf("#define PANEL %d\n#define TURN %d\n#define UNIT %d\n", k.panel, flag[k.turn],
			flag[k.unit]) + panelsText
	}
	text += fmt.Sprintf("#define ROWS %d\n#define COLS %d\n#define SPLIT %d\n#define DOTS %d\n", k.rows, k.cols, k.split,
		flag[k.dots])
	if k.unit {
		text += "#define X_AT(k) (k)\n"
	} else {
		text += "#define X_AT(k) (long(k) * m.x_depth)\n"
	}
	return text + fewRowsText
}

func (p *matrixProduct) kernel(k productKernel, entry string) (*metal.Pipeline, error) {
	k.dtype = p.dtype
	return p.Kernel(metal.Source{
		Label:   "matmul",
		Text:    matmulTexts.get(k, productKernel.text),
		Options: metal.Options{MathMode: metal.MathSafe, Portable: true, Float64: p.dtype == tensor.Float64},
	}, entry)
}

// deep checks that a launch of so many threadgroups deep can be numbered.
func (p *matrixProduct) deep(matrices, each int) (int, error) {
	if matrices > math.MaxUint32/each {
		return 0, fmt.Errorf("a batch of %d matrices in %d parts each, the most parts are %d", matrices, each, math.MaxUint32)
	}
	return matrices * each, nil
}

// number lists numbers of 64 bits and then of 32 as a kernel's constants.
func number(long []int, short ...int) []byte {
	b := make([]byte, 0, 8*len(long)+4*len(short))
	for _, v := range long {
		b = binary.LittleEndian.AppendUint64(b, uint64(v))
	}
	for _, v := range short {
		b = binary.LittleEndian.AppendUint32(b, uint32(v))
	}
	return b
}

// fewRows multiplies the operand with few rows (or columns) with the other one where that lies, if its elements are
// neighbours along one of its dimensions; otherwise with a copy of it.
func (p *matrixProduct) fewRows() error {
	x, w, rows, cols, outRow, outCol := p.a, p.b, p.rows, p.cols, p.cols, 1
	if p.cols < p.rows {
		x, w, rows, cols, outRow, outCol = p.b, p.a, p.cols, p.rows, 1, p.cols
		x.step[0], x.step[1] = x.step[1], x.step[0]
		w.step[0], w.step[1] = w.step[1], w.step[0]
	}
	dots := w.step[0] == 1 || p.depth == 1
	if !dots && w.step[1] != 1 && cols > 1 {
		var err error
		if w, err = p.copied(w, cols); err != nil {
			return err
		}
	}
	k := productKernel{dots: dots, unit: x.step[1] == 1, split: 1, rows: 1}
	for k.rows < min(rows, 8) {
		k.rows *= 2
	}
	k.cols = max(8/k.rows, 2)
	if dots {
		k.cols = min(k.cols, 4)
	}
	if !dots && p.depth >= 512 {
		k.split = 8
	}
	step := w.step[0]
	if dots {
		step = w.step[1]
	}
	blocks := (rows + k.rows - 1) / k.rows
	deep, err := p.deep(p.batch.Size(), blocks)
	if err != nil {
		return err
	}
	pipe, err := p.kernel(k, "few_rows")
	if err != nil {
		return err
	}
	shape, xs, ws := collapse2(p.batch, x.Strides, w.Strides)
	params := number([]int{x.step[0], x.step[1], step, outRow, outCol}, rows, p.depth, cols, blocks, len(shape), 0)
	grid := metal.Size{X: 32, Y: (cols + k.cols - 1) / k.cols, Z: deep}
	group := metal.Size{X: 32, Y: min(grid.Y, 8), Z: 1}
	if !dots {
		grid.X, grid.Y = (cols+32*k.cols-1)/(32*k.cols)*32, k.split
		group.Y = k.split
	}
	return p.Dispatch(pipe, grid, group, x.Arg(), w.Arg(), p.Out[0].Arg(), tensor.Const(params), tensor.Const(shape),
		tensor.Const(xs), tensor.Const(ws))
}

// copied is a copy of w, depth by cols, in which columns are neighbours.
func (p *matrixProduct) copied(w stack, cols int) (stack, error) {
	own := w.Operand
	own.Shape, own.Strides = distinct(w)
	kept := own.Shape
	own.Shape, own.Strides = append(kept.Clone(), p.depth, cols), append(own.Strides, w.step[:]...)
	c, err := p.ContiguousOf(own)
	if err != nil {
		return w, err
	}
	c.Shape, c.Strides = kept, c.Strides[:len(kept)]
	return stack{broadcastOperand(c, p.batch), [2]int{cols, 1}}, nil
}

// distinct is the part of a stack's batch that holds different matrices.
func distinct(s stack) (tensor.Shape, []int) {
	shape, strides := s.Shape.Clone(), append([]int(nil), s.Strides...)
	for i := range shape {
		if strides[i] == 0 {
			shape[i] = 1
		}
	}
	return shape, strides
}

// panelOf is the rows or columns of a panel: as many sums as fit registers.
func panelOf(d tensor.DType) int {
	if accumulator(d).Size() > 4 {
		return 32
	}
	return 64
}

// panels packs both operands and multiplies them.
func (p *matrixProduct) panels() error {
	panel, b := panelOf(p.dtype), p.b
	b.step[0], b.step[1] = b.step[1], b.step[0]
	pa, sa, err := p.pack(p.a, p.rows)
	if err != nil {
		return err
	}
	pb, sb, err := p.pack(b, p.cols)
	if err != nil {
		return err
	}
	return p.multiply(pa, pb, sa, sb, 0, (p.cols+panel-1)/panel)
}

// multiply multiplies packed operands, whose batches have the strides sa and sb in matrices; b has count panels of a
// matrix from the first on.
func (p *matrixProduct) multiply(a, b tensor.Operand, sa, sb []int, first, count int) error {
	panel := panelOf(p.dtype)
	pipe, err := p.kernel(productKernel{panel: panel}, "product")
	if err != nil {
		return err
	}
	deep, err := p.deep(p.batch.Size(), count)
	if err != nil {
		return err
	}
	shape, as, bs := collapse2(p.batch, sa, sb)
	params := number(nil, p.rows, p.cols, p.depth, (p.rows+panel-1)/panel, count, first, len(shape))
	grid := metal.Size{X: 32, Y: (p.rows + 7) / 8, Z: deep}
	return p.Dispatch(pipe, grid, metal.Size{X: 32, Y: min(grid.Y, 8), Z: 1}, a.Arg(), b.Arg(), p.Out[0].Arg(),
		tensor.Const(params), tensor.Const(shape), tensor.Const(as), tensor.Const(bs))
}

// pack lays the different matrices of an operand of size rows by depth out in panels, and returns the strides of its
// batch in matrices.
func (p *matrixProduct) pack(x stack, size int) (packed tensor.Operand, strides []int, err error) {
	kept, steps := distinct(x)
	panel := panelOf(p.dtype)
	n, panels := kept.Size(), (size+panel-1)/panel
	deep, err := p.deep(n, panels)
	if err != nil {
		return packed, nil, err
	}
	packed, err = p.Temp(tensor.Spec{Shape: tensor.Shape{deep, p.depth, panel}, DType: accumulator(p.dtype)})
	if err != nil {
		return packed, nil, err
	}
	unit := x.step[0] == 1
	pipe, err := p.kernel(productKernel{panel: panel, turn: !unit && x.step[1] == 1, unit: unit}, "pack")
	if err != nil {
		return packed, nil, err
	}
	shape, ss := collapse(kept, steps)
	params := number(x.step[:], size, p.depth, panels, len(shape))
	grid := metal.Size{X: 32, Y: (p.depth + 63) / 64 * 8, Z: deep}
	whole := tensor.Operand{Spec: tensor.Spec{Shape: kept}, View: tensor.View{Strides: kept.Strides()}}
	return packed, broadcastOperand(whole, p.batch).Strides, p.Dispatch(pipe, grid, metal.Size{X: 32, Y: 8, Z: 1}, x.Arg(),
		packed.Arg(), tensor.Const(params), tensor.Const(shape), tensor.Const(ss))
}
