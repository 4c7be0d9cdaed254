package optest_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/optest"
)

type array = tensor.Array

// child names, in the environment, the broken op that TestBroken runs.
const child = "OPTEST_BROKEN"

// broken are ops with one fault each, and what Run must say of it.
var broken = map[string]struct {
	op   func() optest.Subject
	text string
}{
	"vjp": {func() optest.Subject {
		return square(func(r *tensor.Rules[tensor.None]) {
			r.VJP = func(g *tensor.VJP[tensor.None]) []*array { return []*array{ops.Multiply(g.Cot[0], g.In[0])} } // not 2x
			r.JVP = nil
		})
	}, "finite differences give"},
	"vjp's shape": {func() optest.Subject {
		return square(func(r *tensor.Rules[tensor.None]) {
			r.VJP = func(g *tensor.VJP[tensor.None]) []*array { return []*array{ops.Sum(g.Cot[0], nil, false)} }
		})
	}, "BUG: odd: gradient 0 is float64 ()"},
	"jvp": {func() optest.Subject {
		return square(func(r *tensor.Rules[tensor.None]) {
			r.JVP = func(g *tensor.JVP[tensor.None]) []*array { return []*array{ops.Multiply(g.Tan[0], g.In[0])} }
		})
	}, "u.Jv and v.J'u"},
	"second": {func() optest.Subject {
		return square(func(r *tensor.Rules[tensor.None]) {
			r.VJP = func(g *tensor.VJP[tensor.None]) []*array {
				x := ops.StopGradient(g.In[0])
				return []*array{ops.Multiply(g.Cot[0], ops.Add(x, x))}
			}
			r.JVP = nil
		})
	}, "second derivative"},
	"vmap": {func() optest.Subject {
		return square(func(r *tensor.Rules[tensor.None]) {
			r.VMap = func(g *tensor.VMap[tensor.None]) ([]*array, []int) {
				return []*array{ops.Multiply(g.In[0], ops.Exp(g.In[0]))}, g.Axes
			}
		})
	}, "axes [0], output 0"},
	"replay": {func() optest.Subject {
		op := square(nil)
		op.Fn = func(in []*array) []*array { // a number that is right at one shape
			n := in[0].Spec().Shape.Size()
			return []*array{ops.Multiply(in[0], ops.Number(float64(n), in[0].DType()))}
		}
		return op
	}, "from map[b:2 k:5 m:4 n:3] to"},
	"guard": {func() optest.Subject {
		op := square(nil)
		op.Fn = func(in []*array) []*array {
			return []*array{ops.BroadcastTo(in[0], tensor.Sizes(in[0].Shape()...))}
		}
		op.NoVMap = "another fault"
		return op
	}, "the function ran again at the second shape"},
	"golden": {func() optest.Subject {
		op := square(nil)
		op.Name, op.Golden = "slice_update", "indexing.json"
		op.Fn = func(in []*array) []*array { return []*array{in[0]} }
		op.Cases = nil
		return op
	}, "case 0, output 0 of"},
	"zero gradient": {func() optest.Subject {
		op := square(nil)
		op.NonDiff = true
		return op
	}, "Should be zero"},
	"accepts": {func() optest.Subject {
		op := square(nil)
		op.Refuse = []tensor.DType{tensor.Int8}
		return op
	}, "refuse"},
	"error": {func() optest.Subject {
		op := square(nil)
		op.Bad = []optest.Bad{{Name: "shapes", Text: "no such text", Make: func() *array {
			return ops.Add(ops.Zeros(tensor.Sizes(2), tensor.Float32), ops.Zeros(tensor.Sizes(3), tensor.Float32))
		}}}
		return op
	}, "does not contain"},
}

var declared int

// square is x*x as an op of its own, with rules as change leaves them.
func square(change func(*tensor.Rules[tensor.None])) optest.Subject {
	declared++
	op := tensor.Declare[tensor.None]("odd" + strings.Repeat("ly", declared-1))
	r := tensor.Rules[tensor.None]{
		Shape: func(in []tensor.Spec, _ tensor.None, outs []tensor.Shape) ([]tensor.Shape, error) {
			return append(outs, in[0].Shape), nil
		},
		DType: func(in []tensor.Spec, _ tensor.None, outs []tensor.DType) ([]tensor.DType, error) {
			return append(outs, in[0].DType), nil
		},
		Expr: func(tensor.None, []tensor.DType) string { return "$0 * $0" },
		VJP: func(g *tensor.VJP[tensor.None]) []*array {
			return []*array{ops.Multiply(g.Cot[0], ops.Add(g.In[0], g.In[0]))}
		},
		JVP: func(g *tensor.JVP[tensor.None]) []*array {
			return []*array{ops.Multiply(g.Tan[0], ops.Add(g.In[0], g.In[0]))}
		},
	}
	if change != nil {
		change(&r)
	}
	op.Define(r)
	return optest.Subject{
		Name: "odd", Second: true, DTypes: []tensor.DType{tensor.Float32, tensor.Int32},
		Fn:    func(in []*array) []*array { return []*array{op.One(tensor.Call(nil), tensor.None{}, in[0])} },
		Cases: []optest.Case{{Inputs: []optest.Input{optest.In("n,m", optest.Uniform(0.5, 2))}}},
	}
}

// TestSound: the op is right as long as nothing breaks it, and as well without a rule for forward mode.
func TestSound(t *testing.T) {
	if os.Getenv(child) == "" {
		optest.Run(t, square(nil))
		op := square(func(r *tensor.Rules[tensor.None]) { r.JVP = nil })
		op.Name += " without jvp"
		optest.Run(t, op)
	}
}

// TestBroken runs every broken op in a process of its own, where its test must fail and say why.
func TestBroken(t *testing.T) {
	if name := os.Getenv(child); name != "" {
		optest.Run(t, broken[name].op())
		return
	}
	optest.Open(t)
	for name, b := range broken {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(os.Args[0], "-test.run=^TestBroken$")
			cmd.Env = append(os.Environ(), child+"="+name)
			out, err := cmd.CombinedOutput()
			require.Error(t, err, "the harness found nothing")
			require.Contains(t, string(out), b.text)
			require.NotContains(t, string(out), "panic:")
		})
	}
}
