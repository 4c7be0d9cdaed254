package lanes_test

import (
	"errors"
	"flag"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal/kerneltest"
	"github.com/mlxlua/mlxlua/metal/kir"
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
