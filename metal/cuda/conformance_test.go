package cuda

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/drivertest"
	"github.com/mlxlua/mlxlua/metal/front"
)

// newFake makes a driver of a card of the tests.
func newFake(t testing.TB, c *card) *Driver {
	t.Helper()
	d, err := newDriver(c, 0, front.Compile)
	require.NoError(t, err)
	return d
}

// TestConformance: the driver does what drivers must, on a card that runs everywhere.
func TestConformance(t *testing.T) {
	drivertest.Run(t, func(t *testing.T) metal.Driver {
		c := newCard()
		c.slow = true
		return newFake(t, c)
	})
}
