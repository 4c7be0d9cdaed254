package ops_test

import (
	"testing"

	"github.com/mlxlua/mlxlua/tensor/optest"
)

func TestAngles(t *testing.T) {
	t.Parallel()
	optest.Elementwise(t, "degrees radians", uniform)
}
