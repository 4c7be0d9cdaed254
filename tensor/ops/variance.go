package ops

import (
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

// variance is the mean of the squared distances to the mean, in the dtype that a is summed in: the caller rounds.
func variance(c *tensor.Ctx, a *tensor.Array, axes []int, keepdims bool, ddof int) *tensor.Array {
	x := AsType(a, kit.Accumulator(a.DType().Inexact()), c)
	x = Subtract(x, Mean(x, axes, true, c), c)
	square := Square(x, c)
	if x.DType().IsComplex() { // the distance is an absolute value, which has no derivative at 0: its square has
		square = Add(Square(Real(x, c), c), Square(Imag(x, c), c), c)
	}
	d := square.DType()
	n := Size(a, axes, d, c)
	if ddof != 0 {
		n = Maximum(Subtract(n, Number(float64(ddof), d, c), c), Number(0, d, c), c)
	}
	return Divide(Sum(square, axes, keepdims, c), n, c)
}

// spread is the dtype of a variance of elements of dtype d.
func spread(d tensor.DType) tensor.DType {
	if d.IsComplex() {
		return tensor.Float32
	}
	return d.Inexact()
}

// varying declares a variance or its root.
func varying(name string, f func(*tensor.Array, []int, bool, int, ...*tensor.Ctx) *tensor.Array) *sig.Func {
	return sig.Def(name, "a axis:axes? keepdims:bool=false ddof:int=0", func(a *sig.Args) any {
		return f(a.Array(0), a.Ints(1), a.Bool(2), a.Int(3), a.Ctx)
	})
}

var _ = varying("var", Var)

// Var is the variance of a's elements along axes (nil: all; negative ones count from the end): the sum of the squared
// distances to their mean, divided by their number less ddof, but by 0 where that is negative. With keepdims the
// reduced dimensions stay as ones. Integers, bool and complex64 give float32, other dtypes their own; the half types
// are computed in float32 and rounded once. The variance of no elements is NaN.
func Var(a *tensor.Array, axes []int, keepdims bool, ddof int, ctx ...*tensor.Ctx) *tensor.Array {
	c := tensor.Call(ctx)
	if f := checkAxes(c, "var", a, axes); f != nil {
		return f
	}
	return AsType(variance(c, a, axes, keepdims, ddof), spread(a.DType()), c)
}

var _ = varying("std", Std)

// Std is the standard deviation of a's elements along axes: the square root of [Var], rounded once. Its gradient is
// NaN where all elements are equal.
func Std(a *tensor.Array, axes []int, keepdims bool, ddof int, ctx ...*tensor.Ctx) *tensor.Array {
	c := tensor.Call(ctx)
	if f := checkAxes(c, "std", a, axes); f != nil {
		return f
	}
	return AsType(Sqrt(variance(c, a, axes, keepdims, ddof), c), spread(a.DType()), c)
}
