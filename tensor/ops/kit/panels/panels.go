// Package panels multiplies matrices that are packed in panels first: what products of many rows and columns share.
package panels

import (
	_ "embed"
	"fmt"
	"math"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
)

//go:embed panels.metal
var panelsText string

// Matrices are an operand of a product: a batch of them, of rows and columns that steps of elements apart.
type Matrices struct {
	tensor.Operand // Shape and Strides are those of the batch
	Step           [2]int
}

// Product is a batch of products of matrices whose operands are packed.
type Product struct {
	*tensor.Run
	DType             tensor.DType
	Batch             tensor.Shape
	Rows, Depth, Cols int
}

// kernel chooses a kernel.
type kernel struct {
	dtype      tensor.DType
	turn, unit bool
}

// panelTexts are the kernels' texts.
var panelTexts kit.Texts[kernel]

func (k kernel) text() string {
	flag := map[bool]int{true: 1}
	return Defines(k.dtype) + fmt.Sprintf("#define PANEL %d\n#define TURN %d\n#define UNIT %d\n", Width(k.dtype),
		flag[k.turn], flag[k.unit]) + panelsText
}

// Defines are the macros for elements of dtype d that kernels of products ask for.
func Defines(d tensor.DType) string {
	acc := kit.Accumulator(d)
	text := fmt.Sprintf("#define T %s\n#define ACC %s\n#define ZERO %s\n", d.MSL(), acc.MSL(), kit.Zero(acc))
	if d.IsComplex() {
		return text + "#define FMA(a, b, c) ((a) * (b) + (c))\n" +
			"#define SIMD_SUM(x) complex64_t(simd_sum((x).real), simd_sum((x).imag))\n"
	}
	return text + "#define FMA(a, b, c) metal::fma(a, b, c)\n#define SIMD_SUM(x) simd_sum(x)\n"
}

func (p *Product) kernel(k kernel, entry string) (*metal.Pipeline, error) {
	k.dtype = p.DType
	return p.Kernel(metal.Source{
		Label:   "matmul",
		Text:    panelTexts.Get(k, kernel.text),
		Options: metal.Options{MathMode: metal.MathSafe, Portable: true, Float64: p.DType == tensor.Float64},
	}, entry)
}

// Deep checks that a launch of so many threadgroups deep can be numbered.
func (p *Product) Deep(matrices, each int) (int, error) {
	if matrices > math.MaxUint32/each {
		return 0, fmt.Errorf("a batch of %d matrices in %d parts each, the most parts are %d", matrices, each, math.MaxUint32)
	}
	return matrices * each, nil
}

// Distinct is the part of a Matrices's batch that holds different matrices.
func Distinct(s Matrices) (tensor.Shape, []int) {
	shape, strides := s.Shape.Clone(), append([]int(nil), s.Strides...)
	for i := range shape {
		if strides[i] == 0 {
			shape[i] = 1
		}
	}
	return shape, strides
}

// Width is the rows or columns of a panel: as many sums as fit registers.
func Width(d tensor.DType) int {
	if kit.Accumulator(d).Size() > 4 {
		return 32
	}
	return 64
}

// Multiply multiplies packed operands, whose batches have the strides sa and sb in matrices; b has count panels of a
// matrix from the first on.
func (p *Product) Multiply(a, b tensor.Operand, sa, sb []int, first, count int) error {
	panel := Width(p.DType)
	pipe, err := p.kernel(kernel{}, "product")
	if err != nil {
		return err
	}
	deep, err := p.Deep(p.Batch.Size(), count)
	if err != nil {
		return err
	}
	shape, as, bs := kit.Collapse2(p.Batch, sa, sb)
	params := kit.Numbers(nil, p.Rows, p.Cols, p.Depth, (p.Rows+panel-1)/panel, count, first, len(shape))
	grid := metal.Size{X: 32, Y: (p.Rows + 7) / 8, Z: deep}
	return p.Dispatch(pipe, grid, metal.Size{X: 32, Y: min(grid.Y, 8), Z: 1}, a.Arg(), b.Arg(), p.Out[0].Arg(),
		tensor.Const(params), tensor.Const(shape), tensor.Const(as), tensor.Const(bs))
}

// Pack lays the different matrices of an operand of size rows by depth out in panels, and returns the strides of its
// batch in matrices.
func (p *Product) Pack(x Matrices, size int) (packed tensor.Operand, strides []int, err error) {
	kept, steps := Distinct(x)
	panel := Width(p.DType)
	n, panels := kept.Size(), (size+panel-1)/panel
	deep, err := p.Deep(n, panels)
	if err != nil {
		return packed, nil, err
	}
	packed, err = p.Temp(tensor.Spec{Shape: tensor.Shape{deep, p.Depth, panel}, DType: kit.Accumulator(p.DType)})
	if err != nil {
		return packed, nil, err
	}
	unit := x.Step[0] == 1
	pipe, err := p.kernel(kernel{turn: !unit && x.Step[1] == 1, unit: unit}, "pack")
	if err != nil {
		return packed, nil, err
	}
	shape, ss := kit.Collapse(kept, steps)
	params := kit.Numbers(x.Step[:], size, p.Depth, panels, len(shape))
	grid := metal.Size{X: 32, Y: (p.Depth + 63) / 64 * 8, Z: deep}
	whole := tensor.Operand{Spec: tensor.Spec{Shape: kept}, View: tensor.View{Strides: kept.Strides()}}
	return packed, kit.BroadcastOperand(whole, p.Batch).Strides,
		p.Dispatch(pipe, grid, metal.Size{X: 32, Y: 8, Z: 1}, x.Arg(),
			packed.Arg(), tensor.Const(params), tensor.Const(shape), tensor.Const(ss))
}
