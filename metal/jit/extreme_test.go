//go:build (amd64 && (linux || windows)) || (arm64 && linux)

package jit

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal/kerneltest"
	"github.com/mlxlua/mlxlua/metal/launch"
)

// TestExtreme: a choice between two floats by a comparison of them keeps its bits, whichever way round it is written,
// for numbers, both zeros, infinities and NaNs.
func TestExtreme(t *testing.T) {
	t.Parallel()
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	values := []float32{0, float32(math.Copysign(0, -1)), 1, -1, 1.5, inf, -inf, nan, math.Float32frombits(1),
		math.MaxFloat32, 2}
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
