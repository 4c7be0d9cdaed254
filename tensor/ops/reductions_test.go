package ops_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/internal/brief"
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/optest"
)

func TestReductions(t *testing.T) {
	t.Parallel()
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
	t.Parallel()
	optest.Open(t)
	x := ops.FromFloats([]float64{1, 3}, []int{2}, tensor.Float32)
	require.Equal(t, []float64{math.Inf(1)}, optest.Values32(t, ops.Var(x, nil, false, 5)))
	require.Equal(t, []float64{math.Inf(1)}, optest.Values32(t, ops.Std(x, nil, false, 2)))
	require.Equal(t, []float64{2}, optest.Values32(t, ops.Var(x, nil, false, 1)))
}

func TestSoftmax(t *testing.T) {
	t.Parallel()
	cases := inputs(optest.Uniform(-6, 6), "n,m", "n,m,2")
	optest.Run(t, optest.Subject{Name: "softmax", Fn: optest.Call("softmax", "axis", -1), Cases: cases, Second: true})
	optest.Run(t, optest.Subject{Name: "softmax first", Fn: optest.Call("softmax", "axis", 0), Cases: cases, Second: true})
}

// TestAxesApart: axes that are not neighbours are reduced in two steps where the last rows are long, in
// every layout alike.
func TestAxesApart(t *testing.T) {
	t.Parallel()
	brief.OnlyValues(t)
	optest.Open(t)
	for _, shape := range [][]int{{5, 7, 40}, {3, 2, 5, 1, 33}, {64, 30, 64}, {2, 3, 40, 2, 50}, {1, 9, 7000},
		{2, 4, 40, 1}} {
		axes := []int{0, 2}
		if len(shape) == 5 {
			axes = append(axes, 4)
		}
		for _, d := range []tensor.DType{tensor.Int32, tensor.Float32, tensor.Bool} {
			x := optest.Noise(d, shape...)
			turned := ops.Transpose(ops.Contiguous(ops.Transpose(x, nil), false), nil)
			for name, f := range map[string]func(a *array, axes []int, keepdims bool, c ...*ctx) *array{
				"sum": ops.Sum, "max": ops.Max, "all": ops.All} {
				got, want := f(x, axes, true), x
				if name == "sum" && d == tensor.Float32 {
					require.Equal(t, optest.Bytes(t, got), optest.Bytes(t, f(turned, axes, true)), "%s of %v", name, shape)
					continue // other orders round otherwise
				}
				for _, axis := range axes {
					want = f(want, []int{axis}, true)
				}
				require.Equal(t, optest.Bytes(t, want), optest.Bytes(t, got), "%s of %v %v", name, d, shape)
				require.Equal(t, optest.Bytes(t, want), optest.Bytes(t, f(turned, axes, true)), "%s of %v %v", name, d, shape)
			}
		}
	}
}
