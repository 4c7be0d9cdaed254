package lanes_test

import (
	"bytes"
	"flag"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal/interp"
	"github.com/mlxlua/mlxlua/metal/jit/lanes"
	"github.com/mlxlua/mlxlua/metal/kerneltest"
	"github.com/mlxlua/mlxlua/metal/kir"
)

var rounds = flag.Int("rounds", 400, "random programs to run")

// programs is how many random programs a test runs.
func programs() uint64 {
	if testing.Short() {
		return uint64(*rounds+3) / 4
	}
	return uint64(*rounds)
}

// run executes a kernel and returns its output.
func run(t *testing.T, k *kir.Kernel, threads, width int, in []byte) []byte {
	p, err := interp.Prepare(k, nil)
	require.NoError(t, err, "%s", k)
	out := make([]byte, threads*outSlots*8)
	require.NoError(t, kerneltest.Run(p.NewRun,
		interp.Launch{Grid: [3]int{threads, 1, 1}, Threadgroup: [3]int{width, 1, 1},
			Buffers: [][]byte{in, out}}, 0))
	return out
}

func randomInput(g *generator) []byte {
	in := make([]byte, inBytes)
	for i := range in {
		in[i] = byte(g.r.Uint32())
	}
	return in
}

func TestOptimiseKeepsMeaning(t *testing.T) {
	for seed := range programs() {
		g := newGenerator(seed)
		k := g.Kernel()
		before := k.String()
		in := randomInput(g)
		o := lanes.Optimise(k)
		require.Equal(t, before, k.String(), "the kernel was changed")
		require.NoError(t, o.Verify(), "seed %d\n%s\n%s", seed, k, o)
		want, got := run(t, k, 77, 40, in), run(t, o, 77, 40, in)
		if !bytes.Equal(want, got) {
			for i := range want {
				if want[i] != got[i] {
					t.Fatalf("seed %d: thread %d, slot %d, byte %d: %#x, want %#x\n%s\n%s",
						seed, i/(outSlots*8), i/8%outSlots, i%8, got[i], want[i], k, o)
				}
			}
		}
	}
}
