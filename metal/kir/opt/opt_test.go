package opt_test

import (
	"bytes"
	"errors"
	"flag"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal/interp"
	"github.com/mlxlua/mlxlua/metal/kerneltest"
	"github.com/mlxlua/mlxlua/metal/kir"
	"github.com/mlxlua/mlxlua/metal/kir/opt"
	"github.com/mlxlua/mlxlua/metal/launch"
	"github.com/mlxlua/mlxlua/metal/msl"
)

var count = flag.Int("programs", 100, "random programs to run")

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

func TestRunKeepsMeaning(t *testing.T) {
	faults, equal := 0, 0
	check := func(c *kerneltest.Case, varied int, k *kir.Kernel) {
		before := k.String()
		o := opt.Run(k, opt.Launch{})
		require.Equal(t, before, k.String(), "the kernel was changed")
		if c.Seed%2 == 1 {
			opt.Gather(o)
		}
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
	}
	n := uint64(*count)
	if testing.Short() {
		n = (n + 3) / 4
	}
	for seed := range n {
		c := kerneltest.New(seed, kerneltest.Reach(seed%2))
		c.Grid, c.Threadgroup = [3]int{128, 1, 1}, [3]int{40, 1, 1} // no launch is larger
		k := random(t, c)
		for varied := 0; varied < 3 && k != nil; varied++ {
			if varied > 0 { // constants are where the front end would have folded them
				kerneltest.Vary(4*seed+uint64(varied), k)
			}
			check(c, varied, k)
		}
	}
	require.Less(t, 20*faults, equal, "most do not fault")
}

func BenchmarkRun(b *testing.B) {
	var k *kir.Kernel // of some 3000 instructions
	for seed := uint64(0); k == nil || k.NumInstrs < 2500 || k.NumInstrs > 3500; seed++ {
		k = random(b, kerneltest.New(seed, kerneltest.Simdgroups))
	}
	b.ReportMetric(float64(k.NumInstrs), "instrs")
	for b.Loop() {
		opt.Run(k, opt.Launch{})
	}
}
