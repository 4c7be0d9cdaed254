package optest

import (
	"bytes"
	"flag"
	"math"
	"os"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/testdevice"
	"github.com/mlxlua/mlxlua/tensor"
)

// opened opens the tests' device once for all tests of a process.
var opened = sync.OnceValue(func() error {
	devs, err := testdevice.Open()
	if err == nil {
		for _, dev := range devs {
			tensor.SetDevice(dev)
		}
	}
	return err
})

// Open opens the device that tests evaluate on, if it is not open yet.
func Open(t testing.TB) {
	t.Helper()
	require.NoError(t, opened())
}

// twins are default streams of two devices that differ in what metal.Info.Host says: true, then false.
var twins = sync.OnceValues(func() (streams [2]*tensor.Stream, err error) {
	for i, host := range []bool{true, false} {
		dev, err := metal.NewDevice(testdevice.NewOther(host), metal.DeviceOptions{})
		if err != nil {
			return streams, err
		}
		if streams[i], err = tensor.DefaultStream(tensor.SetDevice(dev)); err != nil {
			return streams, err
		}
	}
	return streams, nil
})

// gpu is the default stream of a device that says it is a GPU.
var gpu = sync.OnceValues(func() (*tensor.Stream, error) {
	dev, err := metal.NewDevice(testdevice.NewGPU(), metal.DeviceOptions{})
	if err != nil {
		return nil, err
	}
	return tensor.DefaultStream(tensor.SetDevice(dev))
})

// GPU is a context of the CPU that says it is a GPU.
func GPU(t *testing.T) *tensor.Ctx {
	t.Helper()
	Open(t)
	s, err := gpu()
	require.NoError(t, err)
	return &tensor.Ctx{Stream: s}
}

// AsGPU calls f with a context of the CPU and one of a device that differs in saying that it is a GPU: there ops choose
// kernels that may add up in other orders. Results of one name must be near: by so many units in the last place of
// their dtype's largest element.
func AsGPU(t *testing.T, units float64, f func(c *tensor.Ctx) map[string]*tensor.Array) {
	t.Helper()
	Open(t)
	streams, err := twins()
	require.NoError(t, err)
	other := GPU(t).Stream
	want := f(&tensor.Ctx{Stream: streams[0]})
	for name, y := range f(&tensor.Ctx{Stream: other}) {
		require.NoError(t, y.Err(), name)
		require.Same(t, other, y.Value().Node.Stream(), name)
		require.Equal(t, want[name].Shape(), y.Shape(), name)
		a, b := decode(y.DType(), Bytes(t, want[name])), decode(y.DType(), Bytes(t, y))
		most := 0.0
		for _, v := range a {
			most = max(most, math.Abs(real(v)))
		}
		step := map[tensor.DType]float64{tensor.BFloat16: 1. / 256, tensor.Float16: 1. / 2048}[y.DType()]
		if step == 0 {
			step = 1. / (1 << 24)
		}
		for i := range a {
			require.InDelta(t, real(a[i]), real(b[i]), units*step*most, "%s, element %d", name, i)
		}
	}
}

var allPlain = flag.Bool("plain.all", false, "compare kernels with plain ones in all cases, not in a part of them")

// Spared reports whether case i of a comparison with plain kernels is left out. Without the flag -plain.all every other
// one is; a -short run makes every third one, and on the interpreter every ninth.
func Spared(i int) bool {
	switch {
	case *allPlain:
		return false
	case testing.Short() && os.Getenv("MLXLUA_JIT") == "0":
		return i%9 != 0
	case testing.Short():
		return i%3 != 0
	}
	return i%2 != 0
}

// AsPlain calls f with a context of the CPU and one of a device that differs in saying that kernels do not run on the
// host's processors: there ops choose their plain kernels. Results of one name must have the same bytes.
func AsPlain(t *testing.T, f func(c *tensor.Ctx) map[string]*tensor.Array) {
	t.Helper()
	Open(t)
	streams, err := twins()
	require.NoError(t, err)
	want := f(&tensor.Ctx{Stream: streams[1]})
	for name, y := range f(&tensor.Ctx{Stream: streams[0]}) {
		require.NoError(t, y.Err(), name)
		require.Same(t, streams[0], y.Value().Node.Stream(), name)
		require.Same(t, streams[1], want[name].Value().Node.Stream(), name)
		if got, plain := Bytes(t, y), Bytes(t, want[name]); !bytes.Equal(plain, got) {
			require.Equal(t, decode(y.DType(), plain), decode(y.DType(), got), name)
			require.Equal(t, plain, got, name)
		}
	}
}
