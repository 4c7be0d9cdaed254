package ops_test

import (
	"testing"

	"github.com/mlxlua/mlxlua/tensor/optest"
)

func TestHyperbolics(t *testing.T) {
	t.Parallel()
	optest.Elementwise(t, "sinh cosh tanh arcsinh", uniform)
	optest.Elementwise(t, "arccosh", optest.Uniform(1.25, 4))
	optest.Elementwise(t, "arctanh", optest.Uniform(-0.75, 0.75))
}
