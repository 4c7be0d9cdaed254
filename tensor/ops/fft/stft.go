package fft

import (
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

// STFTOptions are the arguments of [STFT] and [ISTFT]. Zeros and nils stand for the defaults.
type STFTOptions struct {
	FFTSize   *int // numbers of a frame; nil: 2048, for the inverse what the input's frequencies say
	Hop       *int // how far apart frames begin; nil: a quarter of a frame
	WinLength *int // numbers of a window of ones; nil: a frame's
	Window    *tensor.Array
	NoCenter  bool   // frames do not lie around their places: the input is not continued at its ends
	PadMode   string // "reflect", "constant", "edge" or "symmetric"; "" is "reflect"
	Norm      Norm   // "" is Backward
	OneSided  *bool  // half of the frequencies; nil: for real numbers and for the inverse
	Length    *int   // of the inverse's output
}

var paddings = map[string]padding{"": reflectPadding, "reflect": reflectPadding, "constant": zeroPadding,
	"edge": edgePadding, "symmetric": symmetricPadding}

// optional is argument i, nil where there is none.
func optional[T any](a *sig.Args, i int) *T {
	if v, ok := sig.As[T](a, i); ok {
		return &v
	}
	return nil
}

var _ = sig.Def("fft.stft", "x n_fft:int=2048 hop_length:int? win_length:int? window:array? center:bool=true "+
	"pad_mode:string=reflect"+normWords+" onesided:bool?", func(a *sig.Args) any {
	n := a.Int(1)
	return STFT(a.Array(0), STFTOptions{FFTSize: &n, Hop: optional[int](a, 2), WinLength: optional[int](a, 3),
		Window: a.Array(4), NoCenter: !a.Bool(5), PadMode: a.Text(6), Norm: Norm(a.Text(7)),
		OneSided: optional[bool](a, 8)}, a.Ctx)
})

// STFT is the short-time Fourier transform of the rows of x, its last axis: frames of n_fft numbers that begin
// hop_length apart (a quarter of a frame if it is not given), each times the window and then transformed as [RFFT]
// does, or as [FFT] if onesided is false, which it is for complex numbers. The result is (..., frequencies,
// frames), complex64. The window has at most n_fft numbers, and stands in the middle of a frame; if none is given
// it is win_length ones. With center the rows are first continued by half a frame at both ends: mirrored
// ("reflect", or "symmetric" with the number at the end itself), by the number at the end ("edge") or by zeros
// ("constant"). Norm is as in [FFT]. Rows without numbers, rows shorter than a frame, and lengths below 1 are
// errors.
func STFT(x *tensor.Array, o STFTOptions, ctx ...*tensor.Ctx) *tensor.Array {
	const op = "stft"
	c := tensor.Call(ctx)
	if f := kit.Unusable(c, op, x); f != nil {
		return f
	}
	if x.NDim() == 0 {
		return tensor.Fail(c, op, "x is a scalar, want at least one dimension")
	}
	size := 2048
	if o.FFTSize != nil {
		size = *o.FFTSize
	}
	a, window, f := o.frames(c, op, size)
	if f != nil {
		return f
	}
	if !o.NoCenter {
		p, ok := paddings[o.PadMode]
		if !ok {
			return tensor.Fail(c, op, "pad_mode is %q, want \"reflect\", \"symmetric\", \"constant\" or \"edge\"", o.PadMode)
		}
		a.Padding = p
	}
	oneSided := !x.DType().IsComplex()
	if o.OneSided != nil {
		oneSided = *o.OneSided
	}
	if !x.DType().IsComplex() {
		x = ops.AsType(x, tensor.Float32, c)
	}
	y := frames.One(c, a, x)
	if window != nil {
		y = ops.Multiply(y, window, c)
	}
	d := forward
	if oneSided {
		d = realForward
	}
	y = along(c, op, d, y, nil, []int{-1}, o.norm())
	return kit.FailedAs(c, op, ops.SwapAxes(y, -1, -2, c))
}

// norm is Backward if none is given.
func (o STFTOptions) norm() Norm {
	if o.Norm == "" {
		return Backward
	}
	return o.Norm
}

// frames are the frames of so many numbers and the window, nil if it is all ones; or what is wrong with the options.
func (o STFTOptions) frames(c *tensor.Ctx, op string, size int) (framesAttrs, *tensor.Array, *tensor.Array) {
	a := framesAttrs{Size: size, Hop: size / 4}
	if o.Hop != nil {
		a.Hop = *o.Hop
	}
	if size <= 0 {
		return a, nil, tensor.Fail(c, op, "n_fft is %d, it must be positive", size)
	}
	if a.Hop <= 0 {
		return a, nil, tensor.Fail(c, op, "hop_length is %d, it must be positive (n_fft is %d)", a.Hop, size)
	}
	length, w := size, o.Window
	switch {
	case w != nil && w.Err() != nil:
		return a, nil, w
	case w != nil && w.NDim() != 1:
		return a, nil, tensor.Fail(c, op, "the window has shape %v, want one dimension", w.Spec().Shape)
	case w != nil:
		length = w.Shape()[0]
		if d := w.DType(); !d.IsComplex() && d != tensor.Float64 {
			w = ops.AsType(w, tensor.Float32, c)
		}
	case o.WinLength != nil:
		length = *o.WinLength
		if length < 0 {
			return a, nil, tensor.Fail(c, op, "win_length is %d, it must not be negative", length)
		}
	}
	if w == nil && length == size {
		return a, nil, nil
	}
	if length > size {
		return a, nil, tensor.Fail(c, op, "a window of %d numbers is longer than a frame, n_fft is %d", length, size)
	}
	if w == nil {
		w = ops.Ones(tensor.Sizes(length), tensor.Float32, c)
	}
	if length < size {
		before := (size - length) / 2
		zeros := func(n int) *tensor.Array { return ops.Zeros(tensor.Sizes(n), w.DType(), c) }
		w = ops.Concatenate([]*tensor.Array{zeros(before), w, zeros(size - length - before)}, new(int), c)
	}
	return a, w, nil
}

var _ = sig.Def("fft.istft", "stft_matrix n_fft:int? hop_length:int? win_length:int? window:array? center:bool=true"+
	normWords+" onesided:bool? length:int?", func(a *sig.Args) any {
	return ISTFT(a.Array(0), STFTOptions{FFTSize: optional[int](a, 1), Hop: optional[int](a, 2),
		WinLength: optional[int](a, 3), Window: a.Array(4), NoCenter: !a.Bool(5), Norm: Norm(a.Text(6)),
		OneSided: optional[bool](a, 7), Length: optional[int](a, 8)}, a.Ctx)
}, sig.Same("the default of onesided", "where none is given it is true"))

// leastEnvelope is the least sum of squared windows that results are divided by.
const leastEnvelope = 1e-8

// ISTFT is the inverse of [STFT]: the frames of a matrix (..., frequencies, frames) are transformed back,
// multiplied by the window and added up where they stood, and the sums are divided by those of the squared window.
// The result is (..., numbers), of complex numbers the real parts: float32, or float64 if the window is. N_fft is 2
// (frequencies - 1) if it is not given, or without onesided their number. With center half a frame is cut off at
// both ends; with length the result is so long: what is not there is 0. The other arguments are as in [STFT]; a
// complex window is an error.
func ISTFT(x *tensor.Array, o STFTOptions, ctx ...*tensor.Ctx) *tensor.Array {
	const op = "istft"
	c := tensor.Call(ctx)
	if f := kit.Unusable(c, op, x); f != nil {
		return f
	}
	if x.NDim() < 2 {
		return tensor.Fail(c, op, "stft_matrix has shape %v, want (..., frequencies, frames)", x.Spec().Shape)
	}
	d := realInverse
	if o.OneSided != nil && !*o.OneSided {
		d = inverse
	}
	var size int
	switch {
	case o.FFTSize != nil:
		size = *o.FFTSize
	case d == inverse:
		size = x.Shape()[x.NDim()-2]
	default:
		size = 2 * (x.Shape()[x.NDim()-2] - 1)
	}
	a, window, f := o.frames(c, op, size)
	if f != nil {
		return f
	}
	if window != nil && window.DType().IsComplex() {
		return tensor.Fail(c, op, "the window is complex, want a real one")
	}
	y := along(c, op, d, ops.SwapAxes(x, -1, -2, c), []int{size}, []int{-1}, o.norm())
	if y.Err() != nil {
		return y
	}
	y = ops.Real(y, c)
	if window == nil {
		window = ops.Ones(tensor.Sizes(size), tensor.Float32, c)
	}
	sums := overlapAdd.One(c, a, ops.Multiply(y, window, c))
	squares := ops.BroadcastTo(ops.Square(window, c), tensor.Concat(tensor.DimOf(x, -1), tensor.Sizes(size)), c)
	envelope := ops.Maximum(overlapAdd.One(c, a, squares), ops.Number(leastEnvelope, window.DType(), c), c)
	y = ops.Divide(sums, envelope, c)
	from, to := 0, ops.None
	if !o.NoCenter {
		from, to = size/2, -(size / 2)
		if to == 0 {
			to = ops.None
		}
	}
	if o.Length != nil {
		to = ops.None
	}
	y = ops.Slice(y, []ops.Part{ops.Ellipsis(), ops.Span(from, to, 1)}, c)
	if o.Length != nil && y.Err() == nil {
		row := ops.Zeros(tensor.Sizes(max(*o.Length, 0)), y.DType(), c)
		lead := make([]tensor.ShapeArg, y.NDim())
		for i := range lead {
			lead[i] = tensor.DimOf(y, i)
		}
		lead[y.NDim()-1] = tensor.Sizes(max(*o.Length, 0))
		y = fit.One(c, axisAttrs{-1}, y, ops.BroadcastTo(row, tensor.Concat(lead...), c))
	}
	return kit.FailedAs(c, op, y)
}
