package panels

import (
	_ "embed"

	"github.com/mlxlua/mlxlua/tensor/ops/kit"
)

//go:embed direct.metal
var directText string

// directVariant chooses a kernel of small matrices.
type directVariant struct {
	Elements
	rows, depth int
	whole, turn bool
}

var directKernels = kit.NewKernels[directVariant](ArithmeticMSL, kit.StridesMSL, directText)

const (
	small      = 1 << 14 // elements of the largest matrix that is read where it lies
	narrow     = 64      // columns: more of many rows gain by panels
	turnedRoom = 1 << 14 // bytes for 32 columns that are turned
)

// Small reports whether b is so small that Direct reads it where it lies.
func (p *Product) Small() bool {
	return p.Depth*p.Cols <= small && (p.Cols <= narrow || max(p.Rows, p.Cols) <= 2*narrow)
}

// Direct multiplies small matrices without packing them, if b's are such.
func (p *Product) Direct(a, b Matrices) (done bool, err error) {
	if !p.Small() {
		return false, nil
	}
	v := directVariant{Elements: ElementsOf(p.DType), whole: p.Cols >= 32, turn: b.Step[1] != 1}
	if v.turn {
		if v.depth = turnedRoom / 32 / kit.Accumulator(p.DType).Size(); p.Depth > v.depth {
			return false, nil
		}
	}
	blocks := (p.Rows + 7) / 8
	v.rows = (p.Rows + blocks - 1) / blocks
	across := (p.Cols + 31) / 32
	deep, err := p.Deep(p.Batch.Size(), across)
	if err != nil {
		return true, err
	}
	each, groups := min(max(deep*blocks/kit.Many(p.Run), 1), blocks), 8
	if v.turn {
		if groups = 1; each < blocks { // others would turn the same columns
			return false, nil
		}
	}
	dims := kit.Collapse(p.Batch, a.Strides, b.Strides)
	params := kit.Params{}.Long(a.Step[0], a.Step[1], b.Step[0], b.Step[1]).
		Uint(p.Rows, p.Cols, p.Depth, across, each, dims.N)
	return true, directKernels.Launch(p.Run, v, "direct", kit.Simds((blocks+each-1)/each, deep, groups), a.Arg(), b.Arg(),
		p.Out[0].Arg(), params.Arg(), dims.Shape(), dims.Strides(0), dims.Strides(1))
}

//go:embed tiny.metal
var tinyText string

// tinyVariant chooses a kernel of matrices of a few elements: steps are elements from one matrix to the next.
type tinyVariant struct {
	Elements
	rows, depth, cols   int
	aRow, aDepth, aStep int
	bDepth, bCol, bStep int
}

var tinyKernels = kit.NewKernels[tinyVariant](ArithmeticMSL, tinyText)

// fewest matrices that Tiny multiplies, and the most elements of one
const (
	tinyBatch = 512
	tinySize  = 64
)

// Tiny multiplies many matrices of a few elements, if they are such.
func (p *Product) Tiny(a, b Matrices) (done bool, err error) {
	n, size := p.Batch.Size(), p.Rows*p.Cols
	if n < tinyBatch || max(size, p.Depth*p.Cols, p.Rows*p.Depth) > tinySize || size > 16 && size%32 != 0 {
		return false, nil
	}
	shape, steps := kit.Merge(p.Batch, a.Strides, b.Strides)
	if len(shape) != 1 {
		return false, nil
	}
	v := tinyVariant{ElementsOf(p.DType), p.Rows, p.Depth, p.Cols, a.Step[0], a.Step[1], steps[0][0], b.Step[0], b.Step[1],
		steps[1][0]}
	for _, s := range []int{v.aRow, v.aDepth, v.aStep, v.bDepth, v.bCol, v.bStep} {
		if s < 0 || s > tinySize {
			return false, nil
		}
	}
	return true, tinyKernels.Launch(p.Run, v, "tiny", kit.Simds((n+31)/32, 1, 1), a.Arg(), b.Arg(), p.Out[0].Arg(),
		kit.Uint(n))
}
