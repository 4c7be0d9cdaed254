package ops_test

import (
	"testing"

	"github.com/mlxlua/mlxlua/tensor/optest"
)

func TestSigns(t *testing.T) {
	t.Parallel()
	optest.Elementwise(t, "negative", uniform)
	optest.Elementwise(t, "abs", optest.Distinct(0.0625)) // no kink
	optest.Flat(t, "sign", uniform)
}
