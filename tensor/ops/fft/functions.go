package fft

import (
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

// Norm says how transforms are scaled, so that the inverse one of length n undoes the forward one.
type Norm string

const (
	Backward Norm = "backward" // the inverse is multiplied by 1 / n
	Ortho    Norm = "ortho"    // both are multiplied by 1 / sqrt(n)
	Forward  Norm = "forward"  // the forward transform is multiplied by 1 / n
)

// scaling is what a transform in one of the directions is multiplied by.
func (n Norm) scaling(inverse bool) scaling {
	switch {
	case n == Ortho:
		return byRoot
	case inverse == (n == Backward):
		return byInverse
	}
	return byOne
}

// direction is a family of transforms.
type direction struct {
	kind    kind
	inverse bool
}

var (
	forward     = direction{complexToComplex, false}
	inverse     = direction{complexToComplex, true}
	realForward = direction{realToComplex, false}
	realInverse = direction{complexToReal, true}
)

// along transforms a along axes, in the name of the function that the user called: to lengths s where there are such.
func along(c *tensor.Ctx, op string, d direction, a *tensor.Array, s, axes []int, norm Norm) *tensor.Array {
	if f := kit.Unusable(c, op, a); f != nil {
		return f
	}
	if norm != Backward && norm != Ortho && norm != Forward {
		return tensor.Fail(c, op, "norm is %q, want %q, %q or %q", norm, Backward, Ortho, Forward)
	}
	rank := a.NDim()
	if rank == 0 {
		return tensor.Fail(c, op, "a scalar has no axis to transform along")
	}
	if axes == nil {
		if s != nil {
			return tensor.Fail(c, op, "lengths %v without axes", s)
		}
		axes = kit.Identity(rank)
	}
	if s != nil && len(s) != len(axes) {
		return tensor.Fail(c, op, "%s %v for %d axes %v", tensor.Count(len(s), "length"), s, len(axes), axes)
	}
	if _, err := tensor.Axes(axes, rank); err != nil {
		return tensor.Fail(c, op, "%w", err)
	}
	for _, n := range s {
		if n <= 0 {
			return tensor.Fail(c, op, "lengths are %v, they must be positive", s)
		}
	}
	if len(axes) == 0 {
		return a
	}
	one := func(x *tensor.Array, i int, k kind) *tensor.Array {
		t := attrs{Axis: axes[i], Kind: k, Inverse: d.inverse, Scaling: norm.scaling(d.inverse)}
		if s != nil {
			t.N = s[i]
		}
		return transform.One(c, t, x)
	}
	from := tensor.Complex64
	if d.kind == realToComplex {
		from = tensor.Float32
	}
	x, last := ops.AsType(a, from, c), len(axes)-1
	if d.kind != complexToReal {
		x = one(x, last, d.kind)
	}
	for i := last - 1; i >= 0; i-- {
		x = one(x, i, complexToComplex)
	}
	if d.kind == complexToReal {
		x = one(x, last, d.kind)
	}
	return kit.FailedAs(c, op, x)
}

// onAxis transforms a along one axis, to length n if that is not nil.
func onAxis(c *tensor.Ctx, op string, d direction, a *tensor.Array, n *int, axis int, norm Norm) *tensor.Array {
	var s []int
	if n != nil {
		s = []int{*n}
	}
	return along(c, op, d, a, s, []int{axis}, norm)
}

const (
	normWords  = " norm:'backward'|'ortho'|'forward'=backward"
	signature  = "a n:int? axis:int=-1" + normWords
	signature2 = "a s:ints? axes:axes=[-2,-1]" + normWords
	signatureN = "a s:ints? axes:axes?" + normWords
)

// defineOn, defineAlong declare functions of one axis and of several.
func defineOn(name string,
	f func(a *tensor.Array, n *int, axis int, norm Norm, ctx ...*tensor.Ctx) *tensor.Array) *sig.Func {
	return sig.Def("fft."+name, signature, func(a *sig.Args) any {
		var n *int
		if v, ok := sig.As[int](a, 1); ok {
			n = &v
		}
		return f(a.Array(0), n, a.Int(2), Norm(a.Text(3)), a.Ctx)
	})
}

func defineAlong(name, parameters string,
	f func(a *tensor.Array, s, axes []int, norm Norm, ctx ...*tensor.Ctx) *tensor.Array) *sig.Func {
	return sig.Def("fft."+name, parameters, func(a *sig.Args) any {
		return f(a.Array(0), a.Ints(1), a.Ints(2), Norm(a.Text(3)), a.Ctx)
	})
}

var _ = defineOn("fft", FFT)

// FFT is the discrete Fourier transform of a's numbers along an axis: output k is the sum of a[t] exp(-2 pi i k t /
// n) over t, complex64. It has as many numbers as the input, or n if that is given: then the input is cut, or
// followed by zeros. Norm "backward" leaves the sums as they are, "ortho" divides them by sqrt(n), "forward" by n.
// All lengths are fast; those with prime factors above 31 become convolutions. Float64 is computed in float32 too,
// as in MLX. A scalar, a length below 1 and an axis out of range are errors.
func FFT(a *tensor.Array, n *int, axis int, norm Norm, ctx ...*tensor.Ctx) *tensor.Array {
	return onAxis(tensor.Call(ctx), "fft", forward, a, n, axis, norm)
}

var _ = defineOn("ifft", IFFT)

// IFFT is the inverse of [FFT]: the sum of a[k] exp(2 pi i k t / n) over k, complex64. With norm "backward" it is
// divided by n, with "ortho" by sqrt(n), with "forward" not at all.
func IFFT(a *tensor.Array, n *int, axis int, norm Norm, ctx ...*tensor.Ctx) *tensor.Array {
	return onAxis(tensor.Call(ctx), "ifft", inverse, a, n, axis, norm)
}

var _ = defineOn("rfft", RFFT)

// RFFT is the first half of the [FFT] of real numbers, n / 2 + 1 of them: the rest is its mirror image, conjugated. Of
// complex numbers the real parts count.
func RFFT(a *tensor.Array, n *int, axis int, norm Norm, ctx ...*tensor.Ctx) *tensor.Array {
	return onAxis(tensor.Call(ctx), "rfft", realForward, a, n, axis, norm)
}

var _ = defineOn("irfft", IRFFT)

// IRFFT is the inverse of [RFFT]: n real numbers, float32, of the half of a spectrum. Without n they are 2 (m - 1)
// for a half of m numbers. A half of another length than n / 2 + 1 is cut or followed by zeros; the imaginary parts
// of those that stand for themselves (the first, and for even n the last) do not count.
func IRFFT(a *tensor.Array, n *int, axis int, norm Norm, ctx ...*tensor.Ctx) *tensor.Array {
	return onAxis(tensor.Call(ctx), "irfft", realInverse, a, n, axis, norm)
}

var _ = defineAlong("fftn", signatureN, FFTN)

// FFTN is [FFT] along several axes, one after the other: all if axes is nil. S has the length for each of them, and
// needs axes. An axis that occurs twice is an error. Along no axes a stays as it is.
func FFTN(a *tensor.Array, s, axes []int, norm Norm, ctx ...*tensor.Ctx) *tensor.Array {
	return along(tensor.Call(ctx), "fftn", forward, a, s, axes, norm)
}

var _ = defineAlong("ifftn", signatureN, IFFTN)

// IFFTN is the inverse of [FFTN]: [IFFT] along several axes.
func IFFTN(a *tensor.Array, s, axes []int, norm Norm, ctx ...*tensor.Ctx) *tensor.Array {
	return along(tensor.Call(ctx), "ifftn", inverse, a, s, axes, norm)
}

var _ = defineAlong("rfftn", signatureN, RFFTN)

// RFFTN is [RFFT] along the last of several axes, then [FFT] along the others; axes and s are as in [FFTN].
func RFFTN(a *tensor.Array, s, axes []int, norm Norm, ctx ...*tensor.Ctx) *tensor.Array {
	return along(tensor.Call(ctx), "rfftn", realForward, a, s, axes, norm)
}

var _ = defineAlong("irfftn", signatureN, IRFFTN)

// IRFFTN is the inverse of [RFFTN]: [IFFT] along all axes but the last one, then [IRFFT] along that; axes and s are
// as in [FFTN], s in numbers of the result.
func IRFFTN(a *tensor.Array, s, axes []int, norm Norm, ctx ...*tensor.Ctx) *tensor.Array {
	return along(tensor.Call(ctx), "irfftn", realInverse, a, s, axes, norm)
}

var _ = defineAlong("fft2", signature2, FFT2)

// FFT2 is [FFTN] along two axes, in scripts the last two if none are given.
func FFT2(a *tensor.Array, s, axes []int, norm Norm, ctx ...*tensor.Ctx) *tensor.Array {
	return along(tensor.Call(ctx), "fft2", forward, a, s, axes, norm)
}

var _ = defineAlong("ifft2", signature2, IFFT2)

// IFFT2 is [IFFTN] along two axes, in scripts the last two if none are given.
func IFFT2(a *tensor.Array, s, axes []int, norm Norm, ctx ...*tensor.Ctx) *tensor.Array {
	return along(tensor.Call(ctx), "ifft2", inverse, a, s, axes, norm)
}

var _ = defineAlong("rfft2", signature2, RFFT2)

// RFFT2 is [RFFTN] along two axes, in scripts the last two if none are given.
func RFFT2(a *tensor.Array, s, axes []int, norm Norm, ctx ...*tensor.Ctx) *tensor.Array {
	return along(tensor.Call(ctx), "rfft2", realForward, a, s, axes, norm)
}

var _ = defineAlong("irfft2", signature2, IRFFT2)

// IRFFT2 is [IRFFTN] along two axes, in scripts the last two if none are given.
func IRFFT2(a *tensor.Array, s, axes []int, norm Norm, ctx ...*tensor.Ctx) *tensor.Array {
	return along(tensor.Call(ctx), "irfft2", realInverse, a, s, axes, norm)
}
