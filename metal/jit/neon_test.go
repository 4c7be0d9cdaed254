package jit

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal/jit/choose"
	"github.com/mlxlua/mlxlua/metal/jit/lanes"
	"github.com/mlxlua/mlxlua/metal/kerneltest"
	"github.com/mlxlua/mlxlua/metal/kir/opt"
	"github.com/mlxlua/mlxlua/metal/msl"
)

// TestInstructionsOfNEON: how many instructions a group of lanes takes on arm64, counted in the code, since no such
// processor is here to be timed. clang 14 -O3 takes 10 for 8 elements of the sum, and some 60 for 64 products.
func TestInstructionsOfNEON(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text string
		wide       bool // 32 lanes, else 16
		most       int  // from the entry to the return: 17 of them once for many groups
	}{
		{"sum", `kernel void k(const device float* a [[buffer(0)]], const device float* b [[buffer(1)]],
			device float* o [[buffer(2)]], uint i [[thread_position_in_grid]]) { o[i] = a[i] + b[i]; }`, true, 73},
		{"product", `kernel void k(const device float* a [[buffer(0)]], const device float* b [[buffer(1)]],
			device float* o [[buffer(2)]], constant int& K [[buffer(3)]], constant int& N [[buffer(4)]],
			uint2 p [[thread_position_in_grid]]) {
			float s[4] = {0, 0, 0, 0};
			const device float* x = a + p.y * 4 * K;
			const device float* y = b + p.x;
			for (int k = 0; k < K; k++) {
				float w = y[k * N];
				for (int r = 0; r < 4; r++) s[r] = fma(x[r * K + k], w, s[r]);
			}
			for (int r = 0; r < 4; r++) o[(p.y * 4 + r) * N + p.x] = s[r];
		}`, false, 225},
		{"gelu", `#include <metal_stdlib>
			kernel void k(const device float* a [[buffer(0)]], device float* o [[buffer(1)]],
			uint i [[thread_position_in_grid]]) {
			float x = a[i];
			o[i] = 0.5f * x * (1.0f + metal::tanh(0.7978845608f * (x + 0.044715f * x * x * x)));
		}`, false, 181},
	} {
		m, err := msl.Compile(msl.Source{Name: "k", Text: c.text}, msl.Options{})
		require.NoError(t, err)
		code, err := choose.Compile(opt.Run(m.Kernels[0], opt.Launch{}), choose.Options{Target: NEON.target(),
			Geometry: lanes.Geometry{Row: true, Aligned: true, Full: true, Wide: c.wide}})
		require.NoError(t, err)
		n, ret := 0, uint32(0xd65f03c0)
		for binary.LittleEndian.Uint32(code.Bytes[4*n:]) != ret {
			n++
		}
		t.Logf("%s: %d", c.name, n)
		require.LessOrEqual(t, n, c.most, c.name)
	}
}

// TestRandomProgramsForNEON: arm64 has instructions for whatever is chosen for random programs. They are compiled on
// any processor; what they do is compared where they run.
func TestRandomProgramsForNEON(t *testing.T) {
	t.Parallel()
	made := 0
	for seed := range uint64(24) {
		c := kerneltest.New(seed, kerneltest.Reach(seed%2))
		m, err := msl.Compile(msl.Source{Name: "k", Text: c.Text}, msl.Options{Float64: true})
		if err != nil {
			continue
		}
		made++
		for _, geo := range []lanes.Geometry{{}, {Row: true, Aligned: true, Full: true}} {
			_, err = choose.Compile(opt.Run(m.Kernels[0], opt.Launch{}), choose.Options{Target: NEON.target(), Geometry: geo})
			require.NoError(t, err, "seed %d", seed)
		}
	}
	require.Greater(t, made, 12)
}
