package optest

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal/drivers"
	"github.com/mlxlua/mlxlua/tensor"
)

// opened opens the CPU's device once for all tests of a process.
var opened = sync.OnceValue(func() error {
	dev, err := drivers.Open(drivers.Options{Name: "cpu"})
	if err == nil {
		tensor.SetDevice(dev)
	}
	return err
})

// Open opens the device that tests evaluate on, if it is not open yet.
func Open(t testing.TB) {
	t.Helper()
	require.NoError(t, opened())
}
