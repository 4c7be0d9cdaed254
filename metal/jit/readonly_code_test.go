package jit

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal/kerneltest"
	"github.com/mlxlua/mlxlua/metal/kir"
	"github.com/mlxlua/mlxlua/metal/msl"
)

// TestReadOnlyCostsNothing: machine code of a kernel that writes its outputs only is the same, to the byte, whether its
// inputs are read-only or not.
func TestReadOnlyCostsNothing(t *testing.T) {
	t.Parallel()
	best, err := Best()
	if err != nil {
		t.Skip(err)
	}
	for seed := range uint64(12) {
		text := kerneltest.New(seed, kerneltest.Simdgroups).Text
		mod, err := msl.Compile(msl.Source{Name: "k", Text: text}, msl.Options{Float64: true})
		require.NoError(t, err)
		code := func(k *kir.Kernel) []byte {
			p, err := Prepare(k, mod.Files, Options{Level: best})
			require.NoError(t, err)
			require.NoError(t, p.root.ready())
			v, err := p.root.variant([3]int{64, 1, 1}, 64, false)
			require.NoError(t, err)
			return v.code.Bytes
		}
		k := mod.Kernels[0]
		free := *k
		free.Params = slices.Clone(k.Params)
		inputs := 0
		for i := range free.Params {
			if p := &free.Params[i]; p.ReadOnly {
				require.False(t, p.Write, p.Name)
				p.ReadOnly = false
				inputs++
			}
		}
		require.NotZero(t, inputs)
		require.Equal(t, code(&free), code(k), "seed %d", seed)
	}
}
