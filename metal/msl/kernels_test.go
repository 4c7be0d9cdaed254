package msl_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal/kir"
	"github.com/mlxlua/mlxlua/metal/launch"
	"github.com/mlxlua/mlxlua/metal/msl"
)

// kernelCase is a kernel as people write them, with what it must write, computed in Go. Buffer 0 is the output, of
// want's type; in are the buffers after it.
type kernelCase struct {
	name        string
	text        string // what follows the usual include and using
	kernel      string // the kernel's name, if the text has several
	grid, group [3]int // zero: 32 threads in one group
	shared      []int  // bytes of [[threadgroup(n)]] memory
	constants   []msl.FunctionConstant
	in          []any
	want        any
	tolerance   float64 // relative to the largest wanted value; 0: equal
}

const usual = "#include <metal_stdlib>\nusing namespace metal;\n"

// rawBytes is a slice of numbers as little-endian bytes.
func rawBytes(t *testing.T, v any) []byte {
	var b bytes.Buffer
	require.NoError(t, binary.Write(&b, binary.LittleEndian, v))
	return b.Bytes()
}

func runKernels(t *testing.T, cases []kernelCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			mod, err := msl.Compile(msl.Source{Name: c.name, Text: usual + c.text},
				msl.Options{FunctionConstants: c.constants})
			require.NoError(t, err)
			require.NoError(t, mod.Verify())
			k := mod.Kernels[0]
			for _, x := range mod.Kernels {
				if x.Name == c.kernel {
					k = x
				}
			}
			require.True(t, c.kernel == "" || k.Name == c.kernel, "no kernel %s", c.kernel)
			runKernel(t, c, k, mod.Files)
		})
	}
}

func runKernel(t *testing.T, c kernelCase, k *kir.Kernel, files []string) {
	prog, err := prepare(k, files)
	require.NoError(t, err)
	l := launch.Launch{Grid: c.grid, Threadgroup: c.group}
	if c.grid[0] == 0 {
		l.Grid = [3]int{32, 1, 1}
	}
	if c.group[0] == 0 {
		l.Threadgroup = [3]int{32, 1, 1}
	}
	want := rawBytes(t, c.want)
	out := make([]byte, len(want))
	bound := [][]byte{out}
	for _, in := range c.in {
		bound = append(bound, rawBytes(t, in))
	}
	for _, p := range k.Params {
		if p.Space == kir.Threadgroup {
			l.Buffers = append(l.Buffers, nil)
			l.ThreadgroupBytes = append(l.ThreadgroupBytes, c.shared[p.Index])
			continue
		}
		l.Buffers = append(l.Buffers, bound[p.Index])
		l.ThreadgroupBytes = append(l.ThreadgroupBytes, 0)
	}
	require.NoError(t, prog.Run(l))
	floats, isFloat := c.want.([]float32)
	if !isFloat || c.tolerance == 0 {
		if isFloat {
			require.Equal(t, floats, readFloats(out))
		}
		require.Equal(t, words(want), words(out))
		return
	}
	largest := 0.0
	for _, w := range floats {
		largest = max(largest, math.Abs(float64(w)))
	}
	for i, g := range readFloats(out) {
		require.InDelta(t, floats[i], g, c.tolerance*largest, "element %d", i)
	}
}

func readFloats(b []byte) []float32 {
	r := make([]float32, len(b)/4)
	for i := range r {
		r[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return r
}

func words(b []byte) []int32 {
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	r := make([]int32, len(b)/4)
	for i := range r {
		r[i] = int32(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return r
}

// list is f(0) to f(n-1).
func list[T any](n int, f func(i int) T) []T {
	r := make([]T, n)
	for i := range r {
		r[i] = f(i)
	}
	return r
}
