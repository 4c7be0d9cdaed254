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
	panel        int
	turn, unit   bool
	pairs        bool
	pickA, pickB bool
}

var kernels = kit.NewKernels[variant](ArithmeticMSL, kit.StridesMSL, panelsText, pairsText, productText)

func (p *Product) variant(turn, unit bool) variant {
	return variant{Elements: ElementsOf(p.DType), panel: Width(p.DType), turn: turn, unit: unit, pairs: p.Pairs}
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
	dims := kit.Collapse(p.Batch, sa, sb)
	params := kit.Params{}.Uint(p.Rows, p.Cols, p.Depth, (p.Rows+panel-1)/panel, count, first, 0, dims.N)
	return kernels.Launch(p.Run, p.variant(false, false), "product", kit.Simds((p.Rows+7)/8, deep, 8), a.Arg(), b.Arg(),
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
	packed, err = p.pack(x, kept, steps, size, nil)
	whole := tensor.Operand{Spec: tensor.Spec{Shape: kept}, View: tensor.View{Strides: kept.Strides()}}
	return packed, kit.BroadcastOperand(whole, p.Batch).Strides, err
}

// pack packs a batch of matrices, steps of elements apart; with picks those whose numbers stand there.
func (p *Product) pack(x Matrices, batch tensor.Shape, steps []int, size int, picks *tensor.Operand) (tensor.Operand,
	error) {
	panel := Width(p.DType)
	panels := (size + panel - 1) / panel
	deep, err := p.Deep(batch.Size(), panels)
	if err != nil {
		return tensor.Operand{}, err
	}
	packed, err := p.Temp(tensor.Spec{Shape: tensor.Shape{deep, p.words()}, DType: kit.Accumulator(p.DType)})
	if err != nil {
		return packed, err
	}
	unit, entry, span := x.Step[0] == 1, "pack", 64
	v := p.variant(!unit && x.Step[1] == 1, unit)
	if p.Pairs {
		entry, span = "pack_pairs", pairSpan
	}
	dims := kit.Collapse(batch, steps)
	params := kit.Params{}.Long(x.Step[:]...).Uint(size, p.Depth, panels, dims.N)
	args := []tensor.Arg{x.Arg(), packed.Arg(), params.Arg(), dims.Shape(), dims.Strides(0)}
	if picks != nil {
		v.pickA, args = true, append(args, picks.Arg())
	}
	return packed, kernels.Launch(p.Run, v, entry, kit.Simds((p.Depth+span-1)/span*8, deep, 8), args...)
}
