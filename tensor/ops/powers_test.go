package ops_test

import (
	"testing"

	"github.com/mlxlua/mlxlua/tensor/optest"
)

func TestPowers(t *testing.T) {
	t.Parallel()
	optest.Elementwise(t, "square", uniform)
	optest.Elementwise(t, "sqrt rsqrt reciprocal", positive)
	optest.Elementwise(t, "power", optest.Uniform(0.5, 2), optest.Uniform(0, 3))
}
