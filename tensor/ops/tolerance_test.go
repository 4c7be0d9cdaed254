package ops_test

import (
	"testing"

	"github.com/mlxlua/mlxlua/tensor/optest"
)

// The tolerances are wide, so that elements on either side are there.
func TestClose(t *testing.T) {
	t.Parallel()
	for name, nan := range map[string]bool{"": false, " nan": true} {
		for _, op := range []string{"isclose", "allclose"} {
			x, y := optest.In("n,m", optest.Distinct(0)), optest.In("m", optest.Distinct(0))
			optest.Run(t, optest.Subject{
				Name: op + name, Ops: []string{"less_equal", "isinf"}, Cases: []optest.Case{{Inputs: []optest.Input{x, y}}},
				Fn: optest.Call(op, "rtol", 0.5, "atol", 0.25, "equal_nan", nan),
			})
		}
	}
}
