package ops_test

import (
	"maps"
	"math"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/optest"
)

// coveredElsewhere are the ops that run in the tests of ops made of them, or in tests of their own.
var coveredElsewhere = map[string]string{
	"max_or_lowest": "softmax",
}

func TestMain(m *testing.M) { os.Exit(optest.Main(m, coveredElsewhere)) }

// inputs are cases of one input each.
func inputs(g optest.Gen, dims ...string) []optest.Case {
	var cases []optest.Case
	for _, d := range dims {
		cases = append(cases, optest.Case{Inputs: []optest.Input{optest.In(d, g)}})
	}
	return cases
}

var discrete = map[string]bool{
	"sign": true, "floor": true, "ceil": true, "isfinite": true, "isnan": true, "isinf": true, "logical_not": true,
	"stop_gradient": true,
	"floor_divide":  true, "equal": true, "not_equal": true, "greater": true, "greater_equal": true, "less": true,
	"less_equal": true, "logical_and": true, "logical_or": true, "all": true, "any": true, "argmax": true,
	"argmin": true,
}

// unaryInputs are where functions are tried that are not defined, or not smooth, on all of [-2, 2].
var unaryInputs = map[string]optest.Gen{
	"log": optest.Uniform(0.25, 4), "sqrt": optest.Uniform(0.25, 4), "rsqrt": optest.Uniform(0.25, 4),
	"abs": optest.Distinct(0.0625), "sigmoid": optest.Uniform(-6, 6), "log1p": optest.Uniform(-0.5, 4),
	"log2": optest.Uniform(0.25, 4), "log10": optest.Uniform(0.25, 4), "reciprocal": optest.Uniform(0.25, 4),
	"tan": optest.Uniform(-1, 1), "erfinv": optest.Uniform(-0.75, 0.75), "arcsin": optest.Uniform(-0.75, 0.75),
	"arccos": optest.Uniform(-0.75, 0.75), "arccosh": optest.Uniform(1.25, 4), "arctanh": optest.Uniform(-0.75, 0.75),
}

var unaryRefusals = map[string][]tensor.DType{
	"negative": {tensor.Bool}, "floor": {tensor.Complex64}, "sigmoid": {tensor.Complex64}, "ceil": {tensor.Complex64},
	"expm1": {tensor.Complex64}, "erf": {tensor.Complex64}, "erfinv": {tensor.Complex64},
}

func TestUnary(t *testing.T) {
	unary := map[string]func(a *array, c ...*ctx) *array{"stop_gradient": ops.StopGradient}
	for name, f := range unaryFuncs {
		unary[name] = f
	}
	for name, f := range unary {
		g, ok := unaryInputs[name]
		if !ok {
			g = optest.Uniform(-2, 2)
		}
		op := optest.Subject{
			Name: name, Fn: optest.One(func(in []*array) *array { return f(in[0]) }), Cases: inputs(g, "n,m", "", "0,n"),
			Golden: "elementwise.json", NonDiff: discrete[name], Second: !discrete[name], Refuse: unaryRefusals[name],
		}
		if op.Refuse != nil {
			op.DTypes = except(op.Refuse...)
		}
		optest.Run(t, op)
	}
}

// except is the dtypes of layouts without those that the op refuses.
func except(no ...tensor.DType) []tensor.DType {
	var out []tensor.DType
	for _, d := range []tensor.DType{tensor.Float32, tensor.Float16, tensor.BFloat16, tensor.Int32, tensor.Uint8,
		tensor.Bool, tensor.Complex64} {
		keep := true
		for _, n := range no {
			keep = keep && n != d
		}
		if keep {
			out = append(out, d)
		}
	}
	return out
}

func TestBinary(t *testing.T) {
	type gens struct{ a, b optest.Gen }
	special := map[string]gens{
		"divide":       {optest.Uniform(-2, 2), optest.Uniform(0.25, 4)},
		"floor_divide": {optest.Uniform(-6, 6), optest.Uniform(1, 4)},
		"remainder":    {optest.Distinct(0.0625), optest.Ints(3, 3)}, // whose multiples the operand does not hit
		"arctan2":      {optest.Uniform(-2, 2), optest.Uniform(0.25, 4)},
		"power":        {optest.Uniform(0.5, 2), optest.Uniform(0, 3)},
		"maximum":      {optest.Distinct(0), optest.Distinct(0.0625)},
		"minimum":      {optest.Distinct(0), optest.Distinct(0.0625)},
	}
	for name, f := range binaryFuncs {
		g, ok := special[name]
		if !ok {
			g = gens{optest.Uniform(-2, 2), optest.Uniform(-2, 2)}
		}
		pair := func(a, b string) optest.Case {
			return optest.Case{Inputs: []optest.Input{optest.In(a, g.a), optest.In(b, g.b)}}
		}
		op := optest.Subject{
			Name: name, Fn: optest.One(func(in []*array) *array { return f(in[0], in[1]) }),
			Cases:  []optest.Case{pair("n,m", "n,m"), pair("n,1", "m"), pair("", "n"), pair("0,n", "n")},
			Golden: "elementwise.json", NonDiff: discrete[name], Second: !discrete[name],
		}
		if name == "floor_divide" || name == "remainder" {
			op.Refuse = []tensor.DType{tensor.Complex64}
			op.DTypes = except(tensor.Complex64, tensor.Bool, tensor.Uint8, tensor.Int32) // layouts may hold zeros
		}
		if name == "arctan2" {
			op.Refuse = []tensor.DType{tensor.Complex64}
			op.DTypes = except(tensor.Complex64)
		}
		if name == "power" {
			op.Tol = optest.Tol{Rel: 1e-5}
		}
		optest.Run(t, op)
	}
}

func TestWhere(t *testing.T) {
	mask := optest.In("n,m", optest.Ints(0, 1)).As(tensor.Bool)
	x, y := optest.In("n,m", optest.Uniform(-2, 2)), optest.In("m", optest.Uniform(-2, 2))
	optest.Run(t, optest.Subject{
		Name: "where", Fn: optest.One(func(in []*array) *array { return ops.Where(in[0], in[1], in[2]) }),
		Cases: []optest.Case{{Inputs: []optest.Input{mask, x, y}},
			{Inputs: []optest.Input{mask, y, optest.In("", optest.Ints(1, 1))}}},
		Golden: "elementwise.json", Second: true,
	})
}

// The tolerances are wide, so that elements on either side are there.
func TestClose(t *testing.T) {
	for name, nan := range map[string]bool{"": false, " nan": true} {
		tol := ops.Tolerance{Rel: 0.5, Abs: 0.25, NaN: nan}
		for op, f := range map[string]func(a, b *array, tol ops.Tolerance, c ...*ctx) *array{
			"isclose": ops.IsClose, "allclose": ops.AllClose,
		} {
			x, y := optest.In("n,m", optest.Distinct(0)), optest.In("m", optest.Distinct(0))
			optest.Run(t, optest.Subject{Name: op + name, Ops: []string{"less_equal", "isinf"}, NonDiff: true,
				Fn:    optest.One(func(in []*array) *array { return f(in[0], in[1], tol) }),
				Cases: []optest.Case{{Inputs: []optest.Input{x, y}}}, Golden: "elementwise.json"})
		}
	}
}

// Clip has no op of its own. Without one of the bounds it is Maximum or Minimum; without both it is an error.
func TestClip(t *testing.T) {
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
			Cases:  []optest.Case{c},
			Golden: "elementwise.json", Second: true})
	}
	require.ErrorContains(t, ops.Clip(ops.Number(1, tensor.Float32), nil, nil).Err(), "[clip] both bounds are missing")
}

func TestAsType(t *testing.T) {
	for _, to := range tensor.DTypes() {
		x := optest.In("n,m", optest.Uniform(0, 9))
		if to != tensor.Float32 && to != tensor.Float64 {
			x = x.Const() // a staircase: its gradient is the cotangent, as in MLX, which finite differences do not see
		}
		optest.Run(t, optest.Subject{
			Name: "astype " + to.String(), Ops: []string{"astype"}, Golden: "elementwise.json",
			Fn:    optest.One(func(in []*array) *array { return ops.AsType(in[0], to) }),
			Cases: []optest.Case{{Inputs: []optest.Input{x}}},
		})
	}
}

func TestViews(t *testing.T) {
	u := optest.Uniform(-2, 2)
	view := func(name string, f func(x *array) *array, golden bool, cases []optest.Case, prims ...string) {
		op := optest.Subject{
			Name: name, Ops: prims, Cases: cases, Second: true,
			Fn: optest.One(func(in []*array) *array { return f(in[0]) }),
		}
		if golden {
			op.Golden = "views.json"
		}
		optest.Run(t, op)
	}
	threes := inputs(u, "n,m,2")
	fours := inputs(u, "n,4,m", "n,8")
	view("reshape", func(x *array) *array { return ops.Reshape(x, tensor.Sizes(4, -1)) }, true, fours)
	view("flatten", func(x *array) *array { return ops.Flatten(x, 1, 2) }, true, threes)
	all := inputs(u, "n,m", "", "0,n")
	view("flatten all", func(x *array) *array { return ops.Flatten(x, 0, -1) }, false, all, "flatten")
	view("transpose", func(x *array) *array { return ops.Transpose(x, []int{2, 0, 1}) }, true, threes)
	view("transpose all", func(x *array) *array { return ops.Transpose(x, nil) }, true, all, "transpose")
	view("moveaxis", func(x *array) *array { return ops.MoveAxis(x, 0, -1) }, true, threes, "transpose")
	view("swapaxes", func(x *array) *array { return ops.SwapAxes(x, 0, -1) }, true, threes, "transpose")
	view("expand_dims", func(x *array) *array { return ops.ExpandDims(x, []int{0, -1}) }, true, all)
	view("squeeze", func(x *array) *array { return ops.Squeeze(x, []int{0, 2}) }, true, inputs(u, "1,n,1"))
	shape := tensor.Sizes(2, 3, 4)
	view("broadcast_to", func(x *array) *array { return ops.BroadcastTo(x, shape) }, true, inputs(u, "3,1", ""))
	some := []ops.Part{ops.Span(1, ops.None, 1), ops.Span(ops.None, ops.None, -2)}
	view("slice", func(x *array) *array { return ops.Slice(x, some) }, true, inputs(u, "n,m", "n,m,2"))
	at := []ops.Part{ops.At(-1), ops.Ellipsis(), ops.NewAxis()}
	view("slice at", func(x *array) *array { return ops.Slice(x, at) }, true, inputs(u, "n,m"), "slice")
}

func TestViewsOfTwo(t *testing.T) {
	u := optest.Uniform(-2, 2)
	pair := func(a, b string) optest.Case {
		return optest.Case{Inputs: []optest.Input{optest.In(a, u), optest.In(b, u)}}
	}
	like := func(name, prim string, f func(x *array, s tensor.ShapeArg, c ...*ctx) *array, cases ...optest.Case) {
		optest.Run(t, optest.Subject{
			Name: name, Ops: []string{prim}, Cases: cases, Second: true,
			Fn: optest.One(func(in []*array) *array { return f(in[0], tensor.ShapeOf(in[1])) }),
		})
	}
	like("reshape like", "reshape", ops.Reshape, pair("n,2,m", "2,m,n"))
	like("broadcast like", "broadcast_to", ops.BroadcastTo, pair("n,1", "m,n,k"))
	full := func(x *array, s tensor.ShapeArg, c ...*ctx) *array { return ops.Full(s, x, x.DType(), c...) }
	like("full like", "full", full, pair("", "m,n"), pair("n,1", "m,n,k"))
	like("sum_to", "sum_to", ops.SumTo, pair("m,n,k", "n,1"), pair("n,m", "n,m"))
	set := []ops.Part{ops.Span(1, ops.None, 1), ops.Span(ops.None, ops.None, 2)}
	optest.Run(t, optest.Subject{
		Name: "slice_update", Cases: []optest.Case{pair("n,m", ""), pair("n,m", "1,1")}, Second: true,
		Golden: "views.json",
		Fn:     optest.One(func(in []*array) *array { return ops.SliceUpdate(in[0], in[1], set) }),
	})
}

func TestReductions(t *testing.T) {
	forms := []struct {
		name string
		axes []int
		keep bool
	}{{"", nil, false}, {" last", []int{-1}, false}, {" first, kept", []int{0}, true}}
	funcs := maps.Clone(reduceFuncs)
	delete(funcs, "softmax")
	funcs["var less one"] = func(a *array, axes []int, keep bool, c ...*ctx) *array {
		return ops.Var(a, axes, keep, 1, c...)
	}
	funcs["std less one"] = func(a *array, axes []int, keep bool, c ...*ctx) *array {
		return ops.Std(a, axes, keep, 1, c...)
	}
	for name, f := range funcs {
		for _, form := range forms {
			op := optest.Subject{
				Name: name + form.name, Ops: []string{name}, Golden: "reductions.json",
				Fn:    optest.One(func(in []*array) *array { return f(in[0], form.axes, form.keep) }),
				Cases: inputs(optest.Distinct(0.5), "n,m", "2,n,m"), NonDiff: discrete[name], Second: !discrete[name],
			}
			if name == "prod" {
				op.Cases = inputs(optest.Uniform(0.5, 2), "n,m")
			}
			optest.Run(t, op)
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
	softmax := func(axis int) optest.Func {
		return optest.One(func(in []*array) *array { return ops.Softmax(in[0], []int{axis}) })
	}
	optest.Run(t, optest.Subject{Name: "softmax", Fn: softmax(-1), Cases: cases, Golden: "reductions.json", Second: true})
	optest.Run(t, optest.Subject{Name: "softmax first", Fn: softmax(0), Cases: cases, Second: true})
}

// TestShapesAlone: ops that read shapes only, and the constants that they fill.
func TestShapesAlone(t *testing.T) {
	u := optest.Uniform(-2, 2)
	optest.Run(t, optest.Subject{
		Name: "number_of_elements", Cases: inputs(u, "n,m"), NonDiff: true,
		Fn: optest.One(func(in []*array) *array { return ops.Size(in[0], []int{-1}, tensor.Float32) }),
	})
	optest.Run(t, optest.Subject{
		Name: "zeros_like", Ops: []string{"broadcast_to"}, Cases: inputs(u, "n,m"), NonDiff: true,
		Fn: optest.One(func(in []*array) *array { return ops.ZerosLike(in[0]) }),
	})
	optest.Run(t, optest.Subject{
		Name: "add arange", Ops: []string{"arange"}, Cases: inputs(u, "n,4"), Second: true,
		Fn: optest.One(func(in []*array) *array { return ops.Add(in[0], ops.Arange(0, 4, 1, tensor.Float32)) }),
	})
}

var uniform = optest.Uniform(-2, 2)

var ints32 = tensor.Int32

func axis(i int) *int { return &i }
