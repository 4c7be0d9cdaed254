package tensor_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/drivertest"
	"github.com/mlxlua/mlxlua/metal/soft"
	"github.com/mlxlua/mlxlua/tensor"
)

// kinds is a driver that notes of what kinds the commands of each command buffer are.
type kinds struct {
	*soft.Driver
	mu   sync.Mutex
	seen [][]metal.CommandKind
}

func (k *kinds) Submit(queue int, cb *metal.CommandBuffer, done func(metal.Result)) {
	var list []metal.CommandKind
	for _, c := range cb.Commands() {
		if c.Kind != metal.CmdBarrier {
			list = append(list, c.Kind)
		}
	}
	k.mu.Lock()
	k.seen = append(k.seen, list)
	k.mu.Unlock()
	k.Driver.Submit(queue, cb, done)
}

// squared is the square of an n by n matrix by a call of the device's library.
func squared(t *testing.T, x *tensor.Array, n int) *tensor.Array {
	return run(x, func(r *tensor.Run) error {
		m := metal.Matrix{Lead: n}
		in := []tensor.Operand{r.In[0], r.In[0]}
		done, err := r.Call(metal.MatMul{M: n, N: n, K: n, Batch: 1, A: m, B: m}, in, r.Out)
		require.True(t, done)
		return err
	})
}

// unknown is a routine that no device offers.
type unknown struct{}

func (unknown) Routine() string { return "unknown" }

// TestCallsBehindGates: a library's call whose operand was written over an old value begins a command buffer that the
// host hands over when the step's gate is open; else it is undone with the step. A routine that the device does not
// offer is left to kernels.
func TestCallsBehindGates(t *testing.T) {
	const n = 64
	drv := &kinds{Driver: soft.New(soft.Options{Library: drivertest.Products{}})}
	useDevice(t, drv, metal.DeviceOptions{})
	for _, wrong := range []bool{false, true} {
		x := neg(iota(n, n))
		eval(t, x)
		before := floats(t, x)
		fine := kernel(iota(3), faulty, "faulty", 0)
		if wrong {
			fine = beyond(iota(3))
		}
		next := neg(x)
		last := mul(squared(t, next, n), neg(next))
		checked := neg(fine)
		c := changed(x, next, checked)
		drv.seen = nil
		err := tensor.Eval(background, checked, next, last)
		if wrong {
			require.Error(t, err)
			failed, _ := c.Failed(background)
			require.True(t, failed)
			old, ok := c.Undo(background)
			require.True(t, ok)
			require.Equal(t, before, floats(t, old[0]))
			continue
		}
		require.NoError(t, err)
		var sum float32
		for k := range n {
			sum += float32(k) * float32(k*n+1)
		}
		require.Equal(t, -sum, floats(t, last)[1])
		gates, calls := -1, -1
		for i, list := range drv.seen {
			for _, k := range list {
				switch k {
				case metal.CmdGate:
					gates = i
				case metal.CmdCall:
					calls = i
				}
			}
		}
		require.GreaterOrEqual(t, gates, 0, "nothing was written over: %v", drv.seen)
		require.Greater(t, calls, gates)
	}
	require.Equal(t, float32(-1), floats(t, run(iota(2), func(r *tensor.Run) error {
		done, err := r.Call(unknown{}, r.In, r.Out)
		if done || err != nil {
			return errors.New("it was called")
		}
		return r.Fill(r.Out[0], []byte{0, 0, 0x80, 0xBF})
	}))[0])
}
