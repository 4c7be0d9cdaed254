package ops

import "github.com/mlxlua/mlxlua/tensor"

// Softmax is exp(a) / sum(exp(a)) along axes (nil: all; negative ones count from the end). The largest element is
// subtracted first, so that nothing overflows. Integers and bool give float32, other dtypes their own; the half
// types are computed in float32 and rounded once, which is what MLX's precise asks for. Rows whose largest element
// is infinite are NaN.
func Softmax(a *tensor.Array, axes []int, ctx ...*tensor.Ctx) *tensor.Array {
	c := tensor.Call(ctx)
	if f := checkAxes(c, "softmax", a, axes); f != nil {
		return f
	}
	d := a.DType().Inexact()
	x := AsType(a, accumulator(d), c)
	// The result does not depend on what is subtracted: no gradient flows through the maximum.
	top := StopGradient(callReduction(c, maxOrLowest, x, axes, true), c)
	e := Exp(Subtract(x, top, c), c)
	return AsType(Divide(e, Sum(e, axes, true, c), c), d, c)
}

// LogSumExp is log(sum(exp(a))) along axes (nil: all; negative ones count from the end), computed without overflow.
// With keepdims the reduced dimensions stay as ones. Integers and bool give float32, other dtypes their own; the
// half types are computed in float32 and rounded once. An axis without elements is an error.
func LogSumExp(a *tensor.Array, axes []int, keepdims bool, ctx ...*tensor.Ctx) *tensor.Array {
	c := tensor.Call(ctx)
	if f := checkAxes(c, "logsumexp", a, axes); f != nil {
		return f
	}
	d := a.DType().Inexact()
	x := AsType(a, accumulator(d), c)
	top := StopGradient(Max(x, axes, true, c), c)
	// An infinite maximum must not be subtracted from itself.
	top = Where(IsInf(top, c), Number(0, x.DType(), c), top, c)
	y := Add(Log(Sum(Exp(Subtract(x, top, c), c), axes, true, c), c), top, c)
	if !keepdims {
		dropped, _ := tensor.Axes(axes, a.NDim())
		y = Squeeze(y, dropped, c)
	}
	return AsType(y, d, c)
}
