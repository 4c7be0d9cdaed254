package ops_test

import (
	"testing"

	"github.com/mlxlua/mlxlua/tensor/optest"
)

func TestRoll(t *testing.T) {
	t.Parallel()
	for _, args := range [][]any{
		{"shift", 1, "axis", 0}, {"shift", -5, "axis", -1}, {"shift", 7}, {"shift", []any{1, -2}, "axis", []any{0, -1}},
	} {
		optest.Run(t, optest.Subject{
			Name: "roll", Fn: optest.Call("roll", args...), Cases: inputs(uniform, "n,m", "3,n", "0,n"), Second: true,
		})
	}
}
