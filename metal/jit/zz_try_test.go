package jit_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/mlxlua/mlxlua/metal/interp"
	"github.com/mlxlua/mlxlua/metal/jit"
	"github.com/mlxlua/mlxlua/metal/jit/difftest"
	"github.com/mlxlua/mlxlua/metal/msl"
	"github.com/stretchr/testify/require"
)

func TestTry(t *testing.T) {
	f := os.Getenv("TRY")
	if f == "" {
		t.Skip()
	}
	text, _ := os.ReadFile(f)
	if c, err := difftest.Parse(string(text)); err == nil {
		for _, l := range levels(t) {
			fmt.Println(l, compare(c, []jit.Level{l}))
		}
		return
	}
	mod, err := msl.Compile(msl.Source{Name: "k", Text: string(text)}, msl.Options{})
	require.NoError(t, err)
	ref, err := interp.Prepare(mod.Kernels[0], mod.Files)
	require.NoError(t, err)
	run := func(r runner) {
		var b [][]byte
		for range mod.Kernels[0].Params {
			b = append(b, iota32(64))
		}
		err := r.Run(interp.Launch{Grid: line(20), Threadgroup: line(20), Buffers: b})
		fmt.Println(err, u32s(b[len(b)-1]))
	}
	run(ref)
	for _, p := range levels(t) {
		p, err := jit.Prepare(mod.Kernels[0], mod.Files, jit.Options{Level: p})
		require.NoError(t, err)
		run(p)
	}
}
