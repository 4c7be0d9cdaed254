//go:build amd64 || arm64

package jit

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal/kerneltest"
	"github.com/mlxlua/mlxlua/metal/kir"
	"github.com/mlxlua/mlxlua/metal/launch"
)

// oddFloats are what exponents may be besides numbers of the usual size.
var oddFloats = []float32{0, float32(math.Copysign(0, -1)), 1, -1, 0.5, -0.5, 1.5, -2.5, 126.5, -126.5, 127, 128, -149,
	255.5, 65504, 1e10, -1e10, 1 << 31, -(1 << 31), 1 << 23, 8388607.5, 3e38, -3e38, 1e-40, -1e-45, 0.1,
	float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), math.MaxFloat32, -math.MaxFloat32,
	math.Float32frombits(0x7f800001), math.Float32frombits(0xffc00000)}

// TestScaleByKnownExponents: exponents whose bounds the code is made for, on either side of those bounds, infinite and
// NaN, with factors of all sizes.
func TestScaleByKnownExponents(t *testing.T) {
	t.Parallel()
	const n, big = 2048, float32(12582912)
	for _, c := range []struct {
		exponent string // of y
		want     func(y float32) float32
	}{
		{"fmin(fmax(y, -150.0f) + 12582912.0f, 12583041.0f) - 12582912.0f", func(y float32) float32 {
			return fmin(fmax(y, -150)+big, big+129) - big
		}},
		{"fmin(fmax(y, -150.0f) + 12583039.0f, 12583168.0f) - 12583039.0f", func(y float32) float32 {
			return fmin(fmax(y, -150)+(big+127), big+256) - (big + 127)
		}},
		{"fmin(select(y, -252.0f, y < -252.0f) + 12582912.0f, 12583166.0f) - 12582912.0f", func(y float32) float32 {
			if y < -252 {
				y = -252
			}
			return fmin(y+big, big+254) - big
		}},
		{"fmin(fmax(y, -253.0f) + 12582912.0f, 12583167.0f) - 12582912.0f", func(y float32) float32 {
			return fmin(fmax(y, -253)+big, big+255) - big
		}},
		{"select(fmax(y, -200.0f), 200.0f, y > 200.0f)", func(y float32) float32 { return fmin(fmax(y, -200), 200) }},
		{"select(select(y, 90.0f, y > 90.0f), -90.0f, y < -90.0f)", func(y float32) float32 {
			if y != y {
				return y
			}
			return fmin(fmax(y, -90), 90)
		}},
		{"rint(fmin(y, 300.0f))", func(y float32) float32 { return float32(math.RoundToEven(float64(fmin(y, 300)))) }},
		{"y", func(y float32) float32 { return y }},
	} {
		text := "kernel void k(const device float* a [[buffer(0)]], const device float* b [[buffer(1)]], " +
			"device float* o [[buffer(2)]], uint i [[thread_position_in_grid]]) {\n#pragma clang fp contract(off)\n" +
			"float x = a[i], y = b[i]; o[i] = __metal_scale(x, EXPONENT);\n}"
		text = strings.Replace(text, "EXPONENT", c.exponent, 1)
		r := rand.New(rand.NewPCG(1, 2))
		a, b, want := make([]byte, 4*n), make([]byte, 4*n), make([]float32, n)
		for i := range n {
			x, y := math.Float32frombits(r.Uint32()), float32(r.IntN(600)-300)
			if i%4 == 0 {
				x = float32(r.Float64() + 0.5)
			}
			if i%16 == 0 {
				y = oddFloats[i/16%len(oddFloats)]
			}
			binary.LittleEndian.PutUint32(a[4*i:], math.Float32bits(x))
			binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(y))
			if e := float64(c.want(y)); e != e || x != x {
				want[i] = float32(math.NaN())
			} else {
				want[i] = float32(math.Ldexp(float64(x), int(math.Floor(max(-5000, min(5000, e))))))
			}
		}
		for _, level := range Levels() {
			out := make([]byte, 4*n)
			require.NoError(t, kerneltest.Run(prepare(t, text, level).NewRun, launch.Launch{Grid: [3]int{n, 1, 1},
				Threadgroup: [3]int{256, 1, 1}, Buffers: [][]byte{a, b, out}}, 1))
			for i, w := range want {
				got := math.Float32frombits(binary.LittleEndian.Uint32(out[4*i:]))
				if w != w && got != got {
					continue
				}
				require.Equal(t, math.Float32bits(w), math.Float32bits(got), "%v %s: %x, %x", level, c.exponent,
					a[4*i:4*i+4], b[4*i:4*i+4])
			}
		}
	}
}

// fmin is kir's Min, fmax its Max: a number beats a NaN.
func fmin(a, b float32) float32 { return float32(evalFloat(kir.Min, a, b)) }
func fmax(a, b float32) float32 { return float32(evalFloat(kir.Max, a, b)) }

func evalFloat(op kir.Op, a, b float32) float64 {
	r, _ := kir.Eval(op, kir.F32, kir.F32, uint64(math.Float32bits(a)), uint64(math.Float32bits(b)))
	return kir.ToFloat64(kir.F32, r)
}
