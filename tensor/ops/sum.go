package ops

import (
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/kernelgen"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

var (
	sum  = tensor.Declare[reduceAttrs]("sum")
	prod = tensor.Declare[reduceAttrs]("prod")
)

func init() {
	defineReduction(sum, reduction{
		Out:     accumulated,
		Reducer: sumReducer,
		Gradient: func(g *tensor.VJP[reduceAttrs]) *tensor.Array {
			cot := kept(g.Ctx, g.Cot[0], g.Attrs, g.In[0].NDim())
			return BroadcastTo(cot, tensor.ShapeOf(g.In[0]), g.Ctx)
		},
		Tangent: func(g *tensor.JVP[reduceAttrs]) *tensor.Array { return sum.One(g.Ctx, g.Attrs, g.Tan[0]) },
	})
	defineReduction(prod, reduction{
		Out: accumulated,
		Reducer: func(d, out tensor.DType) kernelgen.Reducer {
			acc := kit.Accumulator(out)
			return kernelgen.Reducer{Acc: acc.MSL(), Init: kit.One(acc), Load: conversion(d, acc), Combine: "$0 * $1",
				Finish: conversion(acc, out)}
		},
		Gradient: func(g *tensor.VJP[reduceAttrs]) *tensor.Array {
			others := prodOfOthers(g.Ctx, g.In[0], axesOf(g.Attrs, g.In[0].NDim()))
			return Multiply(kept(g.Ctx, g.Cot[0], g.Attrs, g.In[0].NDim()), conj(g.Ctx, others), g.Ctx)
		},
		Tangent: func(g *tensor.JVP[reduceAttrs]) *tensor.Array {
			others := prodOfOthers(g.Ctx, g.In[0], axesOf(g.Attrs, g.In[0].NDim()))
			return sum.One(g.Ctx, g.Attrs, Multiply(g.Tan[0], others, g.Ctx))
		},
	})
}

// accumulated is the dtype of sums and products: 32-bit integers for smaller ones.
func accumulated(d tensor.DType) tensor.DType {
	switch d {
	case tensor.Bool, tensor.Int8, tensor.Int16:
		return tensor.Int32
	case tensor.Uint8, tensor.Uint16:
		return tensor.Uint32
	}
	return d
}

// sumReducer sums elements of dtype d into outputs of dtype out.
func sumReducer(d, out tensor.DType) kernelgen.Reducer {
	acc := kit.Accumulator(out)
	return kernelgen.Reducer{Acc: acc.MSL(), Init: kit.Zero(acc), Load: conversion(d, acc), Combine: "$0 + $1",
		Finish: conversion(acc, out)}
}

// prodOfOthers is for each element of x the product of the others along the axes. Zeros are told apart so that
// nothing is divided by them: beside one zero only its own product is not zero, beside two none is.
func prodOfOthers(c *tensor.Ctx, x *tensor.Array, axes []int) *tensor.Array {
	zero := Number(0, x.DType(), c)
	isZero := Equal(x, zero, c)
	nonZero := Where(isZero, Number(1, x.DType(), c), x, c)
	all := Prod(nonZero, axes, true, c) // of the elements that are not zero
	zeros := Sum(isZero, axes, true, c)
	none := Equal(zeros, Number(0, zeros.DType(), c), c)
	lone := LogicalAnd(isZero, Equal(zeros, Number(1, zeros.DType(), c), c), c)
	return Where(none, Divide(all, nonZero, c), Where(lone, all, zero, c), c)
}

var _ = sig.Reduce("sum", Sum)

// Sum adds a's elements along axes (nil: all; negative ones count from the end). With keepdims the summed
// dimensions stay as ones. The dtype is a's, but 32 bits for smaller integers (int32 for bool); the half types are
// summed in float32. The sum of no elements is 0.
func Sum(a *tensor.Array, axes []int, keepdims bool, ctx ...*tensor.Ctx) *tensor.Array {
	return callReduction(tensor.Call(ctx), sum, a, axes, keepdims)
}

var _ = sig.Reduce("prod", Prod)

// Prod multiplies a's elements along axes (nil: all; negative ones count from the end). With keepdims the reduced
// dimensions stay as ones. The dtype is as for [Sum]; the product of no elements is 1. The gradient is right beside
// zeros too; second derivatives take the zeros as constants.
func Prod(a *tensor.Array, axes []int, keepdims bool, ctx ...*tensor.Ctx) *tensor.Array {
	return callReduction(tensor.Call(ctx), prod, a, axes, keepdims)
}

var _ = sig.Reduce("mean", Mean)

// Mean is the arithmetic mean of a's elements along axes (nil: all; negative ones count from the end). With
// keepdims the reduced dimensions stay as ones. Integers and bool give float32, other dtypes their own; the half
// types are averaged in float32, so that their range does not limit the sum. The mean of no elements is NaN.
func Mean(a *tensor.Array, axes []int, keepdims bool, ctx ...*tensor.Ctx) *tensor.Array {
	c := tensor.Call(ctx)
	if f := checkAxes(c, "mean", a, axes); f != nil {
		return f
	}
	d := a.DType().Inexact()
	x := AsType(a, kit.Accumulator(d), c)
	n := Size(a, axes, x.DType(), c)
	return AsType(Divide(Sum(x, axes, keepdims, c), n, c), d, c)
}
