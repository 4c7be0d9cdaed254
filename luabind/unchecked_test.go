package luabind

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/internal/serial"
	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/testdevice"
	"github.com/mlxlua/mlxlua/tensor"
)

// TestUncheckedKernels: on a device that does not keep a kernel to its buffers a script in a sandbox runs none of its
// own, in no way that leads there, and all that is built in; others run theirs.
func TestUncheckedKernels(t *testing.T) {
	serial.Because(t, "a device of its own takes the CPU's place")
	testdevice.NeedsCPU(t, "a device of its own takes the CPU's place")
	before, err := tensor.MetalDevice(tensor.DefaultDevice())
	require.NoError(t, err)
	dev, err := metal.NewDevice(testdevice.NewAs(func(i *metal.Info) { i.Faults = metal.FaultsUnchecked }),
		metal.DeviceOptions{})
	require.NoError(t, err)
	tensor.SetDevice(dev)
	t.Cleanup(func() {
		tensor.SetDevice(before)
		require.NoError(t, dev.Close())
	})
	const kernel = `local k = mx.fast.metal_kernel{name = "twice", input_names = {"x"}, output_names = {"y"},
	  source = "y[0] = 2 * x[0];"}
	local function f(x)
	  return k{inputs = {x}, grid = {1}, threadgroup = {1}, output_shapes = {x}, output_dtypes = {x.dtype}}
	end
	local x = mx.array({21.0})
	`
	for _, call := range []string{"f(x)", "mx.compile(f)(x)", "mx.compile(function(x) return f(x) + 1 end)(x + 1)"} {
		s := New(Options{Sandbox: true})
		_, err := s.Run(t.Context(), strings.NewReader(kernel+"mx.eval("+call+")"), "test")
		require.ErrorContains(t, err, "does not keep a kernel to its buffers", call)
		require.ErrorContains(t, err, "twice", call)
		s.Close()
	}
	s := New(Options{Sandbox: true})
	defer s.Close()
	out, err := s.Run(t.Context(), strings.NewReader("return mx.softmax(mx.zeros({4, 4}) * 2, -1):sum():item()"), "test")
	require.NoError(t, err)
	require.EqualValues(t, 4, out[0])
	free := New(Options{})
	defer free.Close()
	out, err = free.Run(t.Context(), strings.NewReader(kernel+"return f(x):item(), mx.compile(f)(x):item()"), "test")
	require.NoError(t, err)
	require.EqualValues(t, 42, out[0])
	require.EqualValues(t, 42, out[1])
}
