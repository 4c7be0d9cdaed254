package tensor

import (
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"

	"github.com/mlxlua/mlxlua/tensor/kernelgen"
)

// Spec is what is known of an array before it is computed: shape and dtype. Rules receive Specs, never Arrays.
type Spec struct {
	Shape Shape
	DType DType
}

// NBytes is the size in bytes of a contiguous array of this spec.
func (s Spec) NBytes() int64 { return int64(s.Shape.Size()) * int64(s.DType.Size()) }

// String is "float32 (3, 4)".
func (s Spec) String() string { return s.DType.String() + " " + s.Shape.String() }

// Op is an op as the engine sees it, without the type of its attributes.
type Op struct {
	name     string
	declared []uintptr    // by whom
	attrs    reflect.Type // of its attributes; nil for what is no op
	defined  bool
	// What messages call memory that a call needs:
	temporary, copied string
	noMerge           bool
	partial           bool
	sure              bool // the host rule does not fail
	fills             bool
	same              bool
	constant          bool // all derivatives are zero
	shape             func(in []Spec, a any, outs []Shape) ([]Shape, error)
	dtype             func(in []Spec, a any, outs []DType) ([]DType, error)
	specFrom          func(a any, n int) int
	indicesFrom       func(a any, n int) int
	checkIndices      func(r *Run, a any) error
	bounds            func(in []Spec, a any, bounds []Ints) []Ints
	prepare           func(in []Spec, a any) (any, error)
	fixed             func(a any) bool
	updates           func(a any, out int) int
	covers            func(a any) bool
	record            func(rec *recorder, t *task) error // for an op of the engine's own, which has commands already
	expr              func(a any, in []DType) string
	reduce            func(a any, in []Spec) ([]int, kernelgen.Reducer, error)
	view              func(in []Spec, v View, a any, out []Operand) bool
	run               func(r *Run, a any) error
	host              func(h *HostCall, a any) error
	flops             func(in, out []Spec, a any) float64
	vjp               func(c *Ctx, n *Node, in, out, cot []*Array, want []bool) []*Array
	jvp               func(c *Ctx, n *Node, in, out, tan []*Array) []*Array
	formula           func(c *Ctx, n *Node, in []*Array) []*Array
	vmap              func(c *Ctx, n *Node, in []*Array, axes []int, size int) ([]*Array, []int)
}

// Name is the op's name, as MLX calls it.
func (p *Op) Name() string { return p.name }

// fillsOutputs reports whether the commands of such a call write all of its outputs before they read any of it.
func (p *Op) fillsOutputs(attrs any) bool { return !p.partial || p.covers != nil && p.covers(attrs) }

// starts returns the input that output i of such a call starts as a copy of, -1 if there is none.
func (p *Op) starts(attrs any, i int) int {
	if p.updates == nil {
		return -1
	}
	return p.updates(attrs, i)
}

// updatesInput reports whether an output of such a call, which has so many, starts as a copy of input in.
func (p *Op) updatesInput(attrs any, outs, in int) bool {
	for i := range outs {
		if p.starts(attrs, i) == in {
			return true
		}
	}
	return false
}

// updatesAny reports whether an output of such a call, which has so many, starts as a copy of an input.
func (p *Op) updatesAny(attrs any, outs int) bool {
	for i := range outs {
		if p.starts(attrs, i) >= 0 {
			return true
		}
	}
	return false
}

// Package is the import path of the package whose initialisation declared the op.
func (p *Op) Package() string {
	frames := runtime.CallersFrames(p.declared)
	for {
		f, more := frames.Next()
		folder := strings.LastIndex(f.Function, "/") + 1
		name, function, _ := strings.Cut(f.Function[folder:], ".")
		if function == "init" || strings.HasPrefix(function, "init.") || !more {
			return f.Function[:folder] + name
		}
	}
}

// OpOf is an Op with the type of its attributes. Declare one in a var and Define its rules in an init function: a
// rule that calls its own op would otherwise be an initialisation cycle.
type OpOf[A comparable] struct{ op Op }

var ops = map[string]*Op{}

// Declare makes an op without rules. Its name must be new.
func Declare[A comparable](name string) *OpOf[A] {
	if ops[name] != nil {
		panic("BUG: op " + name + " is declared twice")
	}
	callers := make([]uintptr, 16)
	callers = callers[:runtime.Callers(2, callers)]
	o := &OpOf[A]{Op{name: name, declared: callers, attrs: reflect.TypeFor[A](), temporary: "a temporary of " + name,
		copied: "a contiguous copy for " + name}}
	ops[name] = &o.op
	return o
}

// Ops lists all declared ops by name.
func Ops() map[string]*Op {
	out := make(map[string]*Op, len(ops))
	for n, p := range ops {
		out[n] = p
	}
	return out
}

// Op is the op without the type of its attributes.
func (o *OpOf[A]) Op() *Op { return &o.op }

// Define gives the op its rules. It panics on rules that are not complete: that is a bug of the program.
func (o *OpOf[A]) Define(r Rules[A]) {
	p := &o.op
	if err := checkRules(p, r); err != nil {
		panic(fmt.Sprintf("BUG: op %s: %v", p.name, err))
	}
	p.defined, p.noMerge, p.partial, p.sure = true, r.NoMerge, r.Partial, r.Sure
	p.fills, p.same = r.Fills, r.Same
	p.shape = func(in []Spec, a any, outs []Shape) ([]Shape, error) { return r.Shape(in, a.(A), outs) }
	p.dtype = func(in []Spec, a any, outs []DType) ([]DType, error) { return r.DType(in, a.(A), outs) }
	if r.SpecFrom != nil {
		p.specFrom = func(a any, n int) int { return r.SpecFrom(a.(A), n) }
	}
	if r.Flops != nil {
		p.flops = func(in, out []Spec, a any) float64 { return r.Flops(in, out, a.(A)) }
	}
	if r.IndicesFrom != nil {
		p.indicesFrom = func(a any, n int) int { return r.IndicesFrom(a.(A), n) }
	}
	if r.CheckIndices != nil {
		p.checkIndices = func(run *Run, a any) error { return r.CheckIndices(run, a.(A)) }
	}
	if r.Bounds != nil {
		p.bounds = func(in []Spec, a any, bounds []Ints) []Ints { return r.Bounds(in, a.(A), bounds) }
	}
	if r.Prepare != nil {
		p.prepare = func(in []Spec, a any) (any, error) { return r.Prepare(in, a.(A)) }
	}
	if r.Updates != nil {
		p.updates = func(a any, out int) int { return r.Updates(a.(A), out) }
	}
	if r.Covers != nil {
		p.covers = func(a any) bool { return r.Covers(a.(A)) }
	}
	if r.Fixed != nil {
		p.fixed = func(a any) bool { return r.Fixed(a.(A)) }
	}
	switch {
	case r.Expr != nil:
		p.expr = func(a any, in []DType) string { return r.Expr(a.(A), in) }
	case r.Reduce != nil:
		p.reduce = func(a any, in []Spec) ([]int, kernelgen.Reducer, error) { return r.Reduce(a.(A), in) }
	case r.View != nil:
		p.view = func(in []Spec, v View, a any, out []Operand) bool { return r.View(in, v, a.(A), out) }
	case r.Run != nil:
		p.run = func(run *Run, a any) error { return r.Run(run, a.(A)) }
	case r.Host != nil:
		p.host = func(h *HostCall, a any) error { return r.Host(h, a.(A)) }
	}
	defineDerivatives(p, r)
	if r.Formula != nil {
		p.formula = func(c *Ctx, n *Node, in []*Array) []*Array { return r.Formula(c, n.attrs.(A), in) }
	}
	if r.VMap != nil {
		p.vmap = func(c *Ctx, n *Node, in []*Array, axes []int, size int) ([]*Array, []int) {
			return r.VMap(&VMap[A]{c, n.attrs.(A), in, axes, size})
		}
	}
}

// defineDerivatives gives the op its derivative rules, which are called where there is something to derive.
func defineDerivatives[A comparable](p *Op, r Rules[A]) {
	vjp, jvp := r.VJP, r.JVP
	switch {
	case r.Constant:
		p.constant = true
		vjp = func(*VJP[A]) []*Array { return nil }
		jvp = func(*JVP[A]) []*Array { return nil }
	case r.Gradient != nil:
		vjp = func(g *VJP[A]) []*Array {
			grads := make([]*Array, len(g.In))
			if g.Want[0] {
				grads[0] = r.Gradient(g)
			}
			return grads
		}
	}
	if r.Tangent != nil {
		jvp = func(g *JVP[A]) []*Array {
			tans := make([]*Array, len(g.Out))
			if g.Tan[0] != nil {
				tans[0] = r.Tangent(g)
			}
			return tans
		}
	}
	some := func(x *Array) bool { return x != nil }
	if vjp != nil {
		p.vjp = func(c *Ctx, n *Node, in, out, cot []*Array, want []bool) []*Array {
			if !slices.ContainsFunc(cot, some) {
				return nil
			}
			return vjp(&VJP[A]{c, n.attrs.(A), in, out, cot, want})
		}
	}
	if jvp != nil {
		p.jvp = func(c *Ctx, n *Node, in, out, tan []*Array) []*Array {
			if !slices.ContainsFunc(tan, some) {
				return nil
			}
			return jvp(&JVP[A]{c, n.attrs.(A), in, out, tan})
		}
	}
}

func checkRules[A comparable](p *Op, r Rules[A]) error {
	executors := 0
	for _, set := range []bool{r.Expr != nil, r.Reduce != nil, r.View != nil, r.Run != nil, r.Host != nil} {
		if set {
			executors++
		}
	}
	switch {
	case p.defined:
		return fmt.Errorf("it is defined twice")
	case r.Shape == nil:
		return fmt.Errorf("no Shape rule")
	case r.DType == nil:
		return fmt.Errorf("no DType rule")
	case executors != 1:
		return fmt.Errorf("%d executors, want one of Expr, Reduce, View, Run, Host", executors)
	case r.Updates != nil && r.Run == nil:
		return fmt.Errorf("the Updates rule needs Run")
	case r.Prepare != nil && r.Run == nil:
		return fmt.Errorf("the Prepare rule needs Run")
	case r.CheckIndices != nil && r.Bounds == nil:
		return fmt.Errorf("the CheckIndices rule needs Bounds")
	case r.Bounds != nil && r.IndicesFrom == nil:
		return fmt.Errorf("the Bounds rule needs IndicesFrom")
	case r.Fills && r.View == nil:
		return fmt.Errorf("the Fills rule needs View")
	case r.Same && r.Reduce == nil:
		return fmt.Errorf("the Same rule needs Reduce")
	case r.VJP != nil && r.Gradient != nil || r.JVP != nil && r.Tangent != nil:
		return fmt.Errorf("two rules for one derivative")
	case r.Constant && (r.VJP != nil || r.Gradient != nil || r.JVP != nil || r.Tangent != nil):
		return fmt.Errorf("a constant with a derivative")
	}
	return checkAttrs(reflect.TypeFor[A]())
}

// checkAttrs refuses attribute types whose == could panic or overlook a difference: those that hold interfaces or
// plain floats (NaN differs from itself).
func checkAttrs(t reflect.Type) error {
	switch t.Kind() {
	case reflect.Interface, reflect.Float32, reflect.Float64, reflect.Complex64, reflect.Complex128, reflect.Chan:
		return fmt.Errorf("attributes hold a %v, which == does not compare safely", t)
	case reflect.Array:
		return checkAttrs(t.Elem())
	case reflect.Struct:
		if t.PkgPath() == "unique" {
			return nil
		}
		for i := range t.NumField() {
			if err := checkAttrs(t.Field(i).Type); err != nil {
				return err
			}
		}
	}
	return nil
}
