package fft_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/cmplx"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/dsp/fourier"

	"github.com/mlxlua/mlxlua/internal/brief"
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/fft"
	"github.com/mlxlua/mlxlua/tensor/optest"
)

func TestMain(m *testing.M) {
	os.Exit(optest.Main(m, map[string]string{
		"fft_fit": "the gradients of fft with a length, and istft's length, go through all its rules",
	}))
}

type array = tensor.Array

var (
	uniform = optest.Uniform(-2, 2)
	tol     = optest.Tol{Rel: 2e-6, Abs: 2e-6}
	dtypes  = []tensor.DType{tensor.Float32, tensor.Complex64, tensor.Int32}
)

// run tests a transform of arrays of those dims: gradients of real numbers and of complex ones.
func run(t *testing.T, name, op string, f func(x *array) *array, dims ...string) {
	for _, d := range []tensor.DType{tensor.Float32, tensor.Complex64} {
		var cases []optest.Case
		for _, dim := range dims {
			cases = append(cases, optest.Case{Inputs: []optest.Input{optest.In(dim, uniform)}})
		}
		optest.Run(t, optest.Subject{Name: fmt.Sprint(name, " ", d), Ops: []string{op}, Cases: cases, Tol: tol,
			DTypes: dtypes, FD: d, Second: true, Fn: optest.One(func(in []*array) *array { return f(in[0]) })})
	}
}

func of(n int) *int { return &n }

func TestOneAxis(t *testing.T) {
	type function = func(a *array, n *int, axis int, norm fft.Norm, ctx ...*tensor.Ctx) *array
	for name, f := range map[string]function{"fft": fft.FFT, "ifft": fft.IFFT, "rfft": fft.RFFT, "irfft": fft.IRFFT} {
		one := func(n *int, axis int, norm fft.Norm) func(x *array) *array {
			return func(x *array) *array { return f(x, n, axis, norm) }
		}
		if name == "irfft" { // of one number makes none
			run(t, name, "fft", one(nil, -2, fft.Ortho), "n,4,m")
		} else {
			run(t, name, "fft", one(nil, -2, fft.Ortho), "2,n,3")
		}
		run(t, name+" odd", "fft", one(of(5), 1, fft.Forward), "2,n")
		run(t, name+" even", "fft", one(of(6), -1, fft.Backward), "n,m")
	}
}

func TestSeveralAxes(t *testing.T) {
	type function = func(a *array, s, axes []int, norm fft.Norm, ctx ...*tensor.Ctx) *array
	for name, f := range map[string]function{"fftn": fft.FFTN, "ifftn": fft.IFFTN, "rfftn": fft.RFFTN,
		"irfftn": fft.IRFFTN, "fft2": fft.FFT2, "ifft2": fft.IFFT2, "rfft2": fft.RFFT2, "irfft2": fft.IRFFT2} {
		run(t, name+" cut", "fft", func(x *array) *array { return f(x, []int{2, 5}, []int{2, 0}, fft.Backward) }, "n,2,m")
	}
}

func TestShifts(t *testing.T) {
	for name, f := range map[string]func(a *array, axes []int, ctx ...*tensor.Ctx) *array{"fftshift": fft.FFTShift,
		"ifftshift": fft.IFFTShift} {
		run(t, name, "fft_shift", func(x *array) *array { return f(x, nil) }, "n,m")
		run(t, name+" axes", "fft_shift", func(x *array) *array { return f(x, []int{-1, 0, 0}) }, "n,2,m")
	}
}

func TestShortTime(t *testing.T) {
	window := func() *array { return ops.FromSlice([]float32{1, 2, 0.5, -1, 3}, []int{5}) }
	yes := true
	for _, mode := range []string{"reflect", "symmetric", "edge", "constant"} {
		run(t, "stft "+mode, "fft_frames", func(x *array) *array {
			return fft.STFT(x, fft.STFTOptions{FFTSize: of(6), Hop: of(2), PadMode: mode, Window: window(), OneSided: &yes})
		}, "2,n", "m")
	}
	run(t, "stft plain", "fft_frames", func(x *array) *array {
		return fft.STFT(x, fft.STFTOptions{FFTSize: of(3), Hop: of(2), NoCenter: true, OneSided: new(bool)})
	}, "n,7")
	for name, o := range map[string]fft.STFTOptions{"": {}, " length": {Length: of(9), Window: window()},
		" all": {NoCenter: true, WinLength: of(4)}} {
		o.FFTSize, o.Hop = of(6), of(2)
		run(t, "istft"+name, "fft_overlap_add", func(x *array) *array { return fft.ISTFT(x, o) }, "4,n", "2,4,m")
	}
	run(t, "istft of all", "fft_overlap_add", func(x *array) *array {
		return fft.ISTFT(x, fft.STFTOptions{FFTSize: of(3), Hop: of(1), OneSided: new(bool)})
	}, "3,n")
}

// numbers are random complex numbers.
func numbers(n int, seed uint64) []complex64 {
	r := rand.New(rand.NewPCG(seed, uint64(n)))
	out := make([]complex64, n)
	for i := range out {
		out[i] = complex(r.Float32()-0.5, r.Float32()-0.5)
	}
	return out
}

// complexOf are the elements of x.
func complexOf(t *testing.T, x *array) []complex128 {
	t.Helper()
	b, err := x.Bytes(context.Background())
	require.NoError(t, err)
	word := func(i int) float64 { return float64(math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))) }
	out := make([]complex128, x.Shape().Size())
	for i := range out {
		if x.DType() == tensor.Float32 {
			out[i] = complex(word(i), 0)
		} else {
			out[i] = complex(word(2*i), word(2*i+1))
		}
	}
	return out
}

// requireNear compares by the largest number of the truth: 4 units in its last place, and more for long transforms.
func requireNear(t *testing.T, want, got []complex128, n int, what string) {
	t.Helper()
	require.Len(t, got, len(want), what)
	size := 0.0
	for _, v := range want {
		size = max(size, cmplx.Abs(v))
	}
	bound := size * 0x1p-24 * 4 * math.Log2(float64(n)+2)
	for i := range want {
		require.LessOrEqual(t, cmplx.Abs(want[i]-got[i]), bound, "%s: number %d is %v, want %v", what, i, got[i], want[i])
	}
}

// TestLengths compares with gonum's transforms in double precision: tiles of all radices, lengths of several
// passes, and those that become convolutions, forward, back, of real numbers, and along a dimension that is not the
// last.
func TestLengths(t *testing.T) {
	brief.OnlyValues(t)
	optest.Open(t)
	lengths := []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 16, 25, 32, 49, 61, 64, 77, 96, 100, 127, 128, 135, 243,
		256, 289, 512, 600, 1009, 1024, 1331, 1536, 2048, 2049, 2187, 3125, 4004, 4096, 5184, 8192, 10007, 65536}
	if testing.Short() {
		lengths = lengths[:len(lengths)-3]
	}
	for _, n := range lengths {
		x := numbers(n, 1)
		in := make([]complex128, n)
		for i, v := range x {
			in[i] = complex128(v)
		}
		plan := fourier.NewCmplxFFT(n)
		want := plan.Coefficients(nil, in)
		back := plan.Sequence(nil, in)
		for i := range back {
			back[i] /= complex(float64(n), 0)
		}
		row := ops.FromSlice(x, []int{n})
		requireNear(t, want, complexOf(t, fft.FFT(row, nil, 0, fft.Backward)), n, fmt.Sprint("fft of ", n))
		requireNear(t, back, complexOf(t, fft.IFFT(row, nil, 0, fft.Backward)), n, fmt.Sprint("ifft of ", n))
		for i, v := range in {
			in[i] = complex(real(v), 0)
		}
		want = plan.Coefficients(nil, in)
		half := fft.RFFT(row, nil, 0, fft.Backward)
		requireNear(t, want[:n/2+1], complexOf(t, half), n, fmt.Sprint("rfft of ", n))
		requireNear(t, in, complexOf(t, fft.IRFFT(half, &n, 0, fft.Backward)), 2*n, fmt.Sprint("irfft of ", n))
	}
}

// TestDimensions compares transforms along the middle of three dimensions with those of rows.
func TestDimensions(t *testing.T) {
	brief.OnlyValues(t)
	optest.Open(t)
	for _, s := range [][3]int{{2, 16, 3}, {1, 60, 40}, {2, 128, 9}, {3, 320, 2}, {1, 320, 33}, {2, 67, 5}, {1, 2100, 2},
		{40, 5, 1}, {3, 1, 7}} {
		x := ops.FromSlice(numbers(s[0]*s[1]*s[2], 2), s[:])
		rows := ops.SwapAxes(x, 1, 2)
		type function func(x *array, axis int) *array
		for name, f := range map[string]function{
			"fft":        func(x *array, axis int) *array { return fft.FFT(x, nil, axis, fft.Backward) },
			"ifft, more": func(x *array, axis int) *array { return fft.IFFT(x, of(s[1]+5), axis, fft.Ortho) },
			"rfft":       func(x *array, axis int) *array { return fft.RFFT(x, nil, axis, fft.Forward) },
			"rfft, less": func(x *array, axis int) *array { return fft.RFFT(x, of(max(s[1]-4, 1)), axis, fft.Forward) },
			"irfft":      func(x *array, axis int) *array { return fft.IRFFT(x, of(2*s[1]-1), axis, fft.Ortho) },
			"irfft, cut": func(x *array, axis int) *array { return fft.IRFFT(x, of(s[1]), axis, fft.Ortho) },
		} {
			want := complexOf(t, ops.SwapAxes(f(rows, 2), 1, 2))
			requireNear(t, want, complexOf(t, f(x, 1)), 2*s[1], fmt.Sprint(name, " of ", s))
		}
	}
}

// TestBack: what istft makes of stft is the signal, for windows that overlap and any of the ways to go on at the ends.
func TestBack(t *testing.T) {
	optest.Open(t)
	x := ops.Real(ops.FromSlice(numbers(2*103, 3), []int{2, 103}))
	window := ops.FromSlice([]float32{0.5, 1, 1.5, 2, 2, 1.5, 1, 0.5}, []int{8})
	for _, mode := range []string{"", "symmetric", "edge", "constant"} {
		for _, n := range []int{10, 11} {
			o := fft.STFTOptions{FFTSize: of(n), Hop: of(3), Window: window, PadMode: mode, Norm: fft.Ortho, Length: of(103)}
			requireNear(t, complexOf(t, x), complexOf(t, fft.ISTFT(fft.STFT(x, o), o)), 64, fmt.Sprint(mode, n))
		}
	}
}

func TestErrors(t *testing.T) {
	optest.Open(t)
	x := optest.Zeros(2, 3)
	for text, y := range map[string]*array{
		"[fft] a scalar has no axis":                               fft.FFT(optest.Zeros(), nil, 0, fft.Backward),
		"[ifft] axis 2 is out of range":                            fft.IFFT(x, nil, 2, fft.Backward),
		"[rfft] lengths are [-1], they must be positive":           fft.RFFT(x, of(-1), 0, fft.Backward),
		"[irfft] a transform of 0 numbers along axis 1":            fft.IRFFT(optest.Zeros(2, 1), nil, 1, fft.Backward),
		"[fft] norm is \"none\"":                                   fft.FFT(x, nil, 0, "none"),
		"[fftn] lengths [2] without axes":                          fft.FFTN(x, []int{2}, nil, fft.Backward),
		"[fft2] 1 length [2] for 2 axes [0 1]":                     fft.FFT2(x, []int{2}, []int{0, 1}, fft.Backward),
		"[irfftn] axes (0, -2) name one axis twice":                fft.IRFFTN(x, nil, []int{0, -2}, fft.Backward),
		"[fftshift] axis 5 is out of range":                        fft.FFTShift(x, []int{5}),
		"[fftfreq] n is 0, it must be positive":                    fft.FFTFreq(0, 1),
		"[rfftfreq] d is 0":                                        fft.RFFTFreq(3, 0),
		"[stft] n_fft is 0, it must be positive":                   fft.STFT(x, fft.STFTOptions{FFTSize: of(0)}),
		"[stft] hop_length is 0, it must be positive (n_fft is 3)": fft.STFT(x, fft.STFTOptions{FFTSize: of(3)}),
		"[stft] frames of 4 numbers are longer than the input, shape (2, 3)": fft.STFT(x,
			fft.STFTOptions{FFTSize: of(4), NoCenter: true}),
		"[stft] a window of 5 numbers is longer than a frame": fft.STFT(x, fft.STFTOptions{FFTSize: of(4), WinLength: of(5)}),
		"[stft] the window has shape (2, 3)":                  fft.STFT(x, fft.STFTOptions{FFTSize: of(4), Window: x}),
		"[stft] pad_mode is \"wrap\"":                         fft.STFT(x, fft.STFTOptions{FFTSize: of(4), PadMode: "wrap"}),
		"[stft] an array of shape (2, 0) has no numbers":      fft.STFT(optest.Zeros(2, 0), fft.STFTOptions{FFTSize: of(4)}),
		"[istft] stft_matrix has shape (3,)":                  fft.ISTFT(optest.Zeros(3), fft.STFTOptions{}),
		"[istft] want one frame of 4 numbers or several": fft.ISTFT(optest.Zeros(3, 0),
			fft.STFTOptions{FFTSize: of(4)}),
		"[istft] the window is complex": fft.ISTFT(optest.Zeros(3, 2), fft.STFTOptions{FFTSize: of(4),
			Window: ops.AsType(optest.Zeros(4), tensor.Complex64)}),
	} {
		optest.Fails(t, y, text)
	}
}
