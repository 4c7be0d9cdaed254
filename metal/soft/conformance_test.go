package soft

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/drivertest"
	"github.com/mlxlua/mlxlua/metal/jit"
)

// executors are all that a driver can run kernels with here, and the interpreter of a machine that refuses pages of
// machine code.
func executors() map[string]executor {
	best, why := jit.Best()
	all := map[string]executor{
		"refused": chooseExecutor("", "", 0, errors.New("pages of machine code are refused")),
	}
	for _, name := range []string{"interp", "avx2", "avx512"} {
		if e := chooseExecutor(name, "", best, why); e.jit || name == "interp" {
			all[name] = e
		}
	}
	return all
}

// TestConformance: each executor that this machine has does what drivers must.
func TestConformance(t *testing.T) {
	for name, e := range executors() {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, name == "avx2" || name == "avx512", e.jit)
			drivertest.Run(t, func(*testing.T) metal.Driver { return newDriver(Options{Library: drivertest.Products{}}, e) })
		})
	}
}

// TestDiscreteConformance: so does the processor behind memory of its own.
func TestDiscreteConformance(t *testing.T) {
	drivertest.Run(t, func(*testing.T) metal.Driver {
		return drivertest.NewDiscrete(New(Options{Hidden: true, Library: drivertest.Products{}}), 1)
	})
}
