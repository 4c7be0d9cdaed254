package ops_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/internal/serial"
	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/drivertest"
	"github.com/mlxlua/mlxlua/metal/soft"
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/optest"
)

// counted is a library that counts what it was asked to compute.
type counted struct {
	drivertest.Products
	mu    sync.Mutex
	calls []metal.MatMul
}

func (c *counted) Call(r metal.Routine, reads, writes [][]byte) error {
	c.mu.Lock()
	c.calls = append(c.calls, r.(metal.MatMul))
	c.mu.Unlock()
	return c.Products.Call(r, reads, writes)
}

func (c *counted) since() []metal.MatMul {
	c.mu.Lock()
	defer c.mu.Unlock()
	was := c.calls
	c.calls = nil
	return was
}

// TestMatmulByALibrary: a device whose library multiplies is asked to, for many rows in any layout that can be told, in
// the middle of other kernels; the bytes are those of the kernels.
func TestMatmulByALibrary(t *testing.T) {
	serial.Because(t, "another device is the default one of the process")
	optest.Open(t)
	lib := &counted{}
	dev, err := metal.NewDevice(drivertest.NewDiscrete(soft.New(soft.Options{Hidden: true, Library: lib}), 7),
		metal.DeviceOptions{})
	require.NoError(t, err)
	s, err := tensor.NewStream(tensor.SetDevice(dev))
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, tensor.Synchronize(context.Background(), s)) // the test's context is over
	})
	far := &tensor.Ctx{Stream: s}
	type operand func(*tensor.Ctx) *array // what a kernel has just made, as it lies
	made := func(d tensor.DType, shape ...int) operand {
		x := optest.Noise(d, shape...)
		return func(c *tensor.Ctx) *array { return ops.Negative(x, c) }
	}
	plain := made
	turned := func(d tensor.DType, shape ...int) operand {
		x := made(d, shape...)
		return func(c *tensor.Ctx) *array { return ops.SwapAxes(x(c), -1, -2, c) }
	}
	cut := func(from, step int) func(d tensor.DType, shape ...int) operand {
		return func(d tensor.DType, shape ...int) operand {
			x, cols := made(d, shape...), shape[len(shape)-1]
			return func(c *tensor.Ctx) *array {
				return ops.Slice(x(c), []ops.Part{ops.Ellipsis(), ops.Span(from, cols, step)}, c)
			}
		}
	}
	part, spaced, cpu := cut(3, 1), cut(0, 2), optest.Wide(t)
	for _, d := range []tensor.DType{tensor.Float32, tensor.Float16, tensor.BFloat16, tensor.Float64, tensor.Complex64} {
		if !optest.Computes(t, d) {
			continue
		}
		for i, c := range []struct {
			a, b  operand
			calls int
		}{
			{plain(d, 20, 33), plain(d, 33, 40), 1},
			{turned(d, 33, 20), part(d, 33, 43), 1},
			{part(d, 3, 20, 33), turned(d, 3, 40, 30), 1},
			{plain(d, 3, 20, 33), plain(d, 33, 40), 1}, // one product of 60 rows
			{plain(d, 20, 33), plain(d, 3, 33, 40), 1},
			{plain(d, 20, 1), plain(d, 1, 40), 1},
			{plain(d, 2, 1, 20, 33), plain(d, 3, 33, 40), 0}, // of two dimensions that do not merge
			{spaced(d, 20, 66), plain(d, 33, 40), 0},
			{plain(d, 4, 33), plain(d, 33, 40), 0}, // few rows
			{plain(d, 20, 33), plain(d, 33, 3), 0}, // few columns
			{plain(d, 0, 33), plain(d, 33, 40), 0},
			{plain(d, 200, 330), plain(d, 330, 40), 0}, // more than the library takes
		} {
			y := ops.Negative(ops.Matmul(c.a(far), c.b(far), far), far)
			want := ops.Negative(ops.Matmul(c.a(cpu), c.b(cpu), cpu), cpu)
			lib.since()
			require.Equal(t, optest.Bytes(t, want), optest.Bytes(t, y), "%v, product %d", d, i)
			require.Len(t, lib.since(), c.calls, "%v, product %d", d, i)
		}
	}
}
