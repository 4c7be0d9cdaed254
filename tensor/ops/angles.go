package ops

import (
	"math"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

var _ = sig.Unary("degrees", Degrees)

// Degrees converts angles from radians to degrees, element by element: see also [Radians]. Integers and bool give
// float32, other dtypes their own.
func Degrees(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return scaledAngle(tensor.Call(ctx), "degrees", a, 180/math.Pi)
}

var _ = sig.Unary("radians", Radians)

// Radians converts angles from degrees to radians, element by element: see also [Degrees]. Integers and bool give
// float32, other dtypes their own.
func Radians(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return scaledAngle(tensor.Call(ctx), "radians", a, math.Pi/180)
}

func scaledAngle(c *tensor.Ctx, op string, a *tensor.Array, by float64) *tensor.Array {
	if f := kit.Unusable(c, op, a); f != nil {
		return f
	}
	d := a.DType().Inexact()
	return Multiply(AsType(a, d, c), Number(by, d, c), c)
}
