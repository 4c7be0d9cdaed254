package ops_test

import (
	"testing"

	"github.com/mlxlua/mlxlua/tensor/optest"
)

func TestLogic(t *testing.T) {
	t.Parallel()
	optest.Flat(t, "logical_not", uniform)
	optest.Flat(t, "logical_and logical_or logical_xor", uniform, uniform)
}
