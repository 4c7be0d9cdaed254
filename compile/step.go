package compile

import (
	"fmt"
	"slices"
	"sync"

	"github.com/mlxlua/mlxlua/tensor"
)

// steady is what a plan keeps for calls whose inputs have the same specs: a recording of the plan, by which a call
// makes one node. The first call of such specs is replayed, which shows that the plan fits.
type steady struct {
	mu    sync.Mutex
	why   string // it has none; "" as long as nobody has asked, or there is no reason
	asked bool
	calls []*steadyCall // least recently used first
	used  int           // calls that made one node
}

// steadyCall is the recording of calls whose inputs have those specs.
type steadyCall struct {
	specs []tensor.Spec
	rec   *tensor.Recording
	outs  []int // by output of the plan: the recording's, or -1
	given []ref // the values that the recording's outputs are
}

// mostSteady bounds the specs for which a plan has recordings.
const mostSteady = 8

// leastSteps is the least number of steps for which one node takes less time than their own.
const leastSteps = 2

// call is run, by a recording where there is one for the inputs.
func (p *plan) call(c *tensor.Ctx, in []*tensor.Array) ([]*tensor.Array, error) {
	if p.unsteady() != "" || tensor.Watched() != "" || slices.ContainsFunc(in, dependent) {
		return p.run(c, in)
	}
	if s := p.steady.find(in); s != nil {
		return s.call(p, c, in)
	}
	outs, err := p.run(c, in)
	if err == nil {
		p.steady.add(p.record(in, outs))
	}
	return outs, err
}

// dependent reports whether a transform under way may walk what depends on x.
func dependent(x *tensor.Array) bool { return tensor.Traced(x) }

// unsteady says why calls of the plan cannot be recorded; "": they can.
func (p *plan) unsteady() string {
	s := &p.steady
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.asked {
		s.asked, s.why = true, p.whyUnsteady()
	}
	return s.why
}

func (p *plan) whyUnsteady() string {
	switch {
	case len(p.steps) < leastSteps:
		return "it has " + tensor.Count(len(p.steps), "op")
	case p.foreign:
		return "it uses an array of a surrounding transform"
	case !slices.ContainsFunc(p.outs, func(r ref) bool { return r.kind == 's' }):
		return "it computes nothing"
	}
	stream := p.steps[0].call.Stream
	for i := range p.steps {
		k := &p.steps[i].call
		if why := k.Recordable(len(p.steps[i].in)); why != "" {
			return why
		}
		if k.Stream != stream {
			return "it uses several streams"
		}
	}
	return ""
}

// find is the recording for inputs, nil if there is none.
func (s *steady) find(in []*tensor.Array) *steadyCall {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, k := range slices.Backward(s.calls) {
		if k.fits(in) {
			if i != len(s.calls)-1 {
				s.calls = append(slices.Delete(s.calls, i, i+1), k)
			}
			s.used++
			return k
		}
	}
	return nil
}

func (k *steadyCall) fits(in []*tensor.Array) bool {
	for i, x := range in {
		if s := x.Value().Spec(); s.DType != k.specs[i].DType || !s.Shape.Equal(k.specs[i].Shape) {
			return false
		}
	}
	return true
}

func (s *steady) add(k *steadyCall) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls = append(s.calls, k); len(s.calls) > mostSteady {
		s.calls = slices.Delete(s.calls, 0, 1)
	}
}

// record makes the recording of calls with inputs like those, which gave outs.
func (p *plan) record(in, outs []*tensor.Array) *steadyCall {
	k := &steadyCall{outs: make([]int, len(p.outs))}
	shape := tensor.StepShape{Consts: p.consts, Reads: make([]bool, len(in)), ConstReads: make([]bool, len(p.consts))}
	for _, x := range in {
		k.specs = append(k.specs, x.Spec())
	}
	shape.Inputs = k.specs
	for i, r := range p.outs {
		k.outs[i] = -1
		if r.kind != 's' {
			continue
		}
		if k.outs[i] = slices.Index(k.given, r); k.outs[i] < 0 {
			k.outs[i] = len(k.given)
			k.given = append(k.given, r)
			shape.Outs = append(shape.Outs, outs[i].Spec())
			shape.Starts = append(shape.Starts, p.startOf(r))
		}
	}
	live := p.live(k.given, false)
	for i := range p.steps {
		s := &p.steps[i]
		if !live[i] {
			continue
		}
		shape.Fails = shape.Fails || s.call.ChecksIndices(len(s.in))
		for _, r := range s.in[:s.call.Reads(len(s.in))] {
			switch r.kind {
			case 'i':
				shape.Reads[r.i] = true
			case 'c':
				shape.ConstReads[r.i] = true
			}
		}
	}
	k.rec = tensor.NewRecording(shape, func(c *tensor.Ctx, in, consts []*tensor.Array, need []bool) ([]*tensor.Array,
		error) {
		return p.build(c, in, consts, k.given, need)
	})
	return k
}

// startOf is the input of the plan that a value starts as a copy of, or -1.
func (p *plan) startOf(r ref) int {
	changed := false
	for r.kind == 's' {
		i := p.stepOf(r.i)
		s := &p.steps[i]
		from := s.call.Starts(r.i - s.first)
		if from < 0 {
			return -1
		}
		changed = changed || s.call.Updates(r.i-s.first)
		r = s.in[from]
	}
	if r.kind != 'i' || !changed {
		return -1
	}
	return r.i
}

// stepOf is the step that a slot is of.
func (p *plan) stepOf(slot int) int {
	i, found := slices.BinarySearchFunc(p.steps, slot, func(s step, slot int) int { return s.first - slot })
	if !found {
		i--
	}
	return i
}

// build makes the nodes that values need, as far as they are needed; others are nil.
func (p *plan) build(c *tensor.Ctx, in, consts []*tensor.Array, values []ref, need []bool) ([]*tensor.Array, error) {
	var wanted []ref
	for i, r := range values {
		if need[i] {
			wanted = append(wanted, r)
		}
	}
	live, slots := p.live(wanted, true), 0
	if n := len(p.steps); n > 0 {
		slots = p.steps[n-1].first + len(p.steps[n-1].given)
	}
	made := make([]*tensor.Array, slots)
	get := func(r ref) *tensor.Array {
		switch r.kind {
		case 'i':
			return in[r.i]
		case 'c':
			return consts[r.i]
		}
		return made[r.i]
	}
	var args []*tensor.Array
	for i := range p.steps {
		s := &p.steps[i]
		if !live[i] {
			continue
		}
		args = args[:0]
		for _, r := range s.in {
			args = append(args, get(r))
		}
		outs := made[s.first:][:len(s.given)]
		s.call.Into(c, outs, args)
		for _, y := range outs {
			if err := y.Err(); err != nil {
				return nil, err
			}
		}
	}
	outs := make([]*tensor.Array, len(values))
	for i, r := range values {
		if need[i] {
			outs[i] = get(r)
		}
	}
	for i, x := range made {
		if x != nil && !slices.Contains(wanted, ref{'s', i}) {
			tensor.Drop(x)
		}
	}
	return outs, nil
}

// call makes the node of a call, and gives the plan's outputs.
func (k *steadyCall) call(p *plan, c *tensor.Ctx, in []*tensor.Array) ([]*tensor.Array, error) {
	at := *c
	if s := p.steps[0].call.Stream; s != nil {
		at.Stream = s
	}
	made, err := k.rec.Call(&at, in)
	if err != nil {
		return nil, err
	}
	outs := make([]*tensor.Array, len(p.outs))
	for i, r := range p.outs {
		switch r.kind {
		case 'i':
			outs[i] = in[r.i]
		case 'c':
			outs[i] = p.consts[r.i]
		default:
			outs[i] = made[k.outs[i]]
		}
	}
	return outs, nil
}

// Recorded reports whether calls of the function have recordings, which DropRecordings drops: calls are recorded again
// where they are made again.
func (fn *Function) Recorded() bool {
	fn.mu.Lock()
	defer fn.mu.Unlock()
	return slices.ContainsFunc(fn.entries, func(e *entry) bool { return e.plan.steady.some() })
}

// DropRecordings gives back what recordings take in memory.
func (fn *Function) DropRecordings() {
	fn.mu.Lock()
	defer fn.mu.Unlock()
	for _, e := range fn.entries {
		e.plan.steady.drop()
	}
}

func (s *steady) some() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.calls) > 0
}

func (s *steady) drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.calls {
		k.rec.Drop()
	}
	s.calls = nil
}

// bytes is about what the recordings take in memory.
func (s *steady) bytes() (n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.calls {
		n += k.rec.Bytes() + specBytes*int64(len(k.specs)) + refBytes*int64(len(k.outs)+len(k.given))
	}
	return n
}

// text says for Explain whether calls are recorded.
func (p *plan) stepText() string {
	if why := p.unsteady(); why != "" {
		return "not recorded: " + why
	}
	if why := tensor.Watched(); why != "" {
		return "not recorded: " + why
	}
	s := &p.steady
	s.mu.Lock()
	defer s.mu.Unlock()
	text := "recorded: not yet"
	if s.used > 0 {
		made, cmds := 0, 0
		for _, k := range s.calls {
			n, _ := k.rec.Takes()
			made, cmds = made+n, k.rec.Commands()
		}
		text = fmt.Sprintf("recorded: %s as one node, of %s, in %s", tensor.Count(s.used, "call"),
			tensor.Count(cmds, "command"), tensor.Count(made, "layout"))
	}
	return text
}
