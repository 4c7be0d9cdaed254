package jit

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal/jit/choose"
	"github.com/mlxlua/mlxlua/metal/jit/lanes"
	"github.com/mlxlua/mlxlua/metal/kerneltest"
	"github.com/mlxlua/mlxlua/metal/kir/opt"
	"github.com/mlxlua/mlxlua/metal/msl"
)

// loop is one in machine code for arm64: how many of its instructions are in no other within it.
type loop struct{ from, to, own int }

// loopsOf finds the loops of the code that runs as a rule, which ends with its first return, by branches back. What
// jumps out of it runs seldom, and counts as one instruction.
func loopsOf(code []byte) (loops []loop) {
	word := func(n int) uint32 { return binary.LittleEndian.Uint32(code[4*n:]) }
	signed := func(w uint32, at, bits int) int { return int(int32(w<<(32-at-bits))) >> (32 - bits) }
	const ret = 0xd65f03c0
	for n := 0; word(n) != ret; n++ {
		w, by := word(n), 0
		switch {
		case w>>26 == 0x05: // b
			by = signed(w, 0, 26)
		case w>>24 == 0x54, w>>25&0x3f == 0x1a: // b.cond, cbz, cbnz
			by = signed(w, 5, 19)
		case w>>25&0x3f == 0x1b: // tbz, tbnz
			by = signed(w, 5, 14)
		}
		if by < 0 {
			l := loop{n + by, n, 1 - by}
			for _, in := range loops {
				if in.from >= l.from {
					l.own -= in.own
				}
			}
			loops = append(loops, l)
		}
	}
	return loops
}

// clangs reads testdata/neon.txt: by kernel, clang's instructions an element.
func clangs(t *testing.T) map[string]float64 {
	text, err := os.ReadFile(filepath.Join("testdata", "neon.txt"))
	require.NoError(t, err)
	per := map[string]float64{}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) == 0 || f[0] == "#" {
			continue
		}
		require.Len(t, f, 4, line)
		instructions, err := strconv.ParseFloat(f[2], 64)
		require.NoError(t, err)
		elements, err := strconv.ParseFloat(f[3], 64)
		require.NoError(t, err)
		per[f[0]] += instructions / elements
	}
	return per
}

// TestInstructionsOfNEON counts the instructions an element that kernels take on arm64 in the code, since no such
// processor is here to be timed, and compares with what clang makes for NEON of the same in C, which testdata/neon.txt
// has: at most 1.3 times as many. go test ./metal/jit -run TestInstructionsOfNEON -v prints the table.
func TestInstructionsOfNEON(t *testing.T) {
	t.Parallel()
	per := clangs(t)
	t.Logf("%-10s %8s %8s %6s", "kernel", "here", "clang", "times")
	for _, c := range []struct {
		name, text string
		wide       bool  // 32 lanes, else 16
		elements   []int // how many elements there are to a round of each loop, the inner before the outer
	}{
		{"add", `kernel void k(const device float* a [[buffer(0)]], const device float* b [[buffer(1)]],
			device float* o [[buffer(2)]], uint i [[thread_position_in_grid]]) { o[i] = a[i] + b[i]; }`, true, []int{32, 1024}},
		{"gelu", `#include <metal_stdlib>
			kernel void k(const device float* a [[buffer(0)]], device float* o [[buffer(1)]],
			uint i [[thread_position_in_grid]]) {
			float x = a[i];
			o[i] = 0.5f * x * (1.0f + metal::tanh(0.7978845608f * (x + 0.044715f * x * x * x)));
		}`, false, []int{16, 1024}},
		{"softmax", `#include <metal_stdlib>
			using namespace metal;
			kernel void k(const device float* a [[buffer(0)]], device float* o [[buffer(1)]],
			constant uint& n [[buffer(2)]], uint row [[threadgroup_position_in_grid]],
			uint lane [[thread_index_in_simdgroup]]) {
			const device float* x = a + row * n + lane;
			device float* y = o + row * n + lane;
			float most = -INFINITY, sum = 0;
			for (uint i = 0; i < n; i += 32) most = max(most, x[i]);
			most = simd_max(most);
			for (uint i = 0; i < n; i += 32) sum += exp(x[i] - most);
			float scale = 1 / simd_sum(sum);
			for (uint i = 0; i < n; i += 32) y[i] = exp(x[i] - most) * scale;
		}`, true, []int{32, 32, 32, 1024, 1024}},
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
		}`, false, []int{64, 64 * 256, 64 * 256}},
		{"quantized", qmvText, true, []int{256, 4096, 4096}},
	} {
		m, err := msl.Compile(msl.Source{Name: "k", Text: c.text}, msl.Options{})
		require.NoError(t, err)
		code, err := choose.Compile(opt.Run(m.Kernels[0], opt.Launch{}), choose.Options{Target: NEON.target(),
			Geometry: lanes.Geometry{Row: true, Aligned: true, Full: true, Wide: c.wide}})
		require.NoError(t, err)
		here := 0.0
		loops := loopsOf(code.Bytes)
		require.Len(t, loops, len(c.elements), "%s: %v", c.name, loops)
		for n, l := range loops {
			here += float64(l.own) / float64(c.elements[n])
		}
		t.Logf("%-10s %8.2f %8.2f %6.2f", c.name, here, per[c.name], here/per[c.name])
		require.LessOrEqual(t, here, 1.3*per[c.name], c.name)
	}
}

// TestRandomProgramsForNEON: arm64 has instructions for whatever is chosen for random programs, and the same each time.
// They are compiled on any processor; what they do is compared where they run.
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
			for _, level := range []Level{NEON, NEONBF16} {
				k, o := opt.Run(m.Kernels[0], opt.Launch{}), choose.Options{Target: level.target(), Geometry: geo}
				code, err := choose.Compile(k, o)
				require.NoError(t, err, "seed %d", seed)
				if seed%4 == 0 {
					again, err := choose.Compile(k, o)
					require.NoError(t, err, "seed %d", seed)
					require.True(t, bytes.Equal(code.Bytes, again.Bytes), "seed %d", seed)
				}
			}
		}
	}
	require.Greater(t, made, 12)
}
