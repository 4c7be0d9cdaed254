package ops

import (
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/kernelgen"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

var (
	all     = tensor.Declare[reduceAttrs]("all")
	anyTrue = tensor.Declare[reduceAttrs]("any")
)

func init() {
	define := func(op *tensor.OpOf[reduceAttrs], init, combine string) {
		defineReduction(op, reduction{
			Out: toBool,
			Reducer: func(d, _ tensor.DType) kernelgen.Reducer {
				return kernelgen.Reducer{Acc: "bool", Init: init, Load: conversion(d, tensor.Bool), Combine: combine,
					Finish: "$0"}
			},
		})
	}
	define(all, "true", "$0 && $1")
	define(anyTrue, "false", "$0 || $1")
}

var _ = sig.Reduce("all", All)

// All reports whether all of a's elements along axes (nil: all axes; negative ones count from the end) are not zero, as
// bool: MLX's all. With keepdims the reduced dimensions stay as ones. Of no elements it is true.
func All(a *tensor.Array, axes []int, keepdims bool, ctx ...*tensor.Ctx) *tensor.Array {
	return callReduction(tensor.Call(ctx), all, a, axes, keepdims)
}

var _ = sig.Reduce("any", Any)

// Any reports whether one of a's elements along axes (nil: all axes; negative ones count from the end) is not zero, as
// bool: MLX's any. With keepdims the reduced dimensions stay as ones. Of no elements it is false.
func Any(a *tensor.Array, axes []int, keepdims bool, ctx ...*tensor.Ctx) *tensor.Array {
	return callReduction(tensor.Call(ctx), anyTrue, a, axes, keepdims)
}
