package compile

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/mlxlua/mlxlua/tensor"
)

// plan is a recorded and simplified graph.
type plan struct {
	steps    []step
	consts   []*tensor.Array // values that do not depend on the inputs
	outs     []ref
	guards   []guard
	recorded int  // nodes before simplification
	foreign  bool // a constant belongs to another transform's trace
	steady   steady
}

// step is a call of an op on refs. Its outputs are the slots from first on.
type step struct {
	call  tensor.Replayed
	in    []ref
	first int
	given []bool // which outputs are outputs of the plan
	specs []tensor.Spec
}

// ref names a value: an input (kind 'i'), a constant ('c') or a slot ('s').
type ref struct {
	kind byte
	i    int
}

// guard is a dimension that the function read as a number.
type guard struct {
	of    ref
	axis  int
	size  int
	after int // it can be checked when so many steps have been replayed
	where string
}

// traced is a function to trace.
type traced struct {
	f      func([]*tensor.Array) ([]*tensor.Array, error)
	in     []tensor.Spec
	place  func() tensor.Place // the line that runs; nil: unknown
	export bool                // what stands for an input of its own is replaced by that
}

// trace runs the function on placeholders and records what it builds.
func (fn *traced) trace(c *tensor.Ctx) (*plan, error) {
	defer c.Building()()
	r := &tracer{c: c, export: fn.export, refs: map[tensor.Value]ref{}, known: map[stepKey]int{}, small: map[string]ref{},
		plan: &plan{}}
	type read struct {
		x     *tensor.Array
		axis  int
		where string
	}
	var reads []read
	tracing := true
	seen := map[guardKey]bool{}
	r.trace = tensor.NewTrace("compile", func(x *tensor.Array, axis int) {
		k := guardKey{x.Value(), axis}
		if !tracing || seen[k] {
			return
		}
		seen[k] = true
		where := ""
		if fn.place != nil {
			where = fn.place().String()
		}
		reads = append(reads, read{x, axis, where})
	})
	defer r.trace.End()
	args := make([]*tensor.Array, len(fn.in))
	for i, s := range fn.in {
		args[i] = r.trace.Placeholder(c, s)
		r.refs[args[i].Value()] = ref{'i', i}
	}
	outs, err := fn.f(args)
	tracing = false
	if err != nil {
		return nil, err
	}
	for i, x := range outs {
		if x == nil {
			return nil, c.Errorf("compile", "output %d is nil", i)
		}
		if err := x.Err(); err != nil {
			return nil, err
		}
	}
	for _, x := range outs {
		at, err := r.record(x)
		if err != nil {
			return nil, err
		}
		r.plan.outs = append(r.plan.outs, at)
	}
	for _, g := range reads {
		size := g.x.Spec().Shape.Size()
		if g.axis != tensor.WholeSize {
			size = g.x.Spec().Shape[g.axis]
		}
		at, err := r.record(g.x)
		if err != nil {
			return nil, err
		}
		r.plan.guards = append(r.plan.guards, guard{
			of: at, axis: g.axis, size: size, after: len(r.plan.steps), where: g.where})
	}
	r.plan.recorded = r.recorded
	r.finish()
	return r.plan, nil
}

type guardKey struct {
	v    tensor.Value
	axis int
}

// tracer turns a graph into a plan.
type tracer struct {
	c        *tensor.Ctx
	trace    *tensor.Trace
	plan     *plan
	refs     map[tensor.Value]ref
	known    map[stepKey]int // equal calls
	small    map[string]ref  // equal constants
	slots    int
	recorded int
	export   bool
}

// stepKey is equal for calls that give equal results.
type stepKey struct {
	op     *tensor.Op
	attrs  any
	stream *tensor.Stream
	alike  bool // see tensor.SetBatchInvariant
	in     string
}

// record adds what x depends on to the plan, in an order in which inputs come first. What x does not depend on is
// never visited: dead code is not recorded.
func (r *tracer) record(x *tensor.Array) (ref, error) {
	v := x.Value()
	if at, ok := r.refs[v]; ok {
		return at, nil
	}
	if !r.trace.Has(v.Node) {
		return r.constant(v, x), nil
	}
	order, err := r.c.Order([]*tensor.Array{x}, func(n *tensor.Node) bool {
		_, done := r.refs[tensor.Value{Node: n}]
		return done || !r.trace.Has(n)
	})
	if err != nil {
		return ref{}, err
	}
	for _, n := range order {
		if err := r.c.Step(); err != nil {
			return ref{}, err
		}
		r.node(n)
	}
	return r.refs[v], nil
}

func (r *tracer) node(n *tensor.Node) {
	r.recorded++
	values := n.Inputs()
	in := make([]ref, len(values))
	var b strings.Builder
	for i, v := range values {
		at, ok := r.refs[v]
		if !ok {
			at = r.constant(v, v.Node.Handle(r.c, v.Out))
		}
		in[i] = at
		b.WriteByte(at.kind)
		b.WriteString(strconv.Itoa(at.i))
	}
	if s, ok := n.Attrs().(tensor.StandIn); ok && r.export {
		r.refs[tensor.Value{Node: n}] = in[s.StandsFor()]
		return
	}
	key := stepKey{n.Op(), n.Attrs(), n.Stream(), n.BatchInvariant(), b.String()}
	alone := !n.CanMerge()
	first, ok := r.known[key]
	if !ok || alone {
		first = r.slots
		r.slots += n.NumOut()
		s := step{call: n.Replayed(), in: in, first: first, given: make([]bool, n.NumOut())}
		if n.Fixed() {
			for _, v := range values {
				s.specs = append(s.specs, v.Spec())
			}
		}
		r.plan.steps = append(r.plan.steps, s)
		if !alone {
			r.known[key] = first
		}
	}
	for i := range n.NumOut() {
		r.refs[tensor.Value{Node: n, Out: i}] = ref{'s', first + i}
	}
}

// constant is a value that does not depend on the inputs. It is kept, and computed once. Small ones that are equal
// are one.
func (r *tracer) constant(v tensor.Value, x *tensor.Array) ref {
	if at, ok := r.refs[v]; ok {
		return at
	}
	if tensor.Traced(x) {
		r.plan.foreign = true
	}
	at := ref{'c', len(r.plan.consts)}
	if s := v.Spec(); x.State() == tensor.Ready && s.NBytes() <= 64 {
		if bytes, err := x.Bytes(context.Background()); err == nil {
			key := fmt.Sprintf("%v %x", s, bytes)
			if old, ok := r.small[key]; ok {
				r.refs[v] = old
				return old
			}
			r.small[key] = at
		}
	}
	x.Hold(r.c.Holder)
	r.plan.consts = append(r.plan.consts, x)
	r.refs[v] = at
	return at
}

// finish marks the slots that the plan gives out.
func (r *tracer) finish() {
	given := map[int]bool{}
	for _, o := range r.plan.outs {
		if o.kind == 's' {
			given[o.i] = true
		}
	}
	for _, s := range r.plan.steps {
		for i := range s.given {
			s.given[i] = given[s.first+i]
		}
	}
}
