package ops_test

import (
	"testing"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/optest"
)

func TestWhere(t *testing.T) {
	t.Parallel()
	mask := optest.In("n,m", optest.Ints(0, 1)).As(tensor.Bool)
	x, y := optest.In("n,m", uniform), optest.In("m", uniform)
	optest.Run(t, optest.Subject{
		Name: "where", Fn: optest.Call("where"), Second: true,
		Cases: []optest.Case{{Inputs: []optest.Input{mask, x, y}},
			{Inputs: []optest.Input{mask, y, optest.In("", optest.Ints(1, 1))}}},
	})
}

func TestStopGradient(t *testing.T) {
	t.Parallel()
	optest.Flat(t, "stop_gradient", uniform)
}

func TestAsType(t *testing.T) {
	t.Parallel()
	for _, to := range tensor.DTypes() {
		if !optest.Computes(t, to) {
			continue
		}
		x := optest.In("n,m", optest.Uniform(0, 9))
		if to != tensor.Float32 && to != tensor.Float64 {
			x = x.Const() // a staircase: its gradient is the cotangent, as in MLX, which finite differences do not see
		}
		optest.Run(t, optest.Subject{
			Name: "astype " + to.String(), Ops: []string{"astype"}, Fn: optest.Call("astype", "dtype", to),
			Cases: []optest.Case{{Inputs: []optest.Input{x}}},
		})
	}
}
