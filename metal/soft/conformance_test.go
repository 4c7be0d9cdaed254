package soft_test

import (
	"testing"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/drivertest"
	"github.com/mlxlua/mlxlua/metal/soft"
)

func TestConformance(t *testing.T) {
	drivertest.Run(t, func(*testing.T) metal.Driver { return soft.New(soft.Options{}) })
}
