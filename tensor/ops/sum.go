package ops

import (
	"slices"

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

// prodOfOthers is for each element the product of the others along axes (counted from 0): of those before it and those
// after it. Dividing the whole product by it would be wrong beside zeros, and where the whole overflows.
func prodOfOthers(c *tensor.Ctx, x *tensor.Array, axes []int) *tensor.Array {
	if len(axes) == 0 {
		return OnesLike(x, c)
	}
	d := accumulated(x.DType())
	y, axis := AsType(x, kit.Accumulator(d), c), axes[0]
	rows, order := y, []int(nil)
	if len(axes) > 1 { // the last ones, as one
		for i := range x.NDim() {
			if !slices.Contains(axes, i) {
				order = append(order, i)
			}
		}
		first := len(order)
		order = append(order, axes...)
		y = Transpose(y, order, c)
		rows, axis = Flatten(y, first, -1, c), first
	}
	before := cumProd.One(c, scanAttrs{Axis: axis, Exclusive: true}, rows)
	after := cumProd.One(c, scanAttrs{Axis: axis, Exclusive: true, Reverse: true}, rows)
	others := Multiply(before, after, c)
	if order != nil {
		back := make([]int, len(order))
		for to, from := range order {
			back[from] = to
		}
		others = Transpose(Reshape(others, tensor.ShapeOf(y), c), back, c)
	}
	return AsType(others, d, c)
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
// dimensions stay as ones. The dtype is as for [Sum]; the product of no elements is 1. The gradient and
// the second derivative are right beside zeros too.
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
