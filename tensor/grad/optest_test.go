package grad_test

import (
	"testing"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/grad"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/optest"
)

// TestTransformsAsOps runs the harness over functions made of the transforms: their graphs are graphs like others.
func TestTransformsAsOps(t *testing.T) {
	f := one(func(x *array) *array { return ops.Sin(ops.Multiply(x, x)) })
	k := &grad.Custom{F: f, VJP: func(primals, cots, _ []*array) ([]*array, error) {
		_, g, err := grad.VJP(f, primals, cots)
		return g, err
	}}
	for _, c := range []struct {
		name  string
		prims []string
		f     grad.Func
	}{
		{"custom_function", nil, callOf(k)},
		{"checkpoint", []string{"custom_function", "recompute"}, grad.Checkpoint(f)},
		{"vjp", []string{"watch"}, func(in []*array) ([]*array, error) {
			_, g, err := grad.VJP(f, in, in)
			return g, err
		}},
		{"jvp", []string{"watch"}, func(in []*array) ([]*array, error) {
			_, g, err := grad.JVP(f, in, in)
			return g, err
		}},
		{"vmap", []string{"watch"}, grad.VMap(f, []int{1}, []int{-1})},
	} {
		optest.Run(t, optest.Subject{
			Name: c.name, Ops: c.prims, Second: true,
			Fn: func(in []*array) []*array {
				out, err := c.f(in)
				if err != nil {
					panic(err)
				}
				return out
			},
			Cases:  []optest.Case{{Inputs: []optest.Input{optest.In("n,m", optest.Uniform(-1, 1))}}},
			DTypes: []tensor.DType{tensor.Float32, tensor.BFloat16, tensor.Complex64},
		})
	}
}
