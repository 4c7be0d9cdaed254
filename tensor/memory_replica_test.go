package tensor_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/drivertest"
	"github.com/mlxlua/mlxlua/metal/testdevice"
	"github.com/mlxlua/mlxlua/tensor"
)

// discrete opens a discrete device of that number beside the tests' own, and gives a stream on it.
func discrete(t *testing.T, index int, opt metal.DeviceOptions) (*drivertest.Discrete, *metal.Device, *tensor.Ctx) {
	t.Helper()
	drv := testdevice.NewDiscrete(index)
	dev, err := metal.NewDevice(drv, opt)
	require.NoError(t, err)
	d := tensor.SetDevice(dev)
	require.Equal(t, tensor.DeviceID{Kind: tensor.GPU, Index: index}, d)
	t.Cleanup(func() {
		require.NoError(t, tensor.Synchronize(background))
		tensor.UnsetDevice(dev)
		require.NoError(t, dev.Close())
	})
	s, err := tensor.NewStream(d)
	require.NoError(t, err)
	return drv, dev, on(s)
}

// TestTwoDevices: two devices of a kind are two. Opening one closes and returns no other.
func TestTwoDevices(t *testing.T) {
	_, first, a := discrete(t, 0, metal.DeviceOptions{})
	_, second, b := discrete(t, 1, metal.DeviceOptions{})
	for d, want := range map[tensor.DeviceID]*metal.Device{
		{Kind: tensor.CPU}: device, {Kind: tensor.GPU}: first, {Kind: tensor.GPU, Index: 1}: second,
	} {
		got, err := tensor.MetalDevice(d)
		require.NoError(t, err)
		require.Same(t, want, got)
	}
	require.Equal(t, []tensor.DeviceID{{}, {Kind: tensor.GPU}, {Kind: tensor.GPU, Index: 1}}, tensor.Devices())
	_, err := tensor.MetalDevice(tensor.DeviceID{Kind: tensor.GPU, Index: 2})
	require.ErrorContains(t, err, "Device(gpu, 2)")
	x := iota(1000)
	y, z := negOp.One(a, tensor.None{}, x), negOp.One(b, tensor.None{}, x)
	eval(t, y, z)
	require.Equal(t, floats(t, y), floats(t, z))
	require.Equal(t, tensor.DeviceID{}, tensor.DefaultDevice())
}

// TestReplicas: an array that another device uses is copied once, its range only, and kept while it lives.
func TestReplicas(t *testing.T) {
	const n = 1 << 16 // floats
	drv, dev, far := discrete(t, 0, metal.DeviceOptions{})
	x := neg(iota(n))
	eval(t, x)
	drv.Transfers()
	use := func(x *tensor.Array) *tensor.Array {
		y := negOp.One(far, tensor.None{}, x)
		eval(t, y)
		return y
	}
	y := use(x)
	require.Equal(t, drivertest.Transfers{Writes: 1, WroteBytes: 4 * n}, drv.Transfers())
	require.Equal(t, floats(t, iota(n)), floats(t, y))
	require.Equal(t, drivertest.Transfers{Reads: 1, ReadBytes: 4 * n}, drv.Transfers())
	for range 3 {
		use(x)
	}
	view := slice(x, 100, 104, 1)
	part := use(view) // which lies in what is there
	require.Zero(t, drv.Transfers())
	require.Equal(t, []float32{100, 101, 102, 103}, floats(t, part))

	fresh := neg(iota(n))
	eval(t, fresh)
	drv.Transfers()
	part = use(slice(fresh, 100, 104, 1))
	moved := drv.Transfers()
	require.Equal(t, 1, moved.Writes)
	require.LessOrEqual(t, moved.WroteBytes, int64(4*4+64), "its range only")
	require.Equal(t, []float32{100, 101, 102, 103}, floats(t, part))

	tensor.Drop(y, part, view)
	held := dev.Memory().Active
	tensor.Drop(x) // and with it its copy
	require.LessOrEqual(t, dev.Memory().Active, held-4*n)
}

// TestReplicasAreNotStale: what a device has copied is never written over where it lies, nor read again when its array
// has another value.
func TestReplicasAreNotStale(t *testing.T) {
	const n = 5000
	_, _, far := discrete(t, 0, metal.DeviceOptions{Validate: true})
	x := neg(iota(n))
	y := negOp.One(far, tensor.None{}, x)
	eval(t, y)
	was := place(t, x)
	z := neg(x)
	tensor.Drop(x)
	eval(t, z)
	require.NotSame(t, was, place(t, z), "the other device reads it")
	w := negOp.One(far, tensor.None{}, z)
	eval(t, w)
	for i, v := range floats(t, w) {
		require.Equal(t, float32(-i), v)
	}
	require.Equal(t, floats(t, iota(n)), floats(t, y))
}

// TestPeers: arrays go from one discrete device to the other without the host, and to the host by their range.
func TestPeers(t *testing.T) {
	const n = 3000
	first, _, a := discrete(t, 0, metal.DeviceOptions{})
	second, _, b := discrete(t, 1, metal.DeviceOptions{})
	x := negOp.One(a, tensor.None{}, iota(n))
	eval(t, x)
	first.Transfers()
	y := negOp.One(b, tensor.None{}, x)
	eval(t, y)
	require.Zero(t, first.Transfers())
	require.Equal(t, drivertest.Transfers{Peers: 1, Moved: 4 * n}, second.Transfers())
	require.Equal(t, floats(t, iota(n)), floats(t, y))
	second.Transfers()
	require.Equal(t, []float32{7, 8}, floats(t, slice(y, 7, 9, 1)))
	moved := second.Transfers()
	require.LessOrEqual(t, moved.ReadBytes, int64(8+64))
	require.Zero(t, moved.WroteBytes)
	back := neg(y) // on the CPU
	eval(t, back)
	require.Equal(t, drivertest.Transfers{Reads: 1, ReadBytes: 4 * n}, second.Transfers())
}

// TestFromBytesOnAStream: data goes to the device of the call's stream.
func TestFromBytesOnAStream(t *testing.T) {
	drv, dev, far := discrete(t, 0, metal.DeviceOptions{MemoryLimit: 1 << 20})
	b := make([]byte, 4000)
	x := tensor.FromBytes(far, tensor.Spec{Shape: tensor.Shape{1000}, DType: tensor.Float32}, b)
	require.NoError(t, x.Err())
	require.GreaterOrEqual(t, dev.Memory().Active, int64(4000))
	b[0] = 1 // it was a copy
	eval(t, negOp.One(far, tensor.None{}, x))
	require.Equal(t, drivertest.Transfers{Writes: 1, WroteBytes: 4000}, drv.Transfers())
	require.Equal(t, make([]float32, 1000), floats(t, x))
	require.NoError(t, tensor.Fits(nil, tensor.Spec{Shape: tensor.Shape{1 << 20}, DType: tensor.Float32}))
	require.ErrorContains(t, tensor.Fits(far, tensor.Spec{Shape: tensor.Shape{1 << 20}, DType: tensor.Float32}),
		"memory limit of 1048576")
	large := tensor.FromBytes(far, tensor.Spec{Shape: tensor.Shape{1 << 19}, DType: tensor.Float32}, make([]byte, 4<<19))
	require.ErrorContains(t, large.Err(), "memory limit")
}
