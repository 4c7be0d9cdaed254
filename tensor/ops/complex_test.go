package ops_test

import (
	"testing"

	"github.com/mlxlua/mlxlua/tensor/optest"
)

func TestComplexParts(t *testing.T) {
	t.Parallel()
	optest.Elementwise(t, "conjugate real imag", uniform)
}
