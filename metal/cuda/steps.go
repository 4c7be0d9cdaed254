package cuda

import (
	"bytes"
	"slices"
	"sync"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/ptx"
)

// A recorded step is a graph: its kernels go to the stream in one call. Where a kernel's memory is other than the last
// time its place in the graph is told, which takes a part of what a launch does. A graph has control blocks of its own,
// so that these are always at the same place, and so is used by one command buffer at a time.

// form is what the driver keeps of a recorded step.
type form struct {
	d        *Driver
	commands int

	mu    sync.Mutex
	spare []*stepGraph
	made  int64
}

// stepGraph is a step's graph, with what it launches now.
type stepGraph struct {
	g       graph // 0: it was not made yet
	now     []kernelLaunch
	records *allocation
	notice  pinned
}

var _ metal.StepKeeper = (*Driver)(nil)

// leastKept is the fewest commands that a graph is worth.
const leastKept = 4

// KeepStep makes a form of a step of kernels, copies and fills; a library's calls are not in graphs.
func (d *Driver) KeepStep(s *metal.Step) metal.StepForm {
	if len(s.Commands) < leastKept ||
		slices.ContainsFunc(s.Commands, func(c metal.StepCommand) bool { return c.Kind == metal.CmdCall }) {
		return nil
	}
	return &form{d: d, commands: len(s.Commands)}
}

// Bytes is about what the graphs take.
func (f *form) Bytes() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	const command = 2 << 10 // about what the library takes for one
	return 64 + f.made*int64(f.commands)*command
}

// Drop ends the graphs, none of which is in use.
func (f *form) Drop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := f.spare
	f.spare = nil
	_ = f.d.call(func() error {
		for _, x := range all {
			if err := f.d.end(x); err != nil {
				return err
			}
		}
		return nil
	})
}

// end gives up a graph. Called between Enter and Leave.
func (d *Driver) end(x *stepGraph) error {
	if x.g != 0 {
		if err := d.lib.EndGraph(x.g); err != nil {
			return err
		}
	}
	if err := d.lib.Unpin(x.notice); err != nil {
		return err
	}
	return d.heap.release(d.lib, x.records)
}

// take returns a graph that nobody uses. S is the stream that it will be launched on.
func (f *form) take(s stream) (x *stepGraph, err error) {
	f.mu.Lock()
	if n := len(f.spare); n > 0 {
		x, f.spare = f.spare[n-1], f.spare[:n-1]
	}
	f.mu.Unlock()
	if x != nil {
		return x, nil
	}
	f.mu.Lock()
	f.made++
	f.mu.Unlock()
	x = &stepGraph{}
	if x.notice, err = f.d.lib.Pin(wordBytes); err != nil {
		return nil, err
	}
	clear(x.notice.bytes)
	return x, f.d.hold(&x.records, ptx.ControlBytes*(2*f.commands+1), true, s) // with barriers
}

// give takes a graph back whose command buffer has ended.
func (f *form) give(x *stepGraph) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.spare = append(f.spare, x)
}

// part is a command buffer's part that is a graph.
type part struct {
	metal.StepPart
	form      *form
	x         *stepGraph
	at, steps int // its place among the queue's steps; 0 steps: it is launched one by one
}

// parts takes graphs for the parts of a job that may be graphs: what is to be measured or stopped is launched one by
// one, and so is what validation looks at.
func (q *queue) parts(j *job) error {
	j.parts = j.parts[:0]
	if j.cb.Measures() || j.cb.Validating() || j.chain != nil {
		return nil
	}
	for _, p := range j.cb.Parts() {
		f, ok := p.Form.(*form)
		if !ok || f.d != q.d {
			continue
		}
		x, err := f.take(q.stream)
		if err != nil {
			return err
		}
		j.parts = append(j.parts, part{StepPart: p, form: f, x: x})
	}
	return nil
}

// partOf returns the part that command k is in, nil if it is in none.
func (j *job) partOf(k int) *part {
	for i := range j.parts {
		if p := &j.parts[i]; k >= p.First && k < p.Last {
			return p
		}
	}
	return nil
}

// cutParts finds the parts' places among the steps. One that has something else than launches is none.
func (q *queue) cutParts(j *job) {
	for i := range q.steps {
		p := j.partOf(q.steps[i].command)
		if p == nil {
			continue
		}
		if p.steps == 0 {
			p.at = i
		}
		p.steps++
	}
	for i := range j.parts {
		p := &j.parts[i]
		if slices.ContainsFunc(q.steps[p.at:p.at+p.steps], func(s step) bool { return s.do != nil }) {
			p.at, p.steps = -1, 0
		}
	}
}

// launchPart launches a part's graph, which all of these steps are. Where the card has no graph of them it reports
// false, and nothing was launched.
func (q *queue) launchPart(p *part, steps []step) (bool, error) {
	lib, x := q.d.lib, p.x
	err := x.become(lib, steps)
	if err != nil && !isFinal(err) {
		x.now = nil // it is made anew the next time
		return false, nil
	}
	if err == nil {
		err = lib.LaunchGraph(q.stream, x.g)
	}
	return err == nil, err
}

// become makes the graph one of these launches.
func (x *stepGraph) become(lib api, steps []step) (err error) {
	if len(x.now) != len(steps) { // it is new, or what was aligned is not
		if x.g != 0 {
			err, x.g = lib.EndGraph(x.g), 0
		}
		now := make([]kernelLaunch, len(steps))
		for i := range steps {
			now[i] = steps[i].launch
		}
		if err == nil {
			x.g, err = lib.NewGraph(now)
		}
		x.now = now
		return err
	}
	for i := range steps {
		l, now := &steps[i].launch, &x.now[i]
		if l.f == now.f && l.blocks == now.blocks && l.block == now.block && l.shared == now.shared &&
			bytes.Equal(l.parameter, now.parameter) {
			continue
		}
		if err := lib.Change(x.g, i, l); err != nil {
			return err
		}
		*now = *l
	}
	return nil
}
