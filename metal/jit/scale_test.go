//go:build amd64 && linux

package jit

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal/interp"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// TestScaleByKnownExponents: exponents whose bounds the code is made for, on either side of those bounds, infinite and
// NaN, with factors of all sizes.
func TestScaleByKnownExponents(t *testing.T) {
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
		special := edges(kir.F32)
		for i := range n {
			x, y := math.Float32frombits(r.Uint32()), float32(r.IntN(600)-300)
			if i%4 == 0 {
				x = float32(r.Float64() + 0.5)
			}
			if i%16 == 0 {
				y = math.Float32frombits(uint32(special[i/16%len(special)]))
			}
			binary.LittleEndian.PutUint32(a[4*i:], math.Float32bits(x))
			binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(y))
			if e := float64(c.want(y)); e != e || x != x {
				want[i] = float32(math.NaN())
			} else {
				want[i] = float32(math.Ldexp(float64(x), int(math.Floor(max(-5000, min(5000, e))))))
			}
		}
		for _, level := range []Level{AVX2, AVX512} {
			if best, err := Best(); err != nil || level > best {
				continue
			}
			out := make([]byte, 4*n)
			require.NoError(t, prepare(t, text, level).Run(interp.Launch{Grid: [3]int{n, 1, 1},
				Threadgroup: [3]int{256, 1, 1}, Workers: 1, Buffers: [][]byte{a, b, out}}))
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
	r, _ := kir.Eval(op, kir.ModeNone, kir.F32, kir.F32, uint64(math.Float32bits(a)), uint64(math.Float32bits(b)))
	return kir.ToFloat64(kir.F32, r)
}

// TestSpans: bounds of floats hold what is computed from anything, and are those that the constants say.
func TestSpans(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	numbers := edges(kir.F32)
	bounded := 0
	for range 3000 {
		b := kir.NewBuilder("k")
		constant := func() *kir.Instr {
			return b.Float(float32(r.IntN(9)-4) * math.Float32frombits(uint32(r.IntN(40)+108)<<23))
		}
		x := b.Get(b.Var("x", kir.F32)) // anything
		chain := []*kir.Instr{x}
		for range 1 + r.IntN(6) {
			c, last := constant(), chain[len(chain)-1]
			var i *kir.Instr
			switch r.IntN(7) {
			case 0:
				i = b.Op([]kir.Op{kir.Add, kir.Sub}[r.IntN(2)], kir.F32, last, c)
			case 1:
				i = b.Op(kir.Fma, kir.F32, last, c, constant())
			case 2:
				i = b.Op([]kir.Op{kir.Rint, kir.Floor, kir.Trunc}[r.IntN(3)], kir.F32, last)
			case 3, 4:
				i = b.Op([]kir.Op{kir.Min, kir.Max}[r.IntN(2)], kir.F32, last, c)
			default:
				less := b.Op([]kir.Op{kir.Lt, kir.Gt}[r.IntN(2)], kir.Bool, last, c)
				chain = append(chain, less)
				if i = b.Op(kir.Select, kir.F32, less, c, last); r.IntN(2) == 0 {
					i = b.Op(kir.Select, kir.F32, less, last, c)
				}
			}
			chain = append(chain, i)
		}
		last := chain[len(chain)-1]
		s := spanOf(last, maxSpanDepth)
		if !math.IsInf(s.lo, 0) && !math.IsInf(s.hi, 0) {
			bounded++
		}
		for _, bits := range append(numbers, uint64(r.Uint32()), uint64(r.Uint32())) {
			values := map[*kir.Instr]uint64{x: bits}
			for _, i := range chain[1:] {
				var args []uint64
				for _, a := range i.Args {
					v, ok := values[a]
					if !ok {
						v = a.Imm
					}
					args = append(args, v)
				}
				values[i], _ = kir.Eval(i.Op, i.Mode, i.Type, kir.F32, args...)
			}
			v := kir.ToFloat64(kir.F32, values[last])
			require.True(t, v != v && s.nan || v >= s.lo && v <= s.hi, "%v of %#x is not in %v", v, bits, s)
			require.True(t, !whole(last) || v == math.Trunc(v) || v != v, "%v", v)
		}
	}
	require.Greater(t, bounded, 300)
	b := kir.NewBuilder("k")
	x := b.Op(kir.Max, kir.F32, b.Get(b.Var("x", kir.F32)), b.Float(-150))
	y := b.Op(kir.Min, kir.F32, b.Op(kir.Fma, kir.F32, x, b.Float(2), b.Float(12582912)), b.Float(12583041))
	n := b.Op(kir.Sub, kir.F32, y, b.Float(12582912))
	require.Equal(t, span{-300, 129, false}, spanOf(n, maxSpanDepth))
	require.True(t, whole(n))
	require.False(t, whole(b.Op(kir.Sub, kir.F32, y, b.Float(0.5))))
}
