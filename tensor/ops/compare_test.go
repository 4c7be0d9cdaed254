package ops_test

import (
	"testing"

	"github.com/mlxlua/mlxlua/tensor/optest"
)

func TestComparisons(t *testing.T) {
	optest.Flat(t, "equal not_equal greater greater_equal less less_equal", uniform, uniform)
	optest.Elementwise(t, "maximum minimum", optest.Distinct(0), optest.Distinct(0.0625)) // no ties
}
