package msl_test

import (
	"errors"
	"flag"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal/interp"
	"github.com/mlxlua/mlxlua/metal/kerneltest"
	"github.com/mlxlua/mlxlua/metal/kir"
	"github.com/mlxlua/mlxlua/metal/launch"
	"github.com/mlxlua/mlxlua/metal/msl"
)

var cleanPrograms = flag.Int("clean", 150, "random programs for TestCleaningKeepsMeaning")
var cleanSeed = flag.Uint64("cleanseed", 1, "the first seed of TestCleaningKeepsMeaning")

// execute runs a program's kernel on two SIMD-groups and returns what all buffers hold then.
func execute(t *testing.T, c *kerneltest.Case, mod *kir.Module) [][]byte {
	require.NoError(t, mod.Verify(), "seed %d\n%s", c.Seed, c.Text)
	exe, err := interp.Prepare(mod.Kernels[0], mod.Files)
	require.NoError(t, err)
	all, l := c.Buffers(), launch.Launch{Grid: c.Grid, Threadgroup: c.Threadgroup}
	l.Buffers, l.Fixed = kerneltest.Bind(mod.Kernels[0], all)
	require.NoError(t, kerneltest.Run(exe.NewRun, l, 1), "seed %d\n%s", c.Seed, c.Text)
	return all
}

// Cleaning, unrolling and the promotion of arrays do not change what a kernel computes.
func TestCleaningKeepsMeaning(t *testing.T) {
	t.Parallel()
	n := *cleanPrograms
	if testing.Short() {
		n /= 3
	}
	for i := range n {
		c := kerneltest.New(*cleanSeed+uint64(i), kerneltest.Simdgroups)
		c.Grid, c.Threadgroup = [3]int{45, 1, 1}, [3]int{45, 1, 1}
		src := msl.Source{Name: "random", Text: c.Text}
		raw, err := msl.CompileRaw(src, msl.Options{Float64: true})
		var list msl.ErrorList
		if errors.As(err, &list) && list[0].Code == msl.TooLarge {
			continue
		}
		require.NoError(t, err, "seed %d:\n%s", c.Seed, c.Text)
		clean, err := msl.Compile(src, msl.Options{Float64: true})
		require.NoError(t, err, "seed %d:\n%s", c.Seed, c.Text)
		want, got := execute(t, c, raw), execute(t, c, clean)
		for b := range want {
			for at := range want[b] {
				if want[b][at] != got[b][at] {
					t.Fatalf("seed %d: cleaning changes byte %d of buffer %d to %#x from %#x\n%s", c.Seed, at, b, got[b][at],
						want[b][at], c.Text)
				}
			}
		}
	}
}
