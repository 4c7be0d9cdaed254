package panels

import (
	_ "embed"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
)

//go:embed picked.metal
var numbersText string

type numbersVariant struct {
	index   tensor.DType
	inOrder bool
}

var numberKernels = kit.NewKernels[numbersVariant](kit.IndicesMSL, kit.StridesMSL, numbersText)

// Picks are matrices of an operand that indices pick: one for each matrix of a product.
type Picks struct {
	Of      int            // matrices to pick from
	Numbers tensor.Operand // uint32, of the matrices that are picked
}

// NewPicks reads indices into so many matrices, in the shape of a batch, or with inOrder numbers the places of the
// indices; bad is where those that are out of range are noted.
func NewPicks(r *tensor.Run, index tensor.Operand, inOrder bool, of int, bad tensor.Arg) (Picks, error) {
	n := index.Shape.Size()
	numbers, err := r.Temp(tensor.Spec{Shape: tensor.Shape{n}, DType: tensor.Uint32})
	if err != nil {
		return Picks{}, err
	}
	dims := kit.Collapse(index.Shape, index.Strides)
	args := []tensor.Arg{numbers.Arg(), tensor.Const(int64(of)), dims.Rank(), dims.Shape(), dims.Strides(0), bad}
	if !inOrder {
		args = append(args, index.Arg())
	}
	v := numbersVariant{index.DType, inOrder}
	return Picks{of, numbers}, numberKernels.Launch(r, v, "numbers", kit.Line(n), args...)
}

// Picked is an operand whose matrices are packed: all that there are, of which a product picks, or those that are
// picked.
type Picked struct {
	Packed tensor.Operand
	Picks
	all bool
}

// PackPicked packs matrices that are picked of x, or all of them if these are fewer. The batch of x has one dimension.
func (p *Product) PackPicked(x Matrices, size int, by Picks) (Picked, error) {
	batch, picks, all := p.Batch, &by.Numbers, by.Of <= p.Batch.Size()
	if all {
		batch, picks = x.Shape, nil
	}
	packed, err := p.Room(batch.Size(), (size+Width(p.DType)-1)/Width(p.DType))
	if err == nil {
		err = p.pack(x, packed, batch, x.Strides, size, picks)
	}
	return Picked{packed, by, all}, err
}

// MultiplyPicked multiplies packed operands for count matrices of a batch of one dimension, from start on. The matrices
// of b that are not all are those from start on.
func (p *Product) MultiplyPicked(a, b Picked, start, count int) error {
	panel := Width(p.DType)
	across := (p.Cols + panel - 1) / panel
	deep, err := p.Deep(count, across)
	if err != nil {
		return err
	}
	tiles, over := p.columns(deep)
	dims := kit.Collapse(tensor.Shape{p.Batch.Size()}, []int{1})
	params := kit.Params{}.Uint(p.Rows, p.Cols, p.Depth, (p.Rows+panel-1)/panel, across, 0, start, tiles, p.block(),
		dims.N)
	v := p.variant(false, false)
	v.pickA, v.pickB = a.all, b.all
	args := []tensor.Arg{a.Packed.Arg(), b.Packed.Arg(), p.Out[0].Arg(), params.Arg(), dims.Shape(), dims.Strides(0),
		dims.Strides(0)}
	if v.pickA || v.pickB {
		args = append(args, a.Numbers.Arg(), b.Numbers.Arg())
	}
	return kernels.Launch(p.Run, v, "product", over, args...)
}
