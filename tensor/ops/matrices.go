package ops

import (
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

var _ = sig.Def("identity", "n:int dtype:dtype=float32", func(a *sig.Args) any {
	return Identity(a.Int(0), a.DType(1), a.Ctx)
})

// Identity is a square matrix of n rows with ones on the main diagonal and zeros elsewhere: see [Eye].
func Identity(n int, dtype tensor.DType, ctx ...*tensor.Ctx) *tensor.Array {
	return Eye(n, n, 0, dtype, tensor.Call(ctx))
}

var _ = sig.Def("tri", "n:int m:int? k:int=0 dtype:dtype?", func(a *sig.Args) any {
	cols := a.Int(0)
	if a.Given(1) {
		cols = a.Int(1)
	}
	return Tri(a.Int(0), cols, a.Int(2), a.DTypeOr(3, tensor.Float32), a.Ctx)
})

// Tri is a matrix of n rows and m columns (in a script n, where m is nil) with ones on the k-th diagonal and below it,
// and zeros above (above the main diagonal k is positive); in a script of float32, where dtype is nil. Negative
// numbers of rows or columns are none.
func Tri(n, m, k int, dtype tensor.DType, ctx ...*tensor.Ctx) *tensor.Array {
	c := tensor.Call(ctx)
	n, m = max(n, 0), max(m, 0)
	row := Arange(0, float64(n), 1, tensor.Int64, c)
	col := Arange(float64(-k), float64(m)-float64(k), 1, tensor.Int64, c)
	column := ExpandDims(row, []int{1}, c)
	below := GreaterEqual(column, col, c)
	out := AsType(below, dtype, c)
	tensor.Drop(row, col, column)
	if out != below {
		tensor.Drop(below) // so that the matrix of bools need not be stored
	}
	return out
}
