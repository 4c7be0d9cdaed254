package ops_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
)

// goldenSpec is a case of testdata/specs.json: a call and the dtype and shape that MLX gives, or nil where it
// refuses.
type goldenSpec struct {
	Op   string
	In   []specText
	Args struct {
		Axes       []int
		Keep       bool
		Shape      []int
		Start, End int
		Numbers    []string
	}
	Out *specText
}

// specText is ["float32", [2, 3]] in JSON.
type specText struct {
	DType tensor.DType
	Shape []int
}

func (s *specText) UnmarshalJSON(b []byte) error {
	var parts [2]json.RawMessage
	var name string
	if err := json.Unmarshal(b, &parts); err != nil {
		return err
	}
	if err := json.Unmarshal(parts[0], &name); err != nil {
		return err
	}
	var err error
	if s.DType, err = tensor.ParseDType(name); err != nil {
		return err
	}
	return json.Unmarshal(parts[1], &s.Shape)
}

// readGolden reads a file that golden.py wrote.
func readGolden[T any](t *testing.T, file string) []T {
	t.Helper()
	b, err := os.ReadFile("testdata/" + file)
	require.NoError(t, err)
	var f struct {
		Header string
		Cases  []T
	}
	require.NoError(t, json.Unmarshal(b, &f))
	require.NotEmpty(t, f.Cases)
	return f.Cases
}

type (
	array = tensor.Array
	ctx   = tensor.Ctx
)

var unaryFuncs = map[string]func(a *array, c ...*ctx) *array{
	"negative": ops.Negative, "abs": ops.Abs, "sign": ops.Sign, "square": ops.Square, "floor": ops.Floor,
	"conjugate": ops.Conjugate, "isnan": ops.IsNaN, "isinf": ops.IsInf, "logical_not": ops.LogicalNot, "exp": ops.Exp,
	"log": ops.Log, "sqrt": ops.Sqrt, "rsqrt": ops.Rsqrt, "sin": ops.Sin, "cos": ops.Cos, "tanh": ops.Tanh,
	"sigmoid": ops.Sigmoid, "real": ops.Real, "imag": ops.Imag, "expm1": ops.Expm1, "log1p": ops.Log1p, "log2": ops.Log2,
	"log10": ops.Log10, "reciprocal": ops.Reciprocal, "tan": ops.Tan, "sinh": ops.Sinh, "cosh": ops.Cosh, "erf": ops.Erf,
	"erfinv": ops.ErfInv, "ceil": ops.Ceil, "isfinite": ops.IsFinite,
	"arcsin": ops.ArcSin, "arccos": ops.ArcCos, "arctan": ops.ArcTan, "arcsinh": ops.ArcSinh, "arccosh": ops.ArcCosh,
	"arctanh": ops.ArcTanh,
}

var binaryFuncs = map[string]func(a, b *array, c ...*ctx) *array{
	"add": ops.Add, "subtract": ops.Subtract, "multiply": ops.Multiply, "divide": ops.Divide,
	"floor_divide": ops.FloorDivide, "remainder": ops.Remainder, "power": ops.Power, "equal": ops.Equal,
	"not_equal": ops.NotEqual, "greater": ops.Greater, "greater_equal": ops.GreaterEqual, "less": ops.Less,
	"less_equal": ops.LessEqual, "maximum": ops.Maximum, "minimum": ops.Minimum, "logical_and": ops.LogicalAnd,
	"logical_or": ops.LogicalOr, "logaddexp": ops.LogAddExp, "arctan2": ops.ArcTan2,
}

var reduceFuncs = map[string]func(a *array, axes []int, keep bool, c ...*ctx) *array{
	"sum": ops.Sum, "prod": ops.Prod, "mean": ops.Mean, "max": ops.Max, "min": ops.Min, "all": ops.All, "any": ops.Any,
	"logsumexp": ops.LogSumExp, "argmax": ops.ArgMax, "argmin": ops.ArgMin,
	"softmax": func(a *array, axes []int, _ bool, c ...*ctx) *array { return ops.Softmax(a, axes, c...) },
	"var":     func(a *array, axes []int, keep bool, c ...*ctx) *array { return ops.Var(a, axes, keep, 0, c...) },
	"std":     func(a *array, axes []int, keep bool, c ...*ctx) *array { return ops.Std(a, axes, keep, 0, c...) },
}

var axesFuncs = map[string]func(a *array, axes []int, c ...*ctx) *array{
	"transpose": ops.Transpose, "expand_dims": ops.ExpandDims, "squeeze": ops.Squeeze,
}

var shapeFuncs = map[string]func(a *array, s tensor.ShapeArg, c ...*ctx) *array{
	"reshape": ops.Reshape, "broadcast_to": ops.BroadcastTo,
}

var pairFuncs = map[string]func(a *array, i, j int, c ...*ctx) *array{
	"flatten": ops.Flatten, "swapaxes": ops.SwapAxes, "moveaxis": ops.MoveAxis,
}

func numbers(t *testing.T, text []string) []float64 {
	out := make([]float64, len(text))
	for i, s := range text {
		v, err := strconv.ParseFloat(s, 64)
		require.NoError(t, err)
		out[i] = v
	}
	return out
}

// call makes the call of a golden case on in.
func (g goldenSpec) call(t *testing.T, in []*array) *array {
	a := g.Args
	switch {
	case unaryFuncs[g.Op] != nil:
		return unaryFuncs[g.Op](in[0])
	case binaryFuncs[g.Op] != nil:
		return binaryFuncs[g.Op](in[0], in[1])
	case reduceFuncs[g.Op] != nil:
		return reduceFuncs[g.Op](in[0], a.Axes, a.Keep)
	case axesFuncs[g.Op] != nil:
		return axesFuncs[g.Op](in[0], a.Axes)
	case shapeFuncs[g.Op] != nil:
		return shapeFuncs[g.Op](in[0], tensor.Sizes(a.Shape...))
	case pairFuncs[g.Op] != nil:
		return pairFuncs[g.Op](in[0], a.Start, a.End)
	}
	n := numbers(t, a.Numbers)
	switch g.Op {
	case "where":
		return ops.Where(in[0], in[1], in[2])
	case "arange":
		return ops.Arange(n[0], n[1], n[2], tensor.Float32)
	case "add_number":
		return ops.Add(in[0], ops.Scalar(n[0], in[0]))
	}
	require.Fail(t, "no function for the op", g.Op)
	return nil
}

// TestSpecs compares dtypes, shapes and refusals with MLX's.
func TestSpecs(t *testing.T) {
	trace := tensor.NewTrace("test", nil)
	defer trace.End()
	for i, g := range readGolden[goldenSpec](t, "specs.json") {
		in := make([]*array, len(g.In))
		for k, s := range g.In {
			in[k] = trace.Placeholder(&ctx{}, tensor.Spec{Shape: s.Shape, DType: s.DType})
		}
		y := g.call(t, in)
		what := fmt.Sprintf("case %d: %s %v %+v", i, g.Op, g.In, g.Args)
		if g.Out == nil {
			require.Error(t, y.Err(), what)
			require.Contains(t, y.Err().Error(), "[", what)
			continue
		}
		require.NoError(t, y.Err(), what)
		require.Equal(t, g.Out.DType, y.DType(), what)
		require.Equal(t, tensor.Shape(g.Out.Shape), y.Spec().Shape, what)
	}
}
