package tensor

import (
	"runtime"
	"slices"

	"github.com/mlxlua/mlxlua/metal"
)

// takePart is the commands [first, last) of a take, of which the driver has a form of its own. Where a gate may stand
// before commands that write over inputs, another part begins.
type takePart struct {
	first, last int
	values      []inlineAt // the bytes of inputs in the order of their numbers
	lengths     []int64
	kept        *metal.KeptStep
}

// leastPart is the least number of commands of which a driver is asked for a form.
const leastPart = 2

// keepParts asks the driver for forms of a take that is replayed for the second time: of what is not replayed there is
// none. Nor is there where memory is short: forms that were given up are made again when it is not.
func (r *Recording) keepParts(t *take, dev *metal.Device) {
	gone := func(p takePart) bool { return p.kept.Dropped() }
	if !t.used || t.parts != nil && !slices.ContainsFunc(t.parts, gone) || !dev.KeepsSteps() {
		t.used = true
		return
	}
	if mem := dev.Memory(); mem.Active+mem.Kept > mem.Limit/4*3 {
		return
	}
	parts := []takePart{}
	for _, ends := range [2][2]int{{0, t.indivisible}, {t.indivisible, len(t.cmds)}} {
		if ends[1]-ends[0] < leastPart {
			continue
		}
		p := takePart{first: ends[0], last: ends[1]}
		if p.kept = dev.KeepStep(t.step(&p)); p.kept != nil {
			parts = append(parts, p)
			// A recording may be dropped with whatever holds it.
			runtime.AddCleanup(t, func(k *metal.KeptStep) { k.Drop() }, p.kept)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range t.parts {
		p.kept.Drop()
	}
	if t.parts = parts; t.gone {
		t.drop()
	}
}

// drop lets go of the driver's forms: the take will not be replayed again. Called with the recording's mu held.
func (t *take) drop() {
	t.gone = true
	for i := range t.parts {
		t.parts[i].kept.Drop()
	}
}

// formBytes is what the driver's forms take. Called with the recording's mu held.
func (t *take) formBytes() (n int64) {
	for i := range t.parts {
		if k := t.parts[i].kept; !k.Dropped() {
			n += k.Bytes()
		}
	}
	return n
}

// step is the commands of a part as data for the driver: seats are slots.
func (t *take) step(p *takePart) *metal.Step {
	s := &metal.Step{Slots: len(t.seats)}
	for i := p.first; i < p.last; i++ {
		c := &t.cmds[i]
		to := metal.StepCommand{Kind: c.kind, Pipeline: c.pipeline, Grid: c.grid, Threadgroup: c.group, Pattern: c.pattern,
			Routine: c.routine, Args: make([]metal.StepArg, len(c.args)), Writes: c.writes}
		for k := range c.args {
			a, arg := &c.args[k], &to.Args[k]
			*arg = metal.StepArg{Slot: int(a.seat), Offset: a.offset, N: a.n, Value: -1, TGBytes: a.group, Bytes: a.bytes}
			if a.seat < 0 && a.group == 0 && a.from.input >= 0 {
				arg.Value = len(p.values)
				p.values, p.lengths = append(p.values, a.from), append(p.lengths, a.n)
			}
		}
		s.Commands = append(s.Commands, to)
	}
	s.Values = len(p.values)
	return s
}

// partAt is the part that begins with a command, nil if there is none.
func (t *take) partAt(i int) *takePart {
	for k := range t.parts {
		if t.parts[k].first == i {
			return &t.parts[k]
		}
	}
	return nil
}

// beginPart notes where the commands of a part begin that starts with command i.
func (k *steps) beginPart(i int) {
	if k.part = k.tk.partAt(i); k.part != nil {
		q := &k.rec.batcher
		k.partFrom, k.partOf = q.commands(), q.open()
	}
}

// endPart tells the driver which commands are a part's, if command i is the last one, and all are in one batch.
func (k *steps) endPart(i int) {
	p := k.part
	if p == nil || i+1 != p.last {
		return
	}
	k.part = nil
	q := &k.rec.batcher
	if q.batch != k.partOf || q.batch.cb == nil {
		return
	}
	slots, values := make([]metal.Range, len(k.tk.seats)), make([][]byte, len(p.values))
	for j := p.first; j < p.last; j++ {
		for _, a := range k.tk.cmds[j].args {
			if a.seat < 0 {
				continue
			}
			slots[a.seat] = metal.Range{Buf: k.bufs[a.seat], Offset: k.base[a.seat]}
		}
	}
	for j, at := range p.values {
		values[j] = k.in[at.input].inline[at.at:][:p.lengths[j]]
	}
	q.batch.cb.Encoder().Replayed(p.kept, k.partFrom, slots, values)
}
