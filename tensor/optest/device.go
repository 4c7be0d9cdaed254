package optest

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

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
