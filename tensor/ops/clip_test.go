package ops_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/optest"
)

// Clip has no op of its own. Without one of the bounds it is Maximum or Minimum; without both it is an error.
func TestClip(t *testing.T) {
	t.Parallel()
	x, low, high := optest.In("n,m", optest.Distinct(0.03125)), optest.In("m", optest.Uniform(-1, -0.75)),
		optest.In("", optest.Uniform(0.75, 1))
	for name, f := range map[string]func(in []*array) *array{
		"clip":      func(in []*array) *array { return ops.Clip(in[0], in[1], in[2]) },
		"clip low":  func(in []*array) *array { return ops.Clip(in[0], in[1], nil) },
		"clip high": func(in []*array) *array { return ops.Clip(in[0], nil, in[1]) },
	} {
		c := optest.Case{Inputs: []optest.Input{x, low, high}}
		if name != "clip" {
			c.Inputs = c.Inputs[:2]
		}
		optest.Run(t, optest.Subject{Name: name, Ops: []string{"maximum", "minimum"}, Fn: optest.One(f),
			Cases: []optest.Case{c}, Second: true})
	}
	require.ErrorContains(t, ops.Clip(ops.Number(1, tensor.Float32), nil, nil).Err(), "[clip] both bounds are missing")
}
