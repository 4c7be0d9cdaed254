package drivertest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/mlxlua/mlxlua/metal"
)

// Forms are forms of steps, for drivers of tests that are metal.StepKeeper. A form is a copy of the step's data, of
// which the commands are made again: nothing else of what the device model recorded is looked at.
type Forms struct {
	mu          sync.Mutex
	kept, parts int
}

// form is what Forms keep of a step.
type form struct {
	of   *Forms
	step metal.Step
}

// KeepStep copies a step.
func (f *Forms) KeepStep(s *metal.Step) metal.StepForm {
	k := &form{f, *s}
	k.step.Commands = slices.Clone(s.Commands)
	for i := range k.step.Commands {
		c := &k.step.Commands[i]
		c.Pattern, c.Args = bytes.Clone(c.Pattern), slices.Clone(c.Args)
		for j := range c.Args {
			c.Args[j].Bytes = bytes.Clone(c.Args[j].Bytes)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.kept++
	return k
}

// Bytes is a number that grows with the step.
func (k *form) Bytes() int64 { return 1000 * int64(len(k.step.Commands)) }

// Drop notes that the form is gone.
func (k *form) Drop() {
	k.of.mu.Lock()
	defer k.of.mu.Unlock()
	k.of.kept--
}

// Counts is how many forms there are now, and how many parts were made of forms so far.
func (f *Forms) Counts() (kept, parts int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.kept, f.parts
}

// Commands are the commands of cb, those of its parts made of their forms.
func (f *Forms) Commands(cb *metal.CommandBuffer) []metal.Command {
	parts := cb.Parts()
	f.mu.Lock()
	f.parts += len(parts)
	f.mu.Unlock()
	return made(cb.Commands(), parts)
}

// made are commands with those of parts made of their forms.
func made(recorded []metal.Command, parts []metal.StepPart) []metal.Command {
	cmds := slices.Clone(recorded)
	for i := range parts {
		p := &parts[i]
		of := p.Form.(*form).step.Commands
		for at := p.First; at < p.Last; at++ {
			if cmds[at].Kind != metal.CmdBarrier {
				cmds[at] = command(&of[0], p, &cmds[at])
				of = of[1:]
			}
		}
	}
	return cmds
}

// command makes a command of a step's, for what a part says. In was recorded in its place.
func command(s *metal.StepCommand, p *metal.StepPart, in *metal.Command) metal.Command {
	c := metal.Command{Kind: s.Kind, Label: in.Label, Unit: in.Unit, Unless: in.Unless, Fault: in.Fault,
		Pipeline: s.Pipeline, Grid: s.Grid, Threadgroup: s.Threadgroup, Pattern: s.Pattern}
	switch s.Kind {
	case metal.CmdCopy:
		c.Dst, c.Src = s.Args[0].Range(p.Slots), s.Args[1].Range(p.Slots)
	case metal.CmdFill:
		c.Dst = s.Args[0].Range(p.Slots)
	case metal.CmdCall:
		c.Call = &metal.Call{Routine: s.Routine}
		for i := range s.Args {
			to := &c.Call.Reads
			if i < s.Writes {
				to = &c.Call.Writes
			}
			*to = append(*to, s.Args[i].Range(p.Slots))
		}
	case metal.CmdDispatch:
		for i := range s.Args {
			a := &s.Args[i]
			switch {
			case a.Slot >= 0:
				c.Args = append(c.Args, metal.Arg{Buffer: a.Range(p.Slots)})
			case a.Value >= 0:
				c.Args = append(c.Args, metal.Arg{Bytes: p.Values[a.Value]})
			default:
				c.Args = append(c.Args, metal.Arg{Bytes: a.Bytes, TGBytes: a.TGBytes})
			}
		}
	}
	return c
}

// Check is an error where a command buffer's parts and their forms do not make the commands that were recorded.
func (f *Forms) Check(cb *metal.CommandBuffer) error {
	if len(cb.Parts()) == 0 {
		return nil
	}
	recorded := cb.Commands()
	for i, made := range f.Commands(cb) {
		if !same(&recorded[i], &made) {
			return fmt.Errorf("BUG: command %d of a step is %+v, recorded is %+v", i, made, recorded[i])
		}
	}
	return nil
}

// same reports whether two commands do one thing.
func same(a, b *metal.Command) bool {
	alike := func(x, y metal.Arg) bool {
		return x.Buffer == y.Buffer && x.TGBytes == y.TGBytes && bytes.Equal(x.Bytes, y.Bytes)
	}
	calls := a.Call == nil && b.Call == nil || a.Call != nil && b.Call != nil && a.Call.Routine == b.Call.Routine &&
		slices.Equal(a.Call.Reads, b.Call.Reads) && slices.Equal(a.Call.Writes, b.Call.Writes)
	return calls && a.Kind == b.Kind && a.Pipeline == b.Pipeline && a.Grid == b.Grid && a.Threadgroup == b.Threadgroup &&
		a.Src == b.Src && a.Dst == b.Dst && bytes.Equal(a.Pattern, b.Pattern) && slices.EqualFunc(a.Args, b.Args, alike)
}

// caseSteps: the form of a step does what its commands do, on other memory and with other values each time: also memory
// that two slots share, behind a gate, and twice in a command buffer.
func caseSteps(b *bench) {
	const n, rounds = 256, 50
	twice, next, store := b.kernel("twice_plus_one"), b.kernel("next"), b.kernel("store_at")
	slot := func(i int, offset, n int64) metal.StepArg {
		return metal.StepArg{Slot: i, Offset: offset, N: n, Value: -1}
	}
	value := metal.StepArg{Slot: -1, Value: 0}
	step := &metal.Step{Slots: 3, Values: 1, Commands: []metal.StepCommand{
		{Kind: metal.CmdDispatch, Pipeline: next, Grid: threads(n), Threadgroup: threads(32),
			Args: []metal.StepArg{slot(0, 0, 4*n), slot(1, 0, metal.ToEnd)}},
		{Kind: metal.CmdDispatch, Pipeline: store, Grid: threads(1), Threadgroup: threads(1),
			Args: []metal.StepArg{slot(1, 0, 4*n), value}},
		{Kind: metal.CmdDispatch, Pipeline: twice, Grid: threads(n), Threadgroup: threads(64),
			Args: []metal.StepArg{slot(1, 0, 4*n)}},
		{Kind: metal.CmdFill, Pattern: []byte{9, 0, 0, 0}, Writes: 1, Args: []metal.StepArg{slot(1, 16, 8)}},
		{Kind: metal.CmdCopy, Writes: 1, Args: []metal.StepArg{slot(2, -4, 4*n), slot(1, 0, 4*n)}},
	}}
	kept := b.d.KeepStep(step)
	if kept == nil {
		return
	}
	record := func(cb *metal.CommandBuffer, slots []metal.Range, at uint32) {
		e, first := cb.Encoder(), cb.Encoder().Len()
		values := [][]byte{binary.LittleEndian.AppendUint32(nil, at)}
		for i := range step.Commands {
			c := &step.Commands[i]
			switch c.Kind {
			case metal.CmdDispatch:
				e.SetPipeline(c.Pipeline)
				for k := range c.Args {
					if a := &c.Args[k]; a.Slot >= 0 {
						e.SetBufferRange(k, a.Range(slots))
					} else {
						e.SetBytes(k, values[a.Value])
					}
				}
				must.NoError(b.t, e.Dispatch(c.Grid, c.Threadgroup))
			case metal.CmdFill:
				must.NoError(b.t, e.Fill(c.Args[0].Range(slots), c.Pattern))
			case metal.CmdCopy:
				must.NoError(b.t, e.Copy(c.Args[0].Range(slots), c.Args[1].Range(slots)))
			}
		}
		e.Replayed(kept, first, slots, values)
	}
	for round := range uint32(rounds) {
		in, words, into := b.zeros(n), b.words(0, round%5/4), b.zeros(1)
		fill := b.begin()
		must.NoError(b.t, fill.Encoder().Fill(in.All(), binary.LittleEndian.AppendUint32(nil, round)))
		b.finish(fill)
		work, out := b.zeros(n), b.zeros(n+1)
		var chain metal.Chain
		cbs := []*metal.CommandBuffer{b.chained(&chain)}
		record(cbs[0], []metal.Range{{Buf: in}, {Buf: work}, {Buf: out, Offset: 8}}, round)
		must.Equal(b.t, 1, len(cbs[0].Parts()))
		cb := cbs[0]
		if err := cb.Encoder().Gate([]metal.Range{words.All()}, into.All()); errors.Is(err, metal.ErrGateBegins) {
			cb = b.chained(&chain)
			cbs = append(cbs, cb)
			must.NoError(b.t, cb.Encoder().Gate([]metal.Range{words.All()}, into.All()))
		}
		record(cb, []metal.Range{{Buf: out, Offset: 4}, {Buf: in}, {Buf: work, Offset: 4}}, round+1)
		for _, cb := range cbs {
			must.NoError(b.t, cb.Commit())
		}
		for _, cb := range cbs {
			_ = cb.Wait(bg) // what a gate left out is an error
		}
		ran := func(in []uint32, at uint32) []uint32 {
			to := make([]uint32, n)
			for i := range to {
				to[i] = 2*(in[i]*1664525+1013904223) + 1
			}
			to[at], to[4], to[5] = 3, 9, 9
			return to
		}
		wantIn := slices.Repeat([]uint32{round}, n)
		wantOut := append([]uint32{0}, ran(wantIn, round)...)
		wantWork := wantOut[1:]
		if round%5 != 4 {
			wantIn = ran(wantOut[1:], round+1)
			wantWork = wantIn
		}
		must.Equal(b.t, wantIn, b.read(in))
		must.Equal(b.t, wantWork, b.read(work))
		must.Equal(b.t, wantOut, b.read(out))
		release(in, words, into, work, out)
	}
	kept.Drop()
}
