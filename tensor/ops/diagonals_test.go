package ops_test

import (
	"testing"

	"github.com/mlxlua/mlxlua/tensor/optest"
)

func TestDiagonals(t *testing.T) {
	t.Parallel()
	for _, k := range []int{0, 2, -1} {
		optest.Run(t, optest.Subject{
			Name: "diag", Ops: []string{"diag", "diagonal_update"}, Fn: optest.Call("diag", "k", k), Second: true,
			Cases: inputs(uniform, "n", "0", "n,m"),
		})
	}
	optest.Run(t, optest.Subject{
		Name: "trace", Ops: []string{"diagonal", "diagonal_update"}, Fn: optest.Call("trace", "offset", 1, "axis2", -1),
		Cases: inputs(uniform, "n,m,4", "n,m"), Second: true,
	})
}
