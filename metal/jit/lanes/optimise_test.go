package lanes_test

import (
	"bytes"
	"errors"
	"flag"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal/interp"
	"github.com/mlxlua/mlxlua/metal/jit/lanes"
	"github.com/mlxlua/mlxlua/metal/kerneltest"
	"github.com/mlxlua/mlxlua/metal/kir"
	"github.com/mlxlua/mlxlua/metal/launch"
	"github.com/mlxlua/mlxlua/metal/msl"
)

var count = flag.Int("programs", 100, "random programs to run")

// programs calls f for random kernels and contents of their buffers: those of programs as they are, and twice varied,
// so that constants are where the front end would have folded them. In every second one lanes exchange values.
func programs(t *testing.T, f func(c *kerneltest.Case, varied int, crossing bool, k *kir.Kernel)) {
	n := uint64(*count)
	if testing.Short() {
		n = (n + 3) / 4
	}
	for seed := range n {
		reach := kerneltest.Reach(seed % 2)
		c := kerneltest.New(seed, reach)
		c.Grid, c.Threadgroup = [3]int{128, 1, 1}, [3]int{40, 1, 1} // no launch of the tests is larger
		k := random(t, c)
		for varied := 0; varied < 3 && k != nil; varied++ {
			if varied > 0 {
				kerneltest.Vary(4*seed+uint64(varied), k)
			}
			f(c, varied, reach == kerneltest.Simdgroups, k)
		}
	}
}

// random compiles a random program; nil if it is too large, because all its calls are written out.
func random(t testing.TB, c *kerneltest.Case) *kir.Kernel {
	mod, err := msl.Compile(msl.Source{Name: "k", Text: c.Text}, msl.Options{Float64: true})
	var list msl.ErrorList
	if errors.As(err, &list) && list[0].Code == msl.TooLarge {
		return nil
	}
	require.NoError(t, err, "seed %d\n%s", c.Seed, c.Text)
	return mod.Kernels[0]
}

// run executes a kernel and returns what its buffers hold then.
func run(t *testing.T, c *kerneltest.Case, k *kir.Kernel) ([][]byte, error) {
	p, err := interp.Prepare(k, nil)
	require.NoError(t, err, "%s", k)
	l := launch.Launch{Grid: c.Grid, Threadgroup: c.Threadgroup}
	l.Buffers, l.Fixed = kerneltest.Bind(k, c.Buffers())
	return l.Buffers, kerneltest.Run(p.NewRun, l, 1)
}

func TestOptimiseKeepsMeaning(t *testing.T) {
	faults, equal := 0, 0
	programs(t, func(c *kerneltest.Case, varied int, _ bool, k *kir.Kernel) {
		before := k.String()
		o := lanes.Optimise(k)
		require.Equal(t, before, k.String(), "the kernel was changed")
		require.NoError(t, o.Verify(), "seed %d, %d\n%s\n%s", c.Seed, varied, k, o)
		want, fault := run(t, c, k)
		got, err := run(t, c, o)
		if fault != nil {
			require.NotZero(t, varied, "seed %d: %v", c.Seed, fault)
			require.Error(t, err, "seed %d, %d: want %v\n%s\n%s", c.Seed, varied, fault, k, o)
			faults++
			return
		}
		require.NoError(t, err, "seed %d, %d\n%s\n%s", c.Seed, varied, k, o)
		for i := range want {
			if !bytes.Equal(want[i], got[i]) {
				t.Fatalf("seed %d, %d: %s differs\n%s\n%s", c.Seed, varied, k.Params[i].Name, k, o)
			}
		}
		equal++
	})
	require.Less(t, 20*faults, equal, "most do not fault")
}
