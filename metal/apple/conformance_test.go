package apple_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/apple"
	"github.com/mlxlua/mlxlua/metal/apple/fake"
	"github.com/mlxlua/mlxlua/metal/drivertest"
)

// open makes a driver on a machine. When the test ends, a Mac has had nothing to object to, and has everything back.
func open(t *testing.T, m fake.Machine) (*apple.Driver, *fake.Runtime) {
	t.Helper()
	rt := fake.New(m)
	d, err := apple.New(rt)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, d.Close())
		require.Empty(t, rt.Problems())
		require.Empty(t, rt.Leaks())
	})
	return d, rt
}

// TestConformance: the driver does what drivers must, on every system.
func TestConformance(t *testing.T) {
	drivertest.Run(t, func(t *testing.T) metal.Driver {
		d, _ := open(t, fake.M1)
		return d
	})
}
