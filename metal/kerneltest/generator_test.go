package kerneltest_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal/interp"
	"github.com/mlxlua/mlxlua/metal/kerneltest"
	"github.com/mlxlua/mlxlua/metal/launch"
	"github.com/mlxlua/mlxlua/metal/msl"
)

// TestProgramsCompileAndEnd: texts are right, in bounds but for a few, and come out the same however workers share
// them.
func TestProgramsCompileAndEnd(t *testing.T) {
	faults, programs := 0, uint64(100)
	if testing.Short() {
		programs = 30
	}
	for seed := range programs {
		reach := min(kerneltest.Reach(seed%4), kerneltest.Threadgroups)
		c := kerneltest.New(seed, reach)
		mod, err := msl.Compile(msl.Source{Name: "k", Text: c.Text}, msl.Options{Float64: true})
		if err != nil {
			t.Errorf("seed %d: %v", seed, err)
			continue
		}
		p, err := interp.Prepare(mod.Kernels[0], mod.Files)
		require.NoError(t, err)
		var first [][]byte
		for workers := 1; workers <= 2; workers++ {
			b := c.Buffers()
			start := time.Now()
			err = kerneltest.Run(p.NewRun,
				launch.Launch{Grid: c.Grid, Threadgroup: c.Threadgroup, Buffers: b}, workers)
			var fault *launch.Fault
			if errors.As(err, &fault) {
				require.Equal(t, kerneltest.Threadgroups, reach, "seed %d: %v", seed, err)
				faults++
				break
			}
			require.NoError(t, err, "seed %d", seed)
			require.Less(t, time.Since(start), 20*time.Second, "seed %d", seed)
			if first == nil {
				first = b
			}
			require.Equal(t, first, b, "seed %d", seed)
		}
	}
	require.Less(t, faults, 15, "few access what they must not")
}
