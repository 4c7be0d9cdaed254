//go:build amd64 || arm64

package jit

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal/kerneltest"
	"github.com/mlxlua/mlxlua/metal/kir"
	"github.com/mlxlua/mlxlua/metal/launch"
)

// nearest rounds x to a multiple of a unit, to nearest, ties to even: that of a format with so many bits of fraction
// and such a least exponent. What comes to more than most is infinite. It shares nothing with package kir.
func nearest(x float64, fraction, least int, most float64) float64 {
	if x == 0 || math.IsNaN(x) || math.IsInf(x, 0) {
		return x
	}
	unit := math.Ldexp(1, max(math.Ilogb(x), least)-fraction)
	y := math.Copysign(math.RoundToEven(x/unit)*unit, x)
	if math.Abs(y) > most {
		return math.Copysign(math.Inf(1), x)
	}
	return y
}

func toHalf(x float64) float64 { return nearest(x, 10, -14, 65504) }

func toBfloat(x float64) float64 { return nearest(float64(float32(x)), 7, -126, 0x1.FEp127) }

// sumOf is a*b + c, rounded once to a float.
func sumOf(a, b, c float64) float64 {
	if x := a*b + c; x == 0 || math.IsNaN(x) || math.IsInf(x, 0) {
		return x
	}
	exact := func(x float64) *big.Float { return new(big.Float).SetPrec(2000).SetFloat64(x) }
	f, _ := exact(0).Add(exact(0).Mul(exact(a), exact(b)), exact(c)).Float32()
	return float64(f)
}

// TestHalves: arithmetic on halves and bfloats rounds as it must, however it is done: alone, in chains, with a number
// that all threads share and with constants. All halves meet others, and all bfloats.
func TestHalves(t *testing.T) {
	t.Parallel()
	const n, shared, fixed = 1 << 16, 0.333251953125, 2.5
	type row struct {
		text string
		want func(a, b, c float64, round func(float64) float64) float64
	}
	rows := []row{
		{"a + b", func(a, b, _ float64, r func(float64) float64) float64 { return r(a + b) }},
		{"a - b", func(a, b, _ float64, r func(float64) float64) float64 { return r(a - b) }},
		{"a * b", func(a, b, _ float64, r func(float64) float64) float64 { return r(a * b) }},
		{"a / b", func(a, b, _ float64, r func(float64) float64) float64 { return r(a / b) }},
		{"T(sqrt(a))", func(a, _, _ float64, r func(float64) float64) float64 { return r(math.Sqrt(a)) }},
		{"fma(a, b, a)", func(a, b, _ float64, r func(float64) float64) float64 { return r(sumOf(a, b, a)) }},
		{"T(float(a) * float(b) + 0.1f)", func(a, b, _ float64, r func(float64) float64) float64 {
			return r(sumOf(a, b, float64(float32(0.1))))
		}},
		{"a; T x = a * c; T y = x - T(2.5); r = y / (x + b)", func(a, b, c float64, r func(float64) float64) float64 {
			x := r(a * c)
			return r(r(x-fixed) / r(x+b))
		}},
		{"T(float(a) * float(b) + float(a))", func(a, b, _ float64, r func(float64) float64) float64 {
			return r(sumOf(a, b, a))
		}},
		{"a; for (int k = 0; k < 3; k++) r = r * b + c", func(a, b, c float64, r func(float64) float64) float64 {
			for range 3 {
				a = r(sumOf(a, b, c))
			}
			return a
		}},
	}
	formats := []struct {
		name  string
		round func(float64) float64
		typ   kir.Type
	}{{"half", toHalf, kir.F16}, {"bfloat", toBfloat, kir.BF16}}
	r := rand.New(rand.NewPCG(25, 4))
	a, b := make([]byte, 2*n), make([]byte, 2*n)
	for k, p := range r.Perm(n) {
		binary.LittleEndian.PutUint16(a[2*k:], uint16(k))
		binary.LittleEndian.PutUint16(b[2*k:], uint16(p))
		if k%2 == 0 { // near to each other, where quotients and differences have few bits
			binary.LittleEndian.PutUint16(b[2*k:], uint16(k+r.IntN(64)-32))
		}
	}
	for _, f := range formats {
		number := func(b []byte, k int) float64 {
			return kir.ToFloat64(f.typ, uint64(binary.LittleEndian.Uint16(b[2*k:])))
		}
		c := binary.LittleEndian.AppendUint16(nil, uint16(kir.FromFloat64(f.typ, shared)))
		for _, row := range rows {
			text := fmt.Sprintf(`#include <metal_stdlib>
using namespace metal;
typedef %s T;
kernel void k(const device T* x [[buffer(0)]], const device T* y [[buffer(1)]], constant T& c [[buffer(2)]],
              device T* o [[buffer(3)]], uint i [[thread_position_in_grid]]) {
    T a = x[i], b = y[i];
    T r = %s;
    o[i] = r;
}`, f.name, row.text)
			for _, level := range Levels() {
				out := make([]byte, 2*n)
				require.NoError(t, kerneltest.Run(prepare(t, text, level).NewRun, launch.Launch{Grid: [3]int{n, 1, 1},
					Threadgroup: [3]int{256, 1, 1}, Buffers: [][]byte{a, b, c, out}}, 1))
				for k := range n {
					want, got := row.want(number(a, k), number(b, k), number(c, 0), f.round), number(out, k)
					if math.Float64bits(want) != math.Float64bits(got) && (want == want || got == got) {
						t.Fatalf("%s: %s of %s %g and %g is %g, not %g", level, row.text, f.name, number(a, k), number(b, k), got,
							want)
					}
				}
			}
		}
	}
}

// TestToBfloat: any float becomes the nearest bfloat, ties to even, and a NaN the quiet one with its upper bits.
func TestToBfloat(t *testing.T) {
	t.Parallel()
	const n = 1 << 16
	r := rand.New(rand.NewPCG(25, 5))
	in := make([]byte, 0, 4*n)
	for k := range uint32(n) { // ties and what is next to them, and any
		w := k<<16 | [...]uint32{0x8000, 0x7fff, 0x8001, r.Uint32() & 0xffff, 1, 0}[r.IntN(6)]
		in = binary.LittleEndian.AppendUint32(in, w)
	}
	const text = `kernel void k(const device float* x [[buffer(0)]], device bfloat* o [[buffer(1)]],
uint i [[thread_position_in_grid]]) { o[i] = bfloat(x[i]); }`
	for _, level := range Levels() {
		out := make([]byte, 2*n)
		require.NoError(t, kerneltest.Run(prepare(t, text, level).NewRun, launch.Launch{Grid: [3]int{n, 1, 1},
			Threadgroup: [3]int{256, 1, 1}, Buffers: [][]byte{in, out}}, 1))
		for k := range n {
			w, got := binary.LittleEndian.Uint32(in[4*k:]), binary.LittleEndian.Uint16(out[2*k:])
			want := uint16(w>>16) | 0x40
			if x := math.Float32frombits(w); x == x {
				y := nearest(float64(x), 7, -126, 0x1.FEp127)
				want = uint16(math.Float32bits(float32(y)) >> 16)
			}
			if want != got {
				t.Fatalf("%s: %08x becomes %04x, not %04x", level, w, got, want)
			}
		}
	}
}
