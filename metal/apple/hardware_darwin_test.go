package apple_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/apple"
	"github.com/mlxlua/mlxlua/metal/drivertest"
)

// TestOnThisMac: the driver does what drivers must, on the GPU of this Mac:
//
//	MLXLUA_TEST_DEVICE=metal go test ./metal/apple -run TestOnThisMac -v
func TestOnThisMac(t *testing.T) {
	if os.Getenv("MLXLUA_TEST_DEVICE") != "metal" {
		t.Skip("MLXLUA_TEST_DEVICE=metal asks for it")
	}
	drivertest.Run(t, func(t *testing.T) metal.Driver {
		d, err := apple.Open()
		require.NoError(t, err)
		return d
	})
}
