//go:build amd64 || arm64

package jit

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal/interp"
	"github.com/mlxlua/mlxlua/metal/kerneltest"
	"github.com/mlxlua/mlxlua/metal/launch"
	"github.com/mlxlua/mlxlua/metal/msl"
)

// TestExtreme: a choice between two floats by a comparison of them keeps its bits, whichever way round it is written,
// for numbers, both zeros, infinities and NaNs.
func TestExtreme(t *testing.T) {
	t.Parallel()
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	values := []float32{0, float32(math.Copysign(0, -1)), 1, -1, 1.5, inf, -inf, nan, math.Float32frombits(1),
		math.MaxFloat32, 2, math.Float32frombits(0x7f800001)}
	n := len(values) * len(values)
	x, y := make([]float32, 0, n), make([]float32, 0, n)
	for _, a := range values {
		for _, b := range values {
			x, y = append(x, a), append(y, b)
		}
	}
	pack := func(v []float32) (b []byte) {
		for _, f := range v {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(f))
		}
		return b
	}
	for _, operands := range [][2]string{{"a", "b"}, {"a", "1.5f"}, {"2.0f", "b"}} {
		p, q := operands[0], operands[1]
		for _, c := range []struct {
			op   string
			less bool
			turn bool
		}{{"<", true, false}, {">", false, false}, {"<", true, true}, {">", false, true}} {
			yes, no := p, q
			if c.turn {
				yes, no = q, p
			}
			text := fmt.Sprintf(`
kernel void k(const device float* x [[buffer(0)]], const device float* y [[buffer(1)]], device float* o [[buffer(2)]],
              uint i [[thread_position_in_grid]]) {
    float a = x[i], b = y[i];
    o[i] = %s %s %s ? %s : %s;
}`, p, c.op, q, yes, no)
			for _, level := range Levels() {
				out := make([]byte, 4*n)
				require.NoError(t, kerneltest.Run(prepare(t, text, level).NewRun, launch.Launch{Grid: [3]int{n, 1, 1},
					Threadgroup: [3]int{n, 1, 1}, Buffers: [][]byte{pack(x), pack(y), out}}, 1))
				for i := range n {
					a, b := x[i], y[i]
					if p == "2.0f" {
						a = 2
					}
					if q == "1.5f" {
						b = 1.5
					}
					take := a > b
					if c.less {
						take = a < b
					}
					want := a
					if take == c.turn {
						want = b
					}
					require.Equal(t, math.Float32bits(want), binary.LittleEndian.Uint32(out[4*i:]), "%s %v %v", text, a, b)
				}
			}
		}
	}
}

// TestExtremeOfSums: the smaller and the larger of numbers that were computed are what they are of any, beside
// constants and in loops; of numbers of memory, signalling NaNs too. The reference executor says what they are.
func TestExtremeOfSums(t *testing.T) {
	t.Parallel()
	nan := math.Float32frombits(0x7f800001)
	values := []float32{0, float32(math.Copysign(0, -1)), 1, -1, 1.5, -1.5, float32(math.Inf(1)), float32(math.Inf(-1)),
		float32(math.NaN()), nan, math.Float32frombits(1), 2}
	n := len(values) * len(values)
	var x, y []byte
	for _, a := range values {
		for _, b := range values {
			x = binary.LittleEndian.AppendUint32(x, math.Float32bits(a))
			y = binary.LittleEndian.AppendUint32(y, math.Float32bits(b))
		}
	}
	for _, typ := range []string{"float", "double"} {
		for _, value := range []string{"a", "a + b", "a * b"} {
			for _, what := range []string{"min(s, T(1.5))", "max(T(-1), s)", "min(s, b)", "max(s, a - b)", "min(s, T(0))",
				"s < T(1.5) ? s : T(1.5)", "s < T(1.5) ? T(1.5) : s", "T(-1) > s ? T(-1) : s", "T(0) > s ? T(0) : s",
				"max(min(s, T(1)), T(-1))", "s; for (int k = 0; k < 3; k++) r = max(r, s - T(k) * b)"} {
				text := fmt.Sprintf(`#include <metal_stdlib>
using namespace metal;
typedef %s T;
kernel void k(const device float* x [[buffer(0)]], const device float* y [[buffer(1)]], device float* o [[buffer(2)]],
              uint i [[thread_position_in_grid]]) {
    T a = x[i], b = y[i];
    T s = %s;
    T r = %s;
    o[i] = float(r);
}`, typ, value, what)
				m, err := msl.Compile(msl.Source{Name: "k", Text: text}, msl.Options{Float64: true})
				require.NoError(t, err, text)
				ref, err := interp.Prepare(m.Kernels[0], m.Files)
				require.NoError(t, err)
				run := func(out []byte) launch.Launch {
					return launch.Launch{Grid: [3]int{n, 1, 1}, Threadgroup: [3]int{n, 1, 1}, Buffers: [][]byte{x, y, out}}
				}
				want := make([]byte, 4*n)
				require.NoError(t, kerneltest.Run(ref.NewRun, run(want), 1))
				for _, level := range Levels() {
					p, err := Prepare(m.Kernels[0], m.Files, Options{Level: level})
					require.NoError(t, err)
					got := make([]byte, 4*n)
					require.NoError(t, kerneltest.Run(p.NewRun, run(got), 1))
					for i := range n {
						g, w := binary.LittleEndian.Uint32(got[4*i:]), binary.LittleEndian.Uint32(want[4*i:])
						bothNaN := g<<1 > 0xff<<24 && w<<1 > 0xff<<24
						if g != w && !bothNaN {
							t.Fatalf("%s: %s of %s: %08x, not %08x, of %08x and %08x", level, what, value, g, w,
								binary.LittleEndian.Uint32(x[4*i:]), binary.LittleEndian.Uint32(y[4*i:]))
						}
					}
				}
			}
		}
	}
}
