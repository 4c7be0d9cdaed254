package ops_test

import (
	"testing"

	"github.com/mlxlua/mlxlua/tensor/optest"
)

func TestTrigonometry(t *testing.T) {
	t.Parallel()
	optest.Elementwise(t, "sin cos arctan", uniform)
	optest.Elementwise(t, "tan", optest.Uniform(-1, 1))
	optest.Elementwise(t, "arcsin arccos", optest.Uniform(-0.75, 0.75))
	optest.Elementwise(t, "arctan2", uniform, positive)
}
