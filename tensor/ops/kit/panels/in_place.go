package panels

import (
	_ "embed"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
)

//go:embed in_place.metal
var inPlaceText string

// inPlaceVariant chooses a kernel of products of which one operand at least is not packed.
type inPlaceVariant struct {
	Elements
	panel            int
	whole            bool // all of a SIMD-group's sums fit the registers
	alongRows        bool // a's rows are neighbours, not its places along depth
	aPacked, bPacked bool
}

var inPlaceKernels = kit.NewKernels[inPlaceVariant](ArithmeticMSL, kit.StridesMSL, inPlaceText)

const (
	// leastCols is the fewest columns that a SIMD-group makes.
	leastCols = 32
	// muchRows is how many rows, and places along depth, of small matrices are not much.
	muchRows = 64
	// fewestLanes are those that share a check of what they read of a: with fewer, checking takes longer than packing.
	fewestLanes = 16
	// manyProducts is from how many on packing both operands is little beside multiplying them.
	manyProducts = 1 << 29
	fewestDeep   = 256 // along each dimension
)

// left and right are the operands of a product in place: where they lie, or packed.
type left struct {
	tensor.Operand
	batch             []int // strides in elements, as all steps here
	step, panel       int   // from a row to the next; along rows: from a place along depth to the next
	alongRows, packed bool
}

type right struct {
	tensor.Operand
	batch       []int
	step, panel int
	first, cols int // which columns it has, at most
	packed      bool
}

// near reports whether what is read across depth, steps of elements apart, is little enough to stay in place: most of
// what several SIMD-groups read stays in the cache. More is packed, so that neighbours are read one after the other.
func (p *Product) near(step int) bool { return p.Depth*step*p.DType.Size() <= CacheOf(p.Run)*3/2 }

// PlaceFirst reports whether InPlace is likely quicker for small matrices than kernels that lay rows out. The first
// line that holds decides:
//
//	a's rows are neighbours, b's columns are not, b has fewer than leastCols columns   no
//	a's rows and b's columns are neighbours                                            yes
//	a has more than muchRows rows, and as many places along depth                      yes
//	fewestLanes lanes or more, and b's columns are neighbours or fill a panel          yes
//	else                                                                               no
func (p *Product) PlaceFirst(a, b Matrices) bool {
	alongRows, alongCols := a.Step[1] != 1 && a.Step[0] == 1, b.Step[1] == 1
	switch {
	case alongRows && !alongCols && p.Cols < leastCols:
		return false
	case alongRows && alongCols, min(p.Rows, p.Depth) > muchRows:
		return true
	}
	return p.Info().Lanes >= fewestLanes && (alongCols || p.Cols >= Width(p.DType))
}

// InPlace multiplies without packing an operand that can be read where it lies: a if its places along depth are
// neighbours, or its rows are, b (depth by columns) if its columns are. It reports whether there was one.
func (p *Product) InPlace(a, b Matrices) (done bool, err error) {
	if d := p.DType; d.IsComplex() || kit.Accumulator(d) != d {
		return false, nil
	}
	if p.Rows*p.Cols >= (manyProducts+p.Depth-1)/p.Depth && min(p.Rows, p.Cols, p.Depth) >= fewestDeep {
		return false, nil
	}
	aStays := a.Step[1] == 1 && p.Info().Lanes >= fewestLanes || a.Step[0] == 1 && p.near(a.Step[1])
	bStays := b.Step[1] == 1 && p.near(b.Step[0]) && p.Cols >= leastCols
	if !aStays && !bStays {
		return false, nil
	}
	x := left{Operand: a.Operand, batch: a.Strides, step: a.Step[0]}
	switch panel := Width(p.DType); {
	case !aStays:
		packed, batch, err := p.Pack(a, p.Rows)
		if err != nil {
			return true, err
		}
		x = left{packed, p.elements(batch, p.Rows), panel, p.Depth * panel, true, true}
	case a.Step[1] != 1:
		x.step, x.alongRows = a.Step[1], true
	}
	if bStays {
		return true, p.inPlace(x, right{Operand: b.Operand, batch: b.Strides, step: b.Step[0], cols: p.Cols})
	}
	b.Step[0], b.Step[1] = b.Step[1], b.Step[0]
	return true, p.strips(b, func(packed tensor.Operand, batch []int, first, count int) error {
		panel := Width(p.DType)
		return p.inPlace(x, right{packed, p.elements(batch, p.Cols), panel, p.Depth * panel, first * panel,
			min(count*panel, p.Cols-first*panel), true})
	})
}

// elements are strides in packed matrices of size rows or columns as those in elements.
func (p *Product) elements(strides []int, size int) []int {
	panel := Width(p.DType)
	out := make([]int, len(strides))
	for i, s := range strides {
		out[i] = s * ((size + panel - 1) / panel) * panel * p.Depth
	}
	return out
}

// inPlace launches the kernel.
func (p *Product) inPlace(a left, b right) error {
	v := inPlaceVariant{ElementsOf(p.DType), Width(p.DType), p.DType.Size() <= 4, a.alongRows, a.packed, b.packed}
	blocks := (b.cols + leastCols - 1) / leastCols
	deep, err := p.Deep(p.Batch.Size(), blocks)
	if err != nil {
		return err
	}
	dims := kit.Collapse(p.Batch, a.batch, b.batch)
	params := kit.Params{}.Long(a.step, a.panel, b.step, b.panel).Uint(p.Rows, p.Cols, p.Depth, blocks, b.first, dims.N)
	return inPlaceKernels.Launch(p.Run, v, "in_place", p.tiles(deep), a.Arg(), b.Arg(), p.Out[0].Arg(),
		params.Arg(), dims.Shape(), dims.Strides(0), dims.Strides(1))
}
