package ops_test

import (
	"testing"

	"github.com/mlxlua/mlxlua/tensor/optest"
)

func TestTriangles(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"tril", "triu"} {
		for _, k := range []int{0, 1, -1} {
			optest.Run(t, optest.Subject{Name: name, Ops: []string{"where"}, Fn: optest.Call(name, "k", k),
				Cases: inputs(uniform, "n,m", "2,n,n"), Second: true})
		}
	}
}
