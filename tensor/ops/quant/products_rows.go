package quant

import (
	_ "embed"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
)

//go:embed units.metal
var unitsText string

//go:embed rows.metal
var rowsText string

// rowsVariant chooses a kernel for that many rows at once.
type rowsVariant struct {
	productAttrs
	T, ACC tensor.DType
	rows   int
}

// mostRows is how many rows a SIMD-group takes at most: their sums and an unpacked unit fit AVX-512's registers.
const mostRows = 8

var rowsKernels = kit.NewKernels[rowsVariant](packingText, unitsText, rowsText)

// shareRows reports whether rows share what is unpacked of a matrix: several, on the host's processors, where lanes
// share the depth. They give the bytes of rows one by one. Vectors of 16 lanes unpack so quickly that two rows do not
// pay for laying x out.
func (a productAttrs) shareRows(r *tensor.Run, rows int) bool {
	least := 2
	if r.Info().Lanes >= 16 {
		least = 3
	}
	return rows >= least && r.Info().Host && a.blocks() == nil && a.order(r, rows, 1).Lanes
}

// perUnit is how many elements are a unit, as units.metal has it.
func (a productAttrs) perUnit() int {
	words := 1
	switch {
	case a.Bits == 6:
		words = 3
	case 32%a.Bits != 0:
		words = a.Bits
	}
	return words * 32 / a.Bits
}

// multiplyRows multiplies rows with a packed matrix. Neither is empty.
func multiplyRows(r *tensor.Run, a productAttrs, rows int) error {
	out := r.Out[0]
	in, err := a.contiguous(r, 4, 1)
	if err != nil {
		return err
	}
	if err := kit.CheckRows(rows, 1); err != nil {
		return err
	}
	cols, depth := out.Shape[len(out.Shape)-1], in[0].Shape[len(in[0].Shape)-1]
	tiles := (rows + mostRows - 1) / mostRows
	v := rowsVariant{a, out.DType, kit.Accumulator(out.DType), (rows + tiles - 1) / tiles}
	per := a.perUnit()
	planes := per
	if a.Mode == affine {
		planes++
	}
	blocks := (depth/per + 31) / 32
	turned, err := r.Temp(tensor.Spec{Shape: tensor.Shape{rows, blocks, planes, 32}, DType: v.ACC})
	if err != nil {
		return err
	}
	params := kit.Params{}.Uint(rows, depth, cols, depth/a.Group)
	err = rowsKernels.Launch(r, v, "turn", kit.Simds(blocks, rows, 8), in[0].Arg(), turned.Arg(), params.Arg())
	if err != nil {
		return err
	}
	return rowsKernels.Launch(r, v, "product", kit.Simds(cols, tiles, 8), turned.Arg(), in[1].Arg(), in[2].Arg(),
		in[3].Arg(), out.Arg(), params.Arg())
}
