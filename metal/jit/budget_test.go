package jit_test

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/internal/brief"
	"github.com/mlxlua/mlxlua/metal/interp"
	"github.com/mlxlua/mlxlua/metal/jit"
	"github.com/mlxlua/mlxlua/metal/kerneltest"
	"github.com/mlxlua/mlxlua/metal/kir"
	"github.com/mlxlua/mlxlua/metal/launch"
	"github.com/mlxlua/mlxlua/metal/msl"
)

var manyValues = flag.Bool("jit.many", false, "TestManyValues tries 20000 of them")

// wideText has n loaded values that all live at once, over as many checks of what is loaded.
func wideText(n int) string {
	var b strings.Builder
	b.WriteString("kernel void wide(device float *o, device const float *a, uint i [[thread_position_in_grid]]) {\n")
	for k := range n {
		fmt.Fprintf(&b, "float v%d = a[i + %d];\n", k, k)
	}
	b.WriteString("float x = 0;\n")
	for k := range (n + 1) / 2 {
		fmt.Fprintf(&b, "x += v%d * v%d;\n", k, n-1-k)
	}
	b.WriteString("o[i] = x;\n}\n")
	return b.String()
}

// TestManyValues: kernels with many values at once become machine code that computes what the interpreter does; in the
// larger ones to find out which value lives where would be work with the square of their number.
func TestManyValues(t *testing.T) {
	t.Parallel()
	brief.OnlyValues(t)
	sizes := []int{150, 3000}
	if *manyValues {
		sizes = append(sizes, 20000)
	}
	for _, n := range sizes {
		m, err := msl.Compile(msl.Source{Name: "wide", Text: wideText(n)}, msl.Options{})
		require.NoError(t, err)
		run := func(r runner) ([]byte, error) {
			o, a := make([]byte, 4*64), make([]byte, 4*(n+64))
			for k := range a {
				a[k] = byte(k%4*21 - k/4%2) // floats of about 4e-3
			}
			err := r(launch.Launch{Grid: line(64), Threadgroup: line(64), Buffers: [][]byte{o, a}}, 0)
			return o, err
		}
		for _, l := range levels(t) {
			p, err := jit.Prepare(m.Kernels[0], m.Files, jit.Options{Level: l})
			require.NoError(t, err)
			got, err := run(runs(p.NewRun))
			require.NoError(t, err)
			ref, err := interp.Prepare(m.Kernels[0], m.Files)
			require.NoError(t, err)
			want, err := run(runs(ref.NewRun))
			require.NoError(t, err)
			require.Equal(t, want, got)
		}
	}
}

// TestDeepBlocks: blocks nested nearly as deep as launch.Check lets them be are compiled and run.
func TestDeepBlocks(t *testing.T) {
	t.Parallel()
	m, err := msl.Compile(msl.Source{Name: "deep", Text: "kernel void k(device int *o [[buffer(0)]], " +
		"uint i [[thread_position_in_grid]]) { if (o[i] >= 0) o[i] += 1; }"}, msl.Options{})
	require.NoError(t, err)
	k := *m.Kernels[0]
	for range 4000 {
		k.Body = &kir.Block{Instrs: []*kir.Instr{{Op: kir.BlockOp, ID: k.NumInstrs, Body: k.Body}}}
		k.NumInstrs++
	}
	require.NoError(t, launch.Check(&k))
	for _, l := range levels(t) {
		p, err := jit.Prepare(&k, m.Files, jit.Options{Level: l})
		require.NoError(t, err)
		o := make([]byte, 4*64)
		require.NoError(t, kerneltest.Run(p.NewRun,
			launch.Launch{Grid: line(64), Threadgroup: line(64), Buffers: [][]byte{o}}, 0))
		for _, v := range u32s(o) {
			require.Equal(t, uint32(1), v)
		}
	}
}
