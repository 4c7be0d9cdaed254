// Package panels multiplies matrices that are packed in panels first: what products of many rows and columns share.
package panels

import (
	_ "embed"
	"math"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
)

//go:embed panels.metal
var panelsText string

//go:embed pairs.metal
var pairsText string

//go:embed product.metal
var productText string

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
	Pairs             bool // both operands are packed in pairs along depth: see UsePairs
}

// Few reports whether the product has few rows, or few columns.
func (p *Product) Few() bool { return kit.Few(p.Run, min(p.Rows, p.Cols)) }

// UsePairs has bfloat16 operands packed in pairs where the device multiplies those in one instruction. The results are
// those of other panels, to the byte.
func (p *Product) UsePairs() { p.Pairs = p.DType == tensor.BFloat16 && p.Info().PairDots }

// Elements are what a product is computed in: the dtype of its elements, and the one to add up in.
type Elements struct {
	T, ACC  tensor.DType
	complex bool
}

// ElementsOf are those of dtype d.
func ElementsOf(d tensor.DType) Elements { return Elements{d, kit.Accumulator(d), d.IsComplex()} }

// ArithmeticMSL is the arithmetic in MSL, for kernels whose variants have Elements.
//
//go:embed arithmetic.metal
var ArithmeticMSL string

// variant chooses a kernel.
type variant struct {
	Elements
	panel, rows  int  // rows of a tile
	whole        bool // what a SIMD-group moves at once fits the registers
	turn, unit   bool
	pairs        bool
	pickA, pickB bool
}

var kernels = kit.NewKernels[variant](ArithmeticMSL, kit.StridesMSL, panelsText, pairsText, productText)

func (p *Product) variant(turn, unit bool) variant {
	return variant{Elements: ElementsOf(p.DType), panel: Width(p.DType), rows: p.tileRows(), whole: p.DType.Size() <= 4,
		turn: turn, unit: unit, pairs: p.Pairs}
}

// Deep checks that a launch of so many threadgroups deep can be numbered.
func (p *Product) Deep(matrices, each int) (int, error) {
	return matrices * each, kit.CheckCount(matrices, math.MaxUint32/each, "matrices of a batch")
}

// Distinct is the part of a batch that holds different matrices.
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
	deep, err := p.Deep(p.Batch.Size(), count)
	if err != nil {
		return err
	}
	tiles, over := p.columns(deep)
	dims := kit.Collapse(p.Batch, sa, sb)
	params := kit.Params{}.Uint(p.Rows, p.Cols, p.Depth, (p.Rows+panel-1)/panel, count, first, 0, tiles, p.block(), dims.N)
	return kernels.Launch(p.Run, p.variant(false, false), "product", over, a.Arg(), b.Arg(),
		p.Out[0].Arg(), params.Arg(), dims.Shape(), dims.Strides(0), dims.Strides(1))
}

// pairSpan is the places along depth for which panels of pairs have one number.
const pairSpan = 128

// words are the elements of a panel.
func (p *Product) words() int {
	if !p.Pairs {
		return p.Depth * Width(p.DType)
	}
	spans := (p.Depth + pairSpan - 1) / pairSpan
	return (p.Depth+1)/2*Width(p.DType) + (spans+15)/16*16
}

// Pack lays the different matrices of an operand of size rows by depth out in panels, and returns the strides of its
// batch in matrices.
func (p *Product) Pack(x Matrices, size int) (packed tensor.Operand, strides []int, err error) {
	kept, steps := Distinct(x)
	if packed, err = p.Room(kept.Size(), (size+Width(p.DType)-1)/Width(p.DType)); err == nil {
		err = p.pack(x, packed, kept, steps, size, nil)
	}
	whole := tensor.Operand{Spec: tensor.Spec{Shape: kept}, View: tensor.View{Strides: kept.Strides()}}
	return packed, kit.BroadcastOperand(whole, p.Batch).Strides, err
}

// Room is memory for so many panels of so many matrices.
func (p *Product) Room(matrices, panels int) (tensor.Operand, error) {
	deep, err := p.Deep(matrices, panels)
	if err != nil {
		return tensor.Operand{}, err
	}
	return p.Temp(tensor.Spec{Shape: tensor.Shape{deep, p.words()}, DType: kit.Accumulator(p.DType)})
}

// CacheOf is how many bytes stay close to what computes them, on the call's device.
func CacheOf(r *tensor.Run) int {
	if n := r.Info().Cache; n > 0 {
		return int(n)
	}
	return 1 << 20
}

// Strip is about how many bytes of panels are made at once for each thread where one matrix has many: they stay in the
// cache until they have been multiplied with.
func (p *Product) Strip() int { return CacheOf(p.Run) / 2 }

// AtOnce is how many of a matrix's panels, of so many bytes each, are made at once: all of one that fits the caches, as
// memory of a matrix's size often serves another one, while that of a strip is memory more; else a strip for each
// thread, so that all have something to multiply.
func (p *Product) AtOnce(panels, bytes int) int {
	threads := max(p.Info().Threads, 1)
	if panels*bytes <= threads*CacheOf(p.Run) {
		return panels
	}
	return min(max(p.Strip()/bytes, 2)*threads, panels)
}

// tileRows are the rows of a tile of sums: as many as registers hold. Processors whose instructions compute few lanes
// have fewer registers as well.
func (p *Product) tileRows() int {
	if p.Info().Lanes >= fewestLanes {
		return 8
	}
	return 4
}

// columns is how many tiles, one below the other, a SIMD-group of product makes, and the grid of so many layers: as
// many as a panel has, which read what they need of b once, or fewer where there would not be four SIMD-groups for
// each thread.
func (p *Product) columns(layers int) (tiles int, over kit.Grid) {
	rows := p.tileRows()
	all := (p.Rows + rows - 1) / rows
	tiles = Width(p.DType) / rows
	for tiles > 1 && (all+tiles-1)/tiles*layers < 4*p.Info().Threads {
		tiles /= 2
	}
	return tiles, kit.Simds((all+tiles-1)/tiles, layers, 1)
}

// block is how many places, or words, along depth a SIMD-group's tiles go through one after the other: what they are of
// a panel stays in the cache meanwhile, beside what they are of the other operand.
func (p *Product) block() int {
	const least = 256
	return max(CacheOf(p.Run)/4/(Width(p.DType)*kit.Accumulator(p.DType).Size()), least)
}

// tiles is a SIMD-group for each 8 rows in so many layers. Threadgroups are smaller where there would be few of them:
// of four for each thread the last ones that run keep the others waiting for a short time only.
func (p *Product) tiles(layers int) kit.Grid {
	simds, each := (p.Rows+7)/8, 8
	for each > 2 && (simds+each-1)/each*layers < 4*p.Info().Threads {
		each /= 2
	}
	return kit.Simds(simds, layers, each)
}

// MultiplyBy multiplies packed rows by b, which it packs: one matrix a strip at a time.
func (p *Product) MultiplyBy(a tensor.Operand, sa []int, b Matrices) error {
	return p.strips(b, func(packed tensor.Operand, sb []int, first, count int) error {
		return p.Multiply(a, packed, sa, sb, first, count)
	})
}

// strips packs b and has multiply called with it, the strides of its batch in matrices, and which of its panels these
// are; one matrix a strip at a time.
func (p *Product) strips(b Matrices, multiply func(packed tensor.Operand, sb []int, first, count int) error) error {
	panel := Width(p.DType)
	count := (p.Cols + panel - 1) / panel
	each := p.AtOnce(count, p.words()*kit.Accumulator(p.DType).Size())
	if p.Batch.Size() > 1 || count <= each {
		pb, sb, err := p.Pack(b, p.Cols)
		if err != nil {
			return err
		}
		return multiply(pb, sb, 0, count)
	}
	pb, err := p.Room(1, each)
	if err != nil {
		return err
	}
	for first := 0; first < count; first += each {
		n := min(each, count-first)
		if err := p.pack(b, pb, nil, nil, min(n*panel, p.Cols-first*panel), nil); err != nil {
			return err
		}
		if err := multiply(pb, make([]int, len(p.Batch)), first, n); err != nil {
			return err
		}
		b.OffsetBytes += int64(n*panel*b.Step[0]) * int64(b.DType.Size())
	}
	return nil
}

// pack packs a batch of matrices, steps of elements apart; with picks those whose numbers stand there.
func (p *Product) pack(x Matrices, packed tensor.Operand, batch tensor.Shape, steps []int, size int,
	picks *tensor.Operand) error {
	panel := Width(p.DType)
	panels := (size + panel - 1) / panel
	deep, err := p.Deep(batch.Size(), panels)
	if err != nil {
		return err
	}
	unit, entry, span := x.Step[0] == 1, "pack", 64
	v := p.variant(!unit && x.Step[1] == 1, unit)
	if p.Pairs {
		entry, span = "pack_pairs", pairSpan
	}
	dims := kit.Collapse(batch, steps)
	if picks != nil {
		dims = kit.Collapse(x.Shape, x.Strides) // a pick counts among all of x, not among those picked
	}
	params := kit.Params{}.Long(x.Step[:]...).Uint(size, p.Depth, panels, dims.N)
	args := []tensor.Arg{x.Arg(), packed.Arg(), params.Arg(), dims.Shape(), dims.Strides(0)}
	if picks != nil {
		v.pickA, args = true, append(args, picks.Arg())
	}
	return kernels.Launch(p.Run, v, entry, kit.Simds((p.Depth+span-1)/span*8, deep, 8), args...)
}
