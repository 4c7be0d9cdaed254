//go:build amd64 || arm64

package jit

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/internal/serial"
	"github.com/mlxlua/mlxlua/metal/interp"
	"github.com/mlxlua/mlxlua/metal/jit/lanes"
	"github.com/mlxlua/mlxlua/metal/kerneltest"
	"github.com/mlxlua/mlxlua/metal/kir"
	"github.com/mlxlua/mlxlua/metal/launch"
)

// specializedText reads by strides of 64 bits, and by the loop that MLX documents for strided inputs.
const specializedText = `
kernel void k(device const float *in [[buffer(0)]], constant const int *shape [[buffer(1)]],
              constant const int64_t *strides [[buffer(2)]], constant const int &ndim [[buffer(3)]],
              device float *out [[buffer(4)]], uint i [[thread_position_in_grid]]) {
    uint e = i, at = 0;
    for (int d = ndim - 1; d >= 0; --d) {
        at += (e % uint(shape[d])) * uint(strides[d]);
        e /= uint(shape[d]);
    }
    out[i] = in[at] + float(strides[0]);
}`

func longs(v ...int64) []byte {
	var b []byte
	for _, x := range v {
		b = binary.LittleEndian.AppendUint64(b, uint64(x))
	}
	return b
}

// specializedLaunch is a launch of specializedText over all elements of a shape; fixed says that the words are given
// with it.
func specializedLaunch(fixed bool, shape []int, strides ...int64) launch.Launch {
	n, dims := 1, []byte(nil)
	for _, d := range shape {
		n *= d
		dims = binary.LittleEndian.AppendUint32(dims, uint32(d))
	}
	in := make([]byte, 4*4096)
	for i := range 4096 {
		binary.LittleEndian.PutUint32(in[4*i:], 0x3f800000+uint32(i)<<8)
	}
	return launch.Launch{Grid: [3]int{n, 1, 1}, Threadgroup: [3]int{64, 1, 1},
		Buffers: [][]byte{in, dims, longs(strides...), words(uint32(len(shape))), make([]byte, 4*n)},
		Fixed:   []bool{false, fixed, fixed, fixed, false}}
}

// modes counts the ways in which a specialization's code touches memory.
func modes(f *specialization) map[lanes.AccessMode]int {
	n := map[lanes.AccessMode]int{}
	for _, a := range lanes.Analyse(f.kernel, 16, lanes.Geometry{Row: true, Aligned: true, Full: true}).Access {
		if a != nil {
			n[a.Mode]++
		}
	}
	return n
}

// TestSpecializations: what a launch brings along chooses the specialization, and only the one that runs is compiled.
func TestSpecializations(t *testing.T) {
	t.Parallel()
	best, err := Best()
	if err != nil {
		t.Skip(err)
	}
	p := prepare(t, specializedText, best)
	compiled := map[*kir.Kernel]int{}
	p.before = func(k *kir.Kernel, _ bool) error {
		compiled[k]++
		return nil
	}
	ref, err := interp.Prepare(p.kernel, p.files)
	require.NoError(t, err)
	run := func(l launch.Launch) *specialization {
		require.NoError(t, kerneltest.Run(p.NewRun, l, 0))
		f, err := p.specialize(&l)
		require.NoError(t, err)
		got := append([]byte(nil), l.Buffers[4]...)
		clear(l.Buffers[4])
		require.NoError(t, kerneltest.Run(ref.NewRun, l, 0))
		require.Equal(t, l.Buffers[4], got)
		return f
	}
	rows := run(specializedLaunch(true, []int{24, 48}, 48, 1))
	require.Equal(t, 1, compiled[rows.kernel])
	require.Len(t, compiled, 1, "neither the root nor the specialization of a known rank is compiled")
	require.Equal(t, map[lanes.AccessMode]int{lanes.AccessOffsets: 2, lanes.AccessUniform: 3}, modes(rows),
		"the input and the output are consecutive; two sizes and a stride are read")
	require.True(t, rows == run(specializedLaunch(true, []int{40, 80}, 80, 1)), "other numbers of which the same is known")
	require.Len(t, compiled, 1)
	require.True(t, &p.root == run(specializedLaunch(false, []int{24, 48}, 48, 1)), "a device buffer may be written")
	columns := run(specializedLaunch(true, []int{48, 24}, 1, 48))
	require.False(t, rows == columns)
	require.Equal(t, 1, modes(columns)[lanes.AccessGather])
	all := run(specializedLaunch(true, []int{32, 32}, 0, 0))
	require.Equal(t, 1, modes(all)[lanes.AccessOffsets], "only the output")

	l := specializedLaunch(true, []int{24, 48}, 48, 1)
	l.Buffers[2] = l.Buffers[2][:8] // too short: the word is not there
	var got, want *launch.Fault
	require.ErrorAs(t, kerneltest.Run(p.NewRun, l, 0), &got)
	require.ErrorAs(t, kerneltest.Run(ref.NewRun, l, 0), &want)
	require.Equal(t, want.Error(), got.Error())
	require.Equal(t, "strides", p.kernel.Params[got.Param].Name)
}

// TestSpecializationsThatCannotBeMade: a launch then runs the specialization that its own was to be made from.
func TestSpecializationsThatCannotBeMade(t *testing.T) {
	t.Parallel()
	best, err := Best()
	if err != nil {
		t.Skip(err)
	}
	p := prepare(t, specializedText, best)
	refused := 0
	p.before = func(k *kir.Kernel, _ bool) error {
		if k == p.root.kernel {
			return nil
		}
		refused++
		return &Unsupported{Kernel: k.Name, Op: kir.Loop, Why: "a test says so"}
	}
	ref, err := interp.Prepare(p.kernel, p.files)
	require.NoError(t, err)
	l := specializedLaunch(true, []int{24, 48}, 48, 1)
	require.NoError(t, kerneltest.Run(p.NewRun, l, 0))
	require.Positive(t, refused)
	got := append([]byte(nil), l.Buffers[4]...)
	clear(l.Buffers[4])
	require.NoError(t, kerneltest.Run(ref.NewRun, l, 0))
	require.Equal(t, l.Buffers[4], got)
}

// TestMostSpecializations: a kernel that meets ever new facts is not compiled for ever.
func TestMostSpecializations(t *testing.T) {
	t.Parallel()
	best, err := Best()
	if err != nil {
		t.Skip(err)
	}
	p := prepare(t, specializedText, best)
	compiled := 0
	p.before = func(*kir.Kernel, bool) error {
		compiled++
		return nil
	}
	ref, err := interp.Prepare(p.kernel, p.files)
	require.NoError(t, err)
	shapes := [][]int{{7, 9}, {7, 8}, {7, 16}, {7, 32}, {8, 9}, {16, 9}, {32, 9}, {5, 3, 2}, {8, 3, 2}, {2, 2, 3, 3}, {64}}
	for _, s := range shapes {
		for _, strides := range [][]int64{{1, 3, 5, 7}, {9, 1, 0, 0}, {0, 1, 1, 1}} {
			l := specializedLaunch(true, s, strides[:len(s)]...)
			require.NoError(t, kerneltest.Run(p.NewRun, l, 0))
			got := append([]byte(nil), l.Buffers[4]...)
			clear(l.Buffers[4])
			require.NoError(t, kerneltest.Run(ref.NewRun, l, 0))
			require.Equal(t, l.Buffers[4], got, "%v %v", s, strides)
		}
	}
	require.Equal(t, mostSpecializations, p.specializations)
	require.LessOrEqual(t, compiled, 2*(mostSpecializations+1), "with and without full threadgroups")
}

// TestUnrollingEnds: loops in loops over one rank are not all unrolled.
func TestUnrollingEnds(t *testing.T) {
	t.Parallel()
	best, err := Best()
	if err != nil {
		t.Skip(err)
	}
	const depth = 7
	body := "at += uint(shape[d0] + strides[d1 & 3]) * e;"
	for d := range depth {
		body = fmt.Sprintf("for (int d%d = 0; d%d < ndim; ++d%d) { %s }", d, d, d, body)
	}
	before, _, _ := strings.Cut(specializedText, "for (int d")
	p := prepare(t, before+body+" out[i] = float(at); }", best)
	l := specializedLaunch(true, []int{2, 2, 2, 2, 2, 2, 2, 2}, 1, 1, 1, 1)
	f, err := p.specialize(&l)
	require.NoError(t, err)
	require.False(t, f == &p.root, "the rank is known")
	loops := func(k *kir.Kernel) (n int) {
		k.Body.Walk(func(in *kir.Instr) {
			if in.Op == kir.Loop {
				n++
			}
		})
		return n
	}
	require.Equal(t, depth, loops(p.root.kernel))
	require.Less(t, loops(f.kernel), depth)
	require.Greater(t, f.kernel.NumInstrs, p.root.kernel.NumInstrs)
	require.Less(t, f.kernel.NumInstrs, 10_000)
}

// TestFactsAreFree: to choose the specialization of a launch makes no objects.
func TestFactsAreFree(t *testing.T) {
	serial.Because(t, "it counts the objects of the process")
	best, err := Best()
	if err != nil {
		t.Skip(err)
	}
	p, l := prepare(t, specializedText, best), specializedLaunch(true, []int{24, 48}, 48, 1)
	require.NoError(t, kerneltest.Run(p.NewRun, l, 0))
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if f, err := p.specialize(&l); err != nil || f == &p.root {
			panic("no specialization")
		}
	}))
}
