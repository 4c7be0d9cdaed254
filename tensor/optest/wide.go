package optest

import (
	"flag"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/testdevice"
	"github.com/mlxlua/mlxlua/tensor"
)

// GPUs have no float64. On such a device finite differences, which want it, are the CPU's, and what else is of float64
// is left out: the tests on the CPU have it.

// Computes reports whether the tests' device computes with a dtype.
func Computes(t testing.TB, d tensor.DType) bool {
	t.Helper()
	Open(t)
	dev, err := tensor.MetalDevice(tensor.DefaultDevice())
	require.NoError(t, err)
	return d != tensor.Float64 || dev.Info().Float64
}

// Computed are those dtypes of a list that the tests' device computes with.
func Computed(t testing.TB, all ...tensor.DType) []tensor.DType {
	t.Helper()
	return slices.DeleteFunc(slices.Clone(all), func(d tensor.DType) bool { return !Computes(t, d) })
}

// Wide is a context of the CPU, which computes with all dtypes.
func Wide(t testing.TB) *tensor.Ctx {
	t.Helper()
	Open(t)
	s, err := tensor.DefaultStream(tensor.DeviceID{Kind: tensor.CPU})
	require.NoError(t, err)
	return &tensor.Ctx{Stream: s}
}

// isFloat64 reports whether a case of golden data has float64.
func (c goldenCase) isFloat64() bool {
	for _, s := range append(c.In[:len(c.In):len(c.In)], c.Out...) {
		if strings.Contains(s, " float64 ") {
			return true
		}
	}
	return false
}

// lacks reports whether an error is that the device has no float64.
func lacks(t *testing.T, err error) bool {
	t.Helper()
	return err != nil && strings.Contains(err.Error(), "asks for float64") && !Computes(t, tensor.Float64)
}

// inPlace is the CPU with the place of the tests' device.
var inPlace = sync.OnceValues(func() (*metal.Device, error) {
	dev, err := tensor.MetalDevice(tensor.DefaultDevice())
	if err != nil {
		return nil, err
	}
	return metal.NewDevice(testdevice.NewAs(func(info *metal.Info) {
		info.Host, info.Index, info.ID = false, dev.Info().Index, "in place of "+dev.Info().ID
	}), metal.DeviceOptions{})
})

// oneByOne has tests wait for each other where onCPU is needed: on a device without float64.
func oneByOne() {
	flag.Parse()
	if testdevice.Name() == "cpu" || opened() != nil {
		return // a device that does not open is an error of each test
	}
	if dev, err := tensor.MetalDevice(tensor.DefaultDevice()); err == nil && !dev.Info().Float64 {
		_ = flag.Set("test.parallel", "1") // testing has the flag
	}
}

// onCPU has f run on the CPU in place of the tests' device, which other tests must not use meanwhile.
func onCPU(t *testing.T, f func()) {
	t.Helper()
	own, err := tensor.MetalDevice(tensor.DefaultDevice())
	require.NoError(t, err)
	cpu, err := inPlace()
	require.NoError(t, err)
	tensor.SetDevice(cpu)
	defer tensor.SetDevice(own)
	f()
}
