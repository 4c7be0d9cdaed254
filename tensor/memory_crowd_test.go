package tensor_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/tensor"
)

// TestHeldSmallArrays: a small array that is held keeps at most 4 KiB of the pool from what was computed beside it; an
// array freed by hand gives its bytes back at once, whoever is held; one evaluation keeps nothing of another; large
// arrays keep nothing of each other.
func TestHeldSmallArrays(t *testing.T) {
	c, dev, x := &tensor.Ctx{}, device, iota(8, 8)
	round := func(keep int) []*tensor.Array {
		var made, held []*tensor.Array
		for i := range 64 {
			y := negOp.One(c, tensor.None{}, x)
			made = append(made, y)
			if i < keep {
				held = append(held, y)
			}
		}
		require.NoError(t, tensor.Eval(background, made...))
		return held
	}
	dev.Collect(background)
	before := dev.Memory().Active
	for range 5 {
		held := round(1)
		dev.Collect(background)
		used := dev.Memory().Active - before
		require.GreaterOrEqual(t, used, int64(256))
		require.LessOrEqual(t, used, int64(4<<10))
		made := round(64)
		dev.Collect(background)
		require.Equal(t, before+used+64*256, dev.Memory().Active)
		for i, y := range made {
			y.Free(nil)
			require.Equal(t, before+used+int64(63-i)*256, dev.Memory().Active)
		}
		runtime.KeepAlive(held)
		held = nil
		dev.Collect(background)
		require.Equal(t, before, dev.Memory().Active)
	}
	large := iota(64, 64)
	dev.Collect(background)
	before = dev.Memory().Active
	y, z := negOp.One(c, tensor.None{}, large), negOp.One(c, tensor.None{}, large)
	require.NoError(t, tensor.Eval(background, y, z))
	require.Equal(t, before+2*16<<10, dev.Memory().Active)
	runtime.KeepAlive(z)
	z = nil
	dev.Collect(background)
	require.Equal(t, before+16<<10, dev.Memory().Active)
	runtime.KeepAlive(y)
	runtime.KeepAlive(x)
	runtime.KeepAlive(large)
}
