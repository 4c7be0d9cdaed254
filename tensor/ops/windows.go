package ops

import (
	"math"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

// window is m samples of f, which is given the numbers 0 to m-1 and m-1, and computes in float32. No samples are an
// array without elements; one is 1.
func window(c *tensor.Ctx, m int, f func(i *tensor.Array, last float64) *tensor.Array) *tensor.Array {
	switch {
	case m < 1:
		return Zeros(tensor.Sizes(0), tensor.Float32, c)
	case m == 1:
		return Ones(tensor.Sizes(1), tensor.Float32, c)
	}
	return f(Arange(0, float64(m), 1, tensor.Float32, c), float64(m-1))
}

// single is a float32 number.
func single(c *tensor.Ctx, v float64) *tensor.Array {
	return Number(float64(float32(v)), tensor.Float32, c)
}

func defWindow(name string, f func(m int, c ...*tensor.Ctx) *tensor.Array) *sig.Func {
	return sig.Def(name, "M:int", func(a *sig.Args) any { return f(a.Int(0), a.Ctx) })
}

var (
	_ = defWindow("bartlett", Bartlett)
	_ = defWindow("blackman", Blackman)
	_ = defWindow("hamming", Hamming)
	_ = defWindow("hanning", Hanning)
)

// Bartlett is the triangular window of M samples, in float32: 1 - |2i/(M-1) - 1|. None, for an M below 1, are an array
// without elements.
func Bartlett(m int, ctx ...*tensor.Ctx) *tensor.Array {
	c := tensor.Call(ctx)
	return window(c, m, func(i *tensor.Array, last float64) *tensor.Array {
		x := Subtract(Multiply(i, single(c, 2/last), c), single(c, 1), c)
		return Subtract(single(c, 1), Abs(x, c), c)
	})
}

// Blackman is the window 0.42 - 0.5 cos(2 pi i/(M-1)) + 0.08 cos(4 pi i/(M-1)) of M samples, in float32. None, for an
// M below 1, are an array without elements.
func Blackman(m int, ctx ...*tensor.Ctx) *tensor.Array {
	c := tensor.Call(ctx)
	return window(c, m, func(i *tensor.Array, last float64) *tensor.Array {
		x := Cos(Multiply(i, single(c, 2*math.Pi/last), c), c)
		y := Subtract(single(c, 0.34), Multiply(single(c, 0.5), x, c), c)
		return Add(y, Multiply(single(c, 0.16), Square(x, c), c), c)
	})
}

// Hamming is the window 0.54 - 0.46 cos(2 pi i/(M-1)) of M samples, in float32. None, for an M below 1, are an array
// without elements.
func Hamming(m int, ctx ...*tensor.Ctx) *tensor.Array {
	c := tensor.Call(ctx)
	return window(c, m, func(i *tensor.Array, last float64) *tensor.Array {
		x := Cos(Multiply(i, single(c, 2*math.Pi/last), c), c)
		return Subtract(single(c, 0.54), Multiply(single(c, 0.46), x, c), c)
	})
}

// Hanning is the window sin(pi i/(M-1))^2 of M samples, in float32. None, for an M below 1, are an array without
// elements.
func Hanning(m int, ctx ...*tensor.Ctx) *tensor.Array {
	c := tensor.Call(ctx)
	return window(c, m, func(i *tensor.Array, last float64) *tensor.Array {
		return Square(Sin(Multiply(i, single(c, math.Pi/last), c), c), c)
	})
}
