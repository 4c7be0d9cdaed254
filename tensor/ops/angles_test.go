package ops_test

import (
	"testing"

	"github.com/mlxlua/mlxlua/tensor/optest"
)

func TestAngles(t *testing.T) { optest.Elementwise(t, "degrees radians", uniform) }
