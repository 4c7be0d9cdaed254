package ops_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/optest"
)

func TestReductions(t *testing.T) {
	forms := map[string][]any{"": nil, " last": {"axis", -1}, " first, kept": {"axis", 0, "keepdims", true}}
	for _, name := range strings.Fields("sum prod mean var std max min all any logsumexp argmax argmin") {
		for form, args := range forms {
			more := map[string][]any{"": nil}
			if name == "var" || name == "std" {
				more[" less one"] = []any{"ddof", 1}
			}
			for less, ddof := range more {
				op := optest.Subject{
					Name: name + less + form, Ops: []string{name}, Second: name != "all" && name != "any",
					Fn:    optest.Call(name, append(ddof[:len(ddof):len(ddof)], args...)...),
					Cases: inputs(optest.Distinct(0.5), "n,m", "2,n,m"),
				}
				if name == "prod" {
					op.Cases = inputs(optest.Uniform(0.5, 2), "n,m")
				}
				optest.Run(t, op)
			}
		}
	}
}

// A divisor below 0 counts as 0, as in MLX: no variance is negative.
func TestVarianceOfFew(t *testing.T) {
	optest.Open(t)
	x := ops.FromFloats([]float64{1, 3}, []int{2}, tensor.Float32)
	require.Equal(t, []float64{math.Inf(1)}, optest.Values32(t, ops.Var(x, nil, false, 5)))
	require.Equal(t, []float64{math.Inf(1)}, optest.Values32(t, ops.Std(x, nil, false, 2)))
	require.Equal(t, []float64{2}, optest.Values32(t, ops.Var(x, nil, false, 1)))
}

func TestSoftmax(t *testing.T) {
	cases := inputs(optest.Uniform(-6, 6), "n,m", "n,m,2")
	optest.Run(t, optest.Subject{Name: "softmax", Fn: optest.Call("softmax", "axis", -1), Cases: cases, Second: true})
	optest.Run(t, optest.Subject{Name: "softmax first", Fn: optest.Call("softmax", "axis", 0), Cases: cases, Second: true})
}
