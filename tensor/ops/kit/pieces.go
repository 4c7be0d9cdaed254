package kit

import (
	_ "embed"

	"github.com/mlxlua/mlxlua/tensor"
)

// PiecesMSL is how lanes of GPUs add up dot products, for kernels whose variants have Pieces, T, ACC, ROWS and COLS.
//
//go:embed pieces.metal
var PiecesMSL string

// Pieces is how a kernel reads rows along their elements: the zero Pieces one by one, else in pieces of 16 bytes.
type Pieces struct {
	wide        bool
	each, ahead int
}

// pieceBytes is the size of a piece: what a lane of a GPU loads by one instruction.
const pieceBytes = 16

// NewPieces are those of products of a SIMD-group's rows with columns along depth, on a device that is a GPU, if depth
// and all strides, in elements, are whole pieces. The order of sums that comes with it is that of PiecesMSL.
func NewPieces(r *tensor.Run, d tensor.DType, rows, depth int, strides ...[]int) Pieces {
	if !r.Info().GPU || !d.IsFloat() || d == tensor.Float64 {
		return Pieces{}
	}
	p := Pieces{wide: true, each: pieceBytes / d.Size(), ahead: max(1, 4/rows)} // what the registers hold
	for _, list := range append(strides, []int{depth}) {
		for _, n := range list {
			if n%p.each != 0 {
				return Pieces{}
			}
		}
	}
	return p
}

// Wide reports whether rows are read in pieces.
func (p Pieces) Wide() bool { return p.wide }
