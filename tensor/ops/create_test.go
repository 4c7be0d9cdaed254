package ops_test

import (
	"testing"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/optest"
)

// TestShapesAlone: ops that read shapes only, and the constants that they fill.
func TestShapesAlone(t *testing.T) {
	t.Parallel()
	optest.Run(t, optest.Subject{
		Name: "number_of_elements", Cases: inputs(uniform, "n,m"), NonDiff: true,
		Fn: optest.One(func(in []*array) *array { return ops.Size(in[0], []int{-1}, tensor.Float32) }),
	})
	for _, name := range []string{"zeros_like", "ones_like"} {
		optest.Run(t, optest.Subject{
			Name: name, Ops: []string{"broadcast_to"}, Cases: inputs(uniform, "n,m"), NonDiff: true, Fn: optest.Call(name),
		})
	}
	optest.Run(t, optest.Subject{
		Name: "full_like", Ops: []string{"broadcast_to"}, Cases: []optest.Case{optest.Of("n,m", "m")}, Second: true,
		Fn: optest.Call("full_like"),
	})
	optest.Run(t, optest.Subject{
		Name: "add arange", Ops: []string{"arange"}, Cases: inputs(uniform, "n,4"), Second: true,
		Fn: optest.One(func(in []*array) *array { return ops.Add(in[0], ops.Arange(0, 4, 1, tensor.Float32)) }),
	})
}
