package conv_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/internal/brief"
	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/soft"
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/optest"
)

// TestExecutorsDoNotMatter: convolutions and their gradients have the same bits on the interpreter and as machine code,
// with AVX2 and with AVX-512.
func TestExecutorsDoNotMatter(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes the interpreter long")
	}
	brief.OnlyValues(t)
	optest.Open(t)
	on := func(executor string) (all []uint64) {
		dev, err := metal.NewDevice(soft.New(soft.Options{Executor: executor}), metal.DeviceOptions{})
		require.NoError(t, err)
		before, err := tensor.MetalDevice(tensor.DeviceID{Kind: tensor.CPU})
		require.NoError(t, err)
		tensor.SetDevice(dev)
		defer func() {
			tensor.SetDevice(before)
			require.NoError(t, dev.Close())
		}()
		for _, p := range problems {
			for _, d := range []tensor.DType{tensor.Float32, tensor.Float16} {
				for _, result := range p.results(t, d) {
					for _, v := range result {
						all = append(all, math.Float64bits(v))
					}
				}
			}
		}
		return all
	}
	want := on("interp")
	for _, executor := range []string{"avx2", "avx512"} {
		require.Equal(t, want, on(executor), executor)
	}
}
