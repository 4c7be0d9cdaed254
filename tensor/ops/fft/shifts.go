package fft

import (
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

// shiftAttrs are a roll by half of an axis: by the smaller half, and by the greater one for the inverse.
type shiftAttrs struct {
	Axis    int
	Inverse bool
}

var shift = tensor.Declare[shiftAttrs]("fft_shift")

func init() {
	shift.Define(tensor.Rules[shiftAttrs]{
		Shape: func(in []tensor.Spec, a shiftAttrs, outs []tensor.Shape) ([]tensor.Shape, error) {
			_, err := tensor.Axis(a.Axis, len(in[0].Shape))
			return append(outs, in[0].Shape), err
		},
		DType: kit.SameDType[shiftAttrs],
		Run: func(r *tensor.Run, a shiftAttrs) error {
			x, out := r.In[0], r.Out[0]
			axis, err := tensor.Axis(a.Axis, len(x.Shape))
			if err != nil {
				return err
			}
			n := x.Shape[axis]
			k := n / 2
			if a.Inverse {
				k = n - k
			}
			if err := kit.CopyPart(r, out, x, axis, k, 0, n-k); err != nil {
				return err
			}
			return kit.CopyPart(r, out, x, axis, 0, n-k, k)
		},
		Gradient: func(g *tensor.VJP[shiftAttrs]) *tensor.Array {
			return shift.One(g.Ctx, shiftAttrs{g.Attrs.Axis, !g.Attrs.Inverse}, g.Cot[0])
		},
		Tangent: func(g *tensor.JVP[shiftAttrs]) *tensor.Array { return shift.One(g.Ctx, g.Attrs, g.Tan[0]) },
		VMap: func(g *tensor.VMap[shiftAttrs]) ([]*tensor.Array, []int) {
			a := shiftAttrs{pastBatch(g, g.Attrs.Axis), g.Attrs.Inverse}
			return []*tensor.Array{shift.One(g.Ctx, a, ops.FrontOf(g, 0, 0))}, []int{0}
		},
	})
}

// shifted rolls a along axes, one after the other: all if they are nil.
func shifted(c *tensor.Ctx, op string, a *tensor.Array, axes []int, inverse bool) *tensor.Array {
	if f := kit.Unusable(c, op, a); f != nil {
		return f
	}
	if axes == nil {
		axes = kit.Identity(a.NDim())
	}
	for _, axis := range axes {
		a = kit.FailedAs(c, op, shift.One(c, shiftAttrs{axis, inverse}, a))
	}
	return a
}

var _ = sig.Def("fft.fftshift", "a axes:axes?", func(a *sig.Args) any { return FFTShift(a.Array(0), a.Ints(1), a.Ctx) })

// FFTShift rolls a by half of its size along axes (nil: all), so that frequency 0 comes to stand in the middle. An
// axis that is out of range is an error.
func FFTShift(a *tensor.Array, axes []int, ctx ...*tensor.Ctx) *tensor.Array {
	return shifted(tensor.Call(ctx), "fftshift", a, axes, false)
}

var _ = sig.Def("fft.ifftshift", "a axes:axes?", func(a *sig.Args) any {
	return IFFTShift(a.Array(0), a.Ints(1), a.Ctx)
})

// IFFTShift is the inverse of [FFTShift]: for odd sizes they differ.
func IFFTShift(a *tensor.Array, axes []int, ctx ...*tensor.Ctx) *tensor.Array {
	return shifted(tensor.Call(ctx), "ifftshift", a, axes, true)
}

var _ = sig.Def("fft.fftfreq", "n:int d:number=1", func(a *sig.Args) any {
	return FFTFreq(a.Int(0), a.Number(1), a.Ctx)
})

// FFTFreq is the frequencies of the results of [FFT] for n numbers that stand d apart, float32: 0, 1, ... and then the
// negative ones, ..., -1, divided by n d. An n below 1 and a d of 0 are errors.
func FFTFreq(n int, d float64, ctx ...*tensor.Ctx) *tensor.Array {
	c := tensor.Call(ctx)
	if f := badFrequencies(c, "fftfreq", n, d); f != nil {
		return f
	}
	up := ops.Arange(0, float64((n+1)/2), 1, tensor.Float32, c)
	down := ops.Arange(-float64(n/2), 0, 1, tensor.Float32, c)
	return scaled(c, "fftfreq", ops.Concatenate([]*tensor.Array{up, down}, new(int), c), n, d)
}

var _ = sig.Def("fft.rfftfreq", "n:int d:number=1", func(a *sig.Args) any {
	return RFFTFreq(a.Int(0), a.Number(1), a.Ctx)
})

// RFFTFreq is the frequencies of the results of [RFFT]: the first n / 2 + 1 of [FFTFreq], the last one positive.
func RFFTFreq(n int, d float64, ctx ...*tensor.Ctx) *tensor.Array {
	c := tensor.Call(ctx)
	if f := badFrequencies(c, "rfftfreq", n, d); f != nil {
		return f
	}
	return scaled(c, "rfftfreq", ops.Arange(0, float64(n/2+1), 1, tensor.Float32, c), n, d)
}

func badFrequencies(c *tensor.Ctx, op string, n int, d float64) *tensor.Array {
	switch {
	case n <= 0:
		return tensor.Fail(c, op, "n is %d, it must be positive", n)
	case d == 0:
		return tensor.Fail(c, op, "d is 0: numbers that do not stand apart have no frequencies")
	}
	return nil
}

func scaled(c *tensor.Ctx, op string, k *tensor.Array, n int, d float64) *tensor.Array {
	return kit.FailedAs(c, op, ops.Multiply(k, ops.Number(1/(float64(n)*d), tensor.Float32, c), c))
}
