package ops_test

import (
	"testing"

	"github.com/mlxlua/mlxlua/tensor/optest"
)

func TestRounding(t *testing.T) {
	t.Parallel()
	optest.Flat(t, "floor ceil trunc", uniform)
}
