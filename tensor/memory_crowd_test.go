package tensor_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/tensor"
)

// TestHeldSmallArrays: a small array that is held keeps at most 2 KiB of the pool from what was computed beside it; an
// array freed by hand gives its bytes back at once, whoever is held; one evaluation keeps nothing of another; large
// arrays keep nothing of each other.
func TestHeldSmallArrays(t *testing.T) {
	_, dev := withDevice(t, metal.DeviceOptions{})
	c, x := &tensor.Ctx{}, iota(8, 8)
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
	before := dev.Memory().Active
	for range 5 {
		held := round(1)
		collectTo(t, dev, before+256+2048) // x, and the eight that lie together
		used := dev.Memory().Active - before
		require.GreaterOrEqual(t, used, int64(256))
		made := round(64)
		collectTo(t, dev, before+used+64*256)
		require.Equal(t, before+used+64*256, dev.Memory().Active)
		for i, y := range made {
			y.Free(nil)
			require.Equal(t, before+used+int64(63-i)*256, dev.Memory().Active)
		}
		runtime.KeepAlive(held)
		held = nil
		collectTo(t, dev, before)
		require.Equal(t, before, dev.Memory().Active)
	}
	large := iota(64, 64)
	before = dev.Memory().Active
	y, z := negOp.One(c, tensor.None{}, large), negOp.One(c, tensor.None{}, large)
	require.NoError(t, tensor.Eval(background, y, z))
	require.Equal(t, before+2*16<<10, dev.Memory().Active)
	runtime.KeepAlive(z)
	z = nil
	collectTo(t, dev, before+16<<10)
	require.Equal(t, before+16<<10, dev.Memory().Active)
	runtime.KeepAlive(y)
	runtime.KeepAlive(x)
	runtime.KeepAlive(large)
}
