package ops_test

import (
	"testing"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/optest"
)

func TestArithmetic(t *testing.T) {
	t.Parallel()
	optest.Elementwise(t, "add subtract multiply", uniform, uniform)
	optest.Elementwise(t, "divide", uniform, positive)
}

// Layouts may hold zeros between the elements: integers are not divided here.
func TestDivisions(t *testing.T) {
	t.Parallel()
	floats := except(tensor.Complex64, tensor.Bool, tensor.Uint8, tensor.Int32)
	pair := func(a, b string, g, h optest.Gen) optest.Case {
		return optest.Case{Inputs: []optest.Input{optest.In(a, g), optest.In(b, h)}}
	}
	for name, g := range map[string][2]optest.Gen{
		"floor_divide": {optest.Uniform(-6, 6), optest.Uniform(1, 4)},
		"remainder":    {optest.Distinct(0.0625), optest.Ints(3, 3)}, // whose multiples the operand does not hit
	} {
		optest.Run(t, optest.Subject{
			Name: name, Fn: optest.Call(name), DTypes: floats,
			Bad: []optest.Bad{bad("["+name+"] does not take dtype complex64", func() *array {
				z := ops.Zeros(tensor.Sizes(2), tensor.Complex64)
				return map[string]func(a, b *array, c ...*ctx) *array{"floor_divide": ops.FloorDivide,
					"remainder": ops.Remainder}[name](z, z)
			})},
			NonDiff: name == "floor_divide", Second: name == "remainder",
			Cases: []optest.Case{pair("n,m", "n,m", g[0], g[1]), pair("n,1", "m", g[0], g[1]), pair("", "n", g[0], g[1]),
				pair("0,n", "n", g[0], g[1])},
		})
	}
}

func TestQuotientAndRest(t *testing.T) {
	t.Parallel()
	optest.Elementwise(t, "positive", uniform)
	optest.Run(t, optest.Subject{
		Name: "divmod", Ops: []string{"floor_divide", "remainder"}, Fn: optest.Call("divmod"),
		DTypes: except(tensor.Complex64, tensor.Bool, tensor.Uint8, tensor.Int32),
		Cases: []optest.Case{{Inputs: []optest.Input{optest.In("n,m", optest.Distinct(0.0625)),
			optest.In("m", optest.Ints(3, 3))}}},
	})
}
