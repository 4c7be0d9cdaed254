package drivers_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal/drivers"
)

func TestOpen(t *testing.T) {
	require.Contains(t, drivers.Names(), "cpu")
	for _, name := range []string{"", "auto", "checked", "cpu", "cpu:0"} {
		dev, err := drivers.Open(drivers.Options{Name: name})
		require.NoError(t, err, name)
		require.NotEmpty(t, dev.Info().Kind)
		require.NoError(t, dev.Close())
	}
	_, err := drivers.Open(drivers.Options{Name: "vulkan"})
	require.ErrorContains(t, err, `[device] there is no driver "vulkan"`, "a device that is missing is never another one")
	require.ErrorContains(t, err, "cpu")
	if runtime.GOOS != "darwin" {
		_, err = drivers.Open(drivers.Options{Name: "metal"})
		require.ErrorContains(t, err, "metal: GPUs of Apple's are used on macOS only")
	}
	_, err = drivers.Open(drivers.Options{Name: "cuda:77"})
	require.ErrorContains(t, err, "[device] no device could be opened: cuda: ", "nor is one of a build that opens none")
	for _, name := range []string{"cpu:1", "cpu:", "cpu:-1", "cpu:x", "auto:0", "metal:1", "checked:0"} {
		_, err := drivers.Open(drivers.Options{Name: name})
		require.ErrorContains(t, err, name)
	}
}
