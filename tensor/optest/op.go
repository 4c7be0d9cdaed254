// Package optest is the harness that every op passes: golden data from MLX, layouts, gradients against finite
// differences, forward against reverse mode, vmap against a loop, replay at a second shape through compile, fused
// against unfused, refusals. A test of an op is one call of Run with a description.
package optest

import (
	"maps"
	"slices"
	"testing"

	"github.com/mlxlua/mlxlua/internal/brief"
	"github.com/mlxlua/mlxlua/tensor"
)

// Subject describes or an op with certain attributes, to Run.
type Subject struct {
	Name  string   // of the test and of the golden data
	Ops   []string // the ops that it covers; nil: the one named Name
	Fn    func(in []*tensor.Array) []*tensor.Array
	Cases []Case
	// DTypes are those to try layouts with; nil: float32, float16, bfloat16, int32, uint8, bool, complex64.
	DTypes []tensor.DType
	// Refuse lists dtypes of the inputs that are an error naming the op.
	Refuse []tensor.DType
	// Golden is the file under optest/testdata that holds Name's golden data, "" if a test elsewhere compares with MLX.
	Golden string
	// Tol is the tolerance in comparisons of inexact dtypes, where it is larger than rounding a few times.
	Tol Tol
	// NonDiff says that all derivatives are zero or do not exist.
	NonDiff bool
	// Second asks for second derivatives too.
	Second bool
	// FD is the dtype of finite differences, float64 unless the op does not take it.
	FD tensor.DType
	// NoVMap and NoReplay say why a check does not apply. (A reason, not a switch.)
	NoVMap, NoReplay string
	Bad              []Bad
}

// Case is a set of inputs.
type Case struct {
	Inputs []Input
	Sizes  map[string]int // sizes of named dimensions; default n=3, m=4, k=5, b=2
}

// Input describes an input: made by In.
type Input struct {
	dims  string
	gen   Gen
	dtype tensor.DType
	fixed bool // has dtype in all tests
	konst bool // is not differentiated
	whole bool // is not batched
}

// In is an input whose dims are numbers or names of sizes: "b,n,4"; "" is a scalar. Sizes that are named vary in
// replays.
func In(dims string, g Gen) Input { return Input{dims: dims, gen: g} }

// As is the input with a dtype that does not vary; integers are not differentiated.
func (i Input) As(d tensor.DType) Input {
	i.dtype, i.fixed = d, true
	i.konst = i.konst || !d.IsInexact()
	return i
}

// Const is the input, not differentiated.
func (i Input) Const() Input { i.konst = true; return i }

// Whole is the input, not batched by vmap.
func (i Input) Whole() Input { i.whole = true; return i }

// Bad is a call that must fail.
type Bad struct {
	Name string
	Make func() *tensor.Array
	Text string // part of the message
}

// Tol is a tolerance: |a-b| <= Abs + Rel*|b|.
type Tol struct{ Rel, Abs float64 }

// Run checks an op in every way that applies to it, and marks its ops as covered. With -short under the race
// detector it leaves out what only compares values: golden data, finite differences, fused against unfused, and all
// dtypes but one.
func Run(t *testing.T, op Subject) {
	t.Helper()
	cover(op)
	values := !brief.Run()
	t.Run(op.Name, func(t *testing.T) {
		Open(t)
		if op.FD == tensor.Bool {
			op.FD = tensor.Float64
		}
		if op.DTypes == nil {
			op.DTypes = layoutDTypes
		}
		if !values {
			op.DTypes = op.DTypes[:1]
		}
		if op.discrete(t) {
			op.NonDiff, op.Second = true, false
		}
		wide := Computes(t, tensor.Float64)
		if !wide {
			op.DTypes = slices.DeleteFunc(slices.Clone(op.DTypes), func(d tensor.DType) bool { return d == tensor.Float64 })
		}
		check := func(name string, applies bool, f func(*testing.T, Subject)) {
			switch {
			case !applies || len(op.DTypes) == 0:
			case !wide && op.FD == tensor.Float64 && (name == "gradient" || name == "second"):
				onCPU(t, func() { t.Run(name, func(t *testing.T) { f(t, op) }) })
			default:
				t.Run(name, func(t *testing.T) { f(t, op) })
			}
		}
		check("golden", op.Golden != "" && values, checkGolden)
		check("layouts", len(op.Cases) > 0, checkLayouts)
		check("unfused", len(op.Cases) > 0 && values, checkUnfused)
		check("gradient", !op.NonDiff && op.differentiable() && values, checkGradient)
		check("zero_gradient", op.NonDiff && op.differentiable() && values, checkZeroGradient)
		check("second", op.Second && values, checkSecond)
		check("vmap", op.NoVMap == "" && op.batchable(), checkVMap)
		check("replay", op.NoReplay == "" && op.resizable(), checkReplay)
		check("refuse", len(op.Refuse) > 0, checkRefuse)
		check("bad", len(op.Bad) > 0, checkBad)
	})
}

// layoutDTypes are those that layouts are tried with.
var layoutDTypes = []tensor.DType{tensor.Float32, tensor.Float16, tensor.BFloat16, tensor.Int32, tensor.Uint8,
	tensor.Bool, tensor.Complex64}

// discrete reports whether no output is of a floating-point dtype: derivatives are zero.
func (op Subject) discrete(t *testing.T) bool {
	t.Helper()
	if len(op.Cases) == 0 {
		return false
	}
	for _, y := range op.Fn(op.Cases[0].arrays(op.FD, op.Cases[0].sizes(nil))) {
		if y == nil || y.Err() != nil || y.DType().IsInexact() {
			return false
		}
	}
	return true
}

func (op Subject) any(f func(Case, Input) bool) bool {
	for _, c := range op.Cases {
		for _, in := range c.Inputs {
			if f(c, in) {
				return true
			}
		}
	}
	return false
}

func (op Subject) differentiable() bool {
	return op.any(func(_ Case, in Input) bool { return !in.konst })
}
func (op Subject) batchable() bool { return op.any(func(_ Case, in Input) bool { return !in.whole }) }

func (op Subject) resizable() bool {
	return op.any(func(c Case, in Input) bool { return len(in.names()) > 0 })
}

// sizes are the case's, with changes.
func (c Case) sizes(change map[string]int) map[string]int {
	s := map[string]int{"n": 3, "m": 4, "k": 5, "b": 2}
	maps.Copy(s, c.Sizes)
	maps.Copy(s, change)
	return s
}

// specs are the inputs' specs where those without a dtype of their own have d.
func (c Case) specs(d tensor.DType, sizes map[string]int) []tensor.Spec {
	out := make([]tensor.Spec, len(c.Inputs))
	for i, in := range c.Inputs {
		out[i] = tensor.Spec{Shape: in.shape(sizes), DType: d}
		if in.fixed && (in.konst || !d.IsFloat()) {
			out[i].DType = in.dtype
		}
	}
	return out
}
