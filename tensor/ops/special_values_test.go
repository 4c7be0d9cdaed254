package ops_test

import (
	"testing"

	"github.com/mlxlua/mlxlua/tensor/optest"
)

func TestSpecialValues(t *testing.T) { optest.Flat(t, "isnan isinf isfinite", uniform) }
