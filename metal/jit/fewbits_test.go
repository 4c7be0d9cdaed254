//go:build amd64 || arm64

package jit

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal/kerneltest"
	"github.com/mlxlua/mlxlua/metal/launch"
	"github.com/mlxlua/mlxlua/metal/msl"
)

// TestFewBits: floats of some low bits are those numbers, whatever the other bits are, of every type and for masks
// that are looked up (small ones) and that are not.
func TestFewBits(t *testing.T) {
	t.Parallel()
	const n = 96
	for _, mask := range []uint32{0, 5, 7, 8, 15, 16} {
		for _, from := range []string{"uint", "int"} {
			for _, to := range []string{"float", "half", "bfloat"} {
				text := fmt.Sprintf(`
kernel void k(const device %s* x [[buffer(0)]], device float* o [[buffer(1)]], uint i [[thread_position_in_grid]],
              uint lane [[thread_index_in_simdgroup]]) {
    %[1]s v = x[i] >> 3;
    if (lane != 5) o[i] = float(%s(v & %d)) + float(%[2]s(%[3]d & (v >> 4))) * 64.0f;
}`, from, to, mask)
				m, err := msl.Compile(msl.Source{Name: "k", Text: text}, msl.Options{})
				require.NoError(t, err)
				in, want := make([]byte, 4*n), make([]float32, n)
				for i := range want {
					x := uint32(i) * 0x9e3779b1
					binary.LittleEndian.PutUint32(in[4*i:], x)
					if v := x >> 3; i%32 != 5 {
						want[i] = float32(v&mask) + float32(v>>4&mask)*64
					}
				}
				for _, level := range Levels() {
					p, err := Prepare(m.Kernels[0], m.Files, Options{Level: level})
					if err != nil {
						continue // the processor lacks it
					}
					out := make([]byte, 4*n)
					require.NoError(t, kerneltest.Run(p.NewRun,
						launch.Launch{Grid: [3]int{n, 1, 1}, Threadgroup: [3]int{n, 1, 1},
							Buffers: [][]byte{in, out}}, 1))
					for i, w := range want {
						require.Equal(t, w, math.Float32frombits(binary.LittleEndian.Uint32(out[4*i:])), "%s %d", text, i)
					}
				}
			}
		}
	}
}
