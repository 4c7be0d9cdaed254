package compile

import (
	"fmt"
	"slices"

	"github.com/mlxlua/mlxlua/tensor"
)

// Program is a recorded function, apart from any Function: what package export writes and reads.
type Program struct{ plan *plan }

// Ref names a value of a Graph: an input, a constant, or an output of a step, all of which
// are numbered through.
type Ref struct {
	Kind byte // 'i', 'c' or 's'
	I    int
}

// Step is a call of an op in a Graph.
type Step struct {
	Op    *tensor.Op
	Attrs any
	In    []Ref         // values that come before it
	Outs  int           // how many outputs it has
	Fixed []tensor.Spec // the inputs' specs that the call is made for; nil: it fits any
}

// Guard is a dimension that the function read as a number.
type Guard struct {
	Of    Ref
	Axis  int // or tensor.WholeSize
	Size  int
	After int    // how many steps stand before the check
	Where string // the line that read it
}

// Graph is what a Program consists of.
type Graph struct {
	Inputs int
	Consts []*tensor.Array
	Steps  []Step
	Outs   []Ref
	Guards []Guard // sorted by After
}

// Record traces f for inputs of those specs. Where f reads a dimension as a number, the Program fits that number only.
// What a custom function does for transforms is not recorded. place is the line that runs, nil if nobody knows. Record
// fails where f does, and where f uses values of a transform under way.
func Record(c *tensor.Ctx, f func([]*tensor.Array) ([]*tensor.Array, error), in []tensor.Spec,
	place func() tensor.Place) (*Program, error) {
	c = tensor.Call([]*tensor.Ctx{c})
	p, err := (&traced{f: f, in: in, place: place, export: true}).trace(c)
	if err != nil {
		return nil, err
	}
	if p.foreign {
		return nil, c.Errorf("compile", "the function uses an array of a surrounding transform")
	}
	p.dropDead()
	return &Program{p}, nil
}

// dropDead drops the steps that nothing needs.
func (p *plan) dropDead() {
	values := slices.Clone(p.outs)
	for _, g := range p.guards {
		values = append(values, g.of)
	}
	live := p.live(values, true)
	to, before := map[int]int{}, make([]int, len(p.steps)+1)
	var steps []step
	slots := 0
	for i, s := range p.steps {
		before[i] = len(steps)
		if !live[i] {
			continue
		}
		for k := range s.given {
			to[s.first+k] = slots + k
		}
		for k, r := range s.in {
			s.in[k] = r.moved(to)
		}
		s.first, slots = slots, slots+len(s.given)
		steps = append(steps, s)
	}
	before[len(p.steps)] = len(steps)
	for i, r := range p.outs {
		p.outs[i] = r.moved(to)
	}
	for i := range p.guards {
		g := &p.guards[i]
		g.of, g.after = g.of.moved(to), before[g.after]
	}
	p.steps = steps
}

// live says which steps values need: those whose elements they read, and with specs also those of which they need but
// shape and dtype.
func (p *plan) live(values []ref, specs bool) []bool {
	needed := map[int]bool{}
	need := func(refs []ref) {
		for _, r := range refs {
			if r.kind == 's' {
				needed[r.i] = true
			}
		}
	}
	need(values)
	live := make([]bool, len(p.steps))
	for i := len(p.steps) - 1; i >= 0; i-- {
		s := &p.steps[i]
		for k := range s.given {
			live[i] = live[i] || needed[s.first+k]
		}
		switch {
		case live[i] && specs:
			need(s.in)
		case live[i]:
			need(s.in[:s.call.Reads(len(s.in))])
		}
	}
	return live
}

// moved is the ref where slots have other numbers.
func (r ref) moved(to map[int]int) ref {
	if r.kind == 's' {
		r.i = to[r.i]
	}
	return r
}

// Constants visits the arrays that the Program keeps beside its inputs.
func (p *Program) Constants(visit func(x *tensor.Array)) {
	for _, x := range p.plan.consts {
		visit(x)
	}
}

// Graph gives the Program's parts.
func (p *Program) Graph(inputs int) *Graph {
	g := &Graph{Inputs: inputs, Consts: p.plan.consts}
	refs := func(rs []ref) []Ref {
		out := make([]Ref, len(rs))
		for i, r := range rs {
			out[i] = Ref{r.kind, r.i}
		}
		return out
	}
	for _, s := range p.plan.steps {
		g.Steps = append(g.Steps, Step{s.call.Op, s.call.Attrs, refs(s.in), len(s.given), s.specs})
	}
	g.Outs = refs(p.plan.outs)
	for _, d := range p.plan.guards {
		g.Guards = append(g.Guards, Guard{Ref{d.of.kind, d.of.i}, d.axis, d.size, d.after, d.where})
	}
	return g
}

// Program makes a Program of its parts. It is an error if one refers to what is not there.
func (g *Graph) Program() (*Program, error) {
	p := &plan{consts: g.Consts, recorded: len(g.Steps)}
	slots := 0
	var wrong error
	check := func(r Ref, slots int) ref {
		n, ok := map[byte]int{'i': g.Inputs, 'c': len(g.Consts), 's': slots}[r.Kind]
		if !ok || r.I < 0 || r.I >= n {
			wrong = fmt.Errorf("there is no value %q %d", r.Kind, r.I)
		}
		return ref{r.Kind, r.I}
	}
	slotsAfter := []int{0}
	for i, s := range g.Steps {
		if s.Outs < 1 || len(s.Fixed) > len(s.In) {
			return nil, fmt.Errorf("step %d has %s and is for %s of %d", i, tensor.Count(s.Outs, "output"),
				tensor.Count(len(s.Fixed), "input"), len(s.In))
		}
		next := step{call: tensor.Replayed{Op: s.Op, Attrs: s.Attrs}, first: slots, given: make([]bool, s.Outs),
			specs: s.Fixed}
		for _, r := range s.In {
			next.in = append(next.in, check(r, slots))
		}
		p.steps = append(p.steps, next)
		slots += s.Outs
		slotsAfter = append(slotsAfter, slots)
	}
	for _, r := range g.Outs {
		p.outs = append(p.outs, check(r, slots))
	}
	last := 0
	for _, d := range g.Guards {
		if d.After < last || d.After > len(g.Steps) || d.Axis < 0 && d.Axis != tensor.WholeSize {
			return nil, fmt.Errorf("the guard of axis %d stands after step %d of %d", d.Axis, d.After, len(g.Steps))
		}
		last = d.After
		p.guards = append(p.guards, guard{check(d.Of, slotsAfter[d.After]), d.Axis, d.Size, d.After, d.Where})
	}
	if wrong != nil {
		return nil, wrong
	}
	(&tracer{plan: p}).finish()
	return &Program{p}, nil
}

// Call gives the Program's outputs for the inputs, lazily. It is an error if the inputs do not fit.
func (p *Program) Call(c *tensor.Ctx, in ...*tensor.Array) ([]*tensor.Array, error) {
	return p.plan.run(tensor.Call([]*tensor.Ctx{c}), in)
}
