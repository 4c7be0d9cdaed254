package ops_test

import (
	"testing"

	"github.com/mlxlua/mlxlua/tensor/optest"
)

func TestExponentials(t *testing.T) {
	t.Parallel()
	optest.Elementwise(t, "exp expm1", uniform)
	optest.Elementwise(t, "sigmoid", optest.Uniform(-6, 6))
	optest.Elementwise(t, "log log2 log10", positive)
	optest.Elementwise(t, "log1p", optest.Uniform(-0.5, 4))
	optest.Elementwise(t, "logaddexp", uniform, uniform)
}
