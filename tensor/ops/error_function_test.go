package ops_test

import (
	"testing"

	"github.com/mlxlua/mlxlua/tensor/optest"
)

func TestErrorFunction(t *testing.T) {
	t.Parallel()
	optest.Elementwise(t, "erf", uniform)
	optest.Elementwise(t, "erfinv", optest.Uniform(-0.75, 0.75))
}
