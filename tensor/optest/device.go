package optest

import (
	"bytes"
	"flag"
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
