package ops

import (
	"slices"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

// contiguousAttrs say whether column-major order is good too.
type contiguousAttrs struct{ ColMajor bool }

var contiguous = tensor.Declare[contiguousAttrs]("contiguous")

func init() {
	contiguous.Define(tensor.Rules[contiguousAttrs]{
		Shape: sameShape[contiguousAttrs],
		DType: kit.SameDType[contiguousAttrs],
		View: func(in []tensor.Spec, v tensor.View, a contiguousAttrs, out []tensor.Operand) bool {
			s := in[0].Shape
			if !v.Contiguous(s) && !(a.ColMajor && colMajor(s, v)) {
				return false // the engine copies
			}
			copy(out[0].Strides, v.Strides)
			return true
		},
		Gradient: func(g *tensor.VJP[contiguousAttrs]) *tensor.Array { return g.Cot[0] },
		Tangent: func(g *tensor.JVP[contiguousAttrs]) *tensor.Array {
			return contiguous.One(g.Ctx, g.Attrs, g.Tan[0])
		},
		VMap: BatchFirst(contiguous),
	})
}

// colMajor reports whether elements of that shape lie in column-major order without gaps.
func colMajor(s tensor.Shape, v tensor.View) bool {
	s, v.Strides = slices.Clone(s), slices.Clone(v.Strides)
	slices.Reverse(s)
	slices.Reverse(v.Strides)
	return v.Contiguous(s)
}

var _ = sig.Def("contiguous", "a allow_col_major:bool=false", func(a *sig.Args) any {
	return Contiguous(a.Array(0), a.Bool(1), a.Ctx)
}, sig.Same("the default of allow_col_major", "it changes where elements lie, not the elements"))

// Contiguous is a with its elements in row-major order in memory, without gaps; if allow_col_major is true, also in
// column-major order. It copies only if a lies otherwise. Shape, dtype and elements are a's.
func Contiguous(a *tensor.Array, allowColMajor bool, ctx ...*tensor.Ctx) *tensor.Array {
	return contiguous.One(tensor.Call(ctx), contiguousAttrs{allowColMajor}, a)
}
