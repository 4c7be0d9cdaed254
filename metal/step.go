package metal

import (
	"slices"
	"sync"
	"sync/atomic"
)

// A driver may keep a form of its own of commands that are recorded again and again, such as a CUDA graph. What it is
// given is data: a Step, and in each command buffer where its commands stand and what is in the place of its slots.

// Step is commands that are recorded into many command buffers, each time with other memory in the place of its slots.
// It does not change.
type Step struct {
	Commands []StepCommand // in their order, without barriers
	Slots    int           // how many ranges of memory differ from one time to the next
	Values   int           // how many inline bytes do
}

// StepCommand is a command of a Step. Its kind is CmdDispatch, CmdCopy, CmdFill or CmdCall.
type StepCommand struct {
	Kind              CommandKind
	Pipeline          *Pipeline // of a dispatch
	Grid, Threadgroup Size      // as Command has them
	Pattern           []byte    // of a fill
	Routine           Routine   // of a call
	// Args are, of a dispatch, its arguments in the order of the pipeline's Params; of a copy, what it writes and what it
	// reads; of a fill, what it writes; of a call, what it writes and then what it reads.
	Args   []StepArg
	Writes int // of what is no dispatch: how many of Args it writes
}

// StepArg is an argument of a StepCommand: memory, where Slot is not negative; inline bytes that differ from one time
// to the next, where Value is not negative; else a length of threadgroup memory, or bytes that are the same always.
type StepArg struct {
	Slot    int
	Offset  int64 // of a slot's memory behind where the slot's range begins; it may be negative
	N       int64 // bytes of it; ToEnd: all that the buffer has from there on
	Value   int
	TGBytes int
	Bytes   []byte
}

// ToEnd stands for the bytes up to a buffer's end.
const ToEnd = -1

// Range is what an argument with a slot is bound to, where the slots stand for these ranges.
func (a *StepArg) Range(slots []Range) Range {
	r := Range{Buf: slots[a.Slot].Buf, Offset: slots[a.Slot].Offset + a.Offset, Bytes: a.N}
	if a.N == ToEnd {
		r.Bytes = r.Buf.Len() - r.Offset
	}
	return r
}

// StepKeeper is the capability of drivers that keep a form of their own of steps.
type StepKeeper interface {
	// KeepStep makes the driver's form of a step that is about to be recorded for the second time or later. It may take as
	// long as running the step a few times, but not wait for what was submitted. Nil: the driver keeps none of this step,
	// and is not asked again. It is called from any goroutine.
	KeepStep(s *Step) StepForm
}

// StepForm is a driver's form of a Step.
type StepForm interface {
	// Bytes is about what the form takes in the host's and the device's memory. It is asked often.
	Bytes() int64
	// Drop says that nobody needs the form any more: no command buffer that has not ended has a part of it, and none will.
	// It is called once, from any goroutine, and maybe after the driver's Close.
	Drop()
}

// StepPart says which commands of a command buffer are those of a Step that the driver has a form of. The driver may
// run the form on Slots and Values in the place of these commands, or the commands as if there was no part. It may rely
// on this:
//
//   - Commands First up to Last, barriers left out, are those of the Step: as many, in its order, with its pipelines,
//     grids, threadgroups, patterns and routines. An argument with a slot is bound to StepArg.Range(Slots), one with a
//     value to the bytes Values[Value], all others to what the Step says.
//   - All of them have the same Unless, the same Fault and the same Unit, which are no part of the Step.
//   - Barriers stand where the ranges of the day need them, and not always at the same places: ranges of different
//     slots may overlap one time and not the next, as memory that is not needed any more is used again. Whoever runs
//     the commands one after the other, each when the one before has ended, needs none of them.
//   - The memory of a slot is there until the command buffer has ended. A slot that no command names has no buffer.
//   - Result is as if the commands had run one by one: Failed and Ran have their numbers in the command buffer. A
//     driver that is to measure each command (CommandBuffer.Measures), or to check each one, runs them one by one.
//
// Parts of one command buffer do not overlap; there may be several of one form.
type StepPart struct {
	Form        StepForm
	First, Last int
	Slots       []Range
	Values      [][]byte
}

// KeptStep is a step that the driver has a form of. Its methods may be called from any goroutine. Forms count for the
// memory limit of their device. Where it has no room for an allocation they go, those first that were recorded longest
// ago: a form is no more than a quicker way to run commands.
type KeptStep struct {
	form StepForm
	of   *keptSteps
	n    int // commands
	refs atomic.Int64
	over atomic.Bool

	// Guarded by of.mu:
	counted int64 // bytes of it
	used    int64 // when, by of.clock
}

// keptSteps are a device's.
type keptSteps struct {
	bytes atomic.Int64 // of all of them
	mu    sync.Mutex
	list  []*KeptStep
	clock int64
}

// use notes that a form is recorded, and what it takes by now.
func (l *keptSteps) use(k *KeptStep) {
	bytes := k.form.Bytes()
	l.mu.Lock()
	defer l.mu.Unlock()
	if k.over.Load() {
		return
	}
	l.clock++
	k.used = l.clock
	l.bytes.Add(bytes - k.counted)
	k.counted = bytes
}

// forget takes out a form that is dropped.
func (l *keptSteps) forget(k *KeptStep) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = slices.DeleteFunc(l.list, func(o *KeptStep) bool { return o == k })
	l.bytes.Add(-k.counted)
	k.counted = 0
}

// giveUp drops forms of so many bytes, but at least one, and reports whether there was one.
func (l *keptSteps) giveUp(n int64) (some bool) {
	l.mu.Lock()
	list := slices.Clone(l.list)
	slices.SortFunc(list, func(a, b *KeptStep) int { return int(a.used - b.used) })
	sizes := make([]int64, len(list))
	for i, k := range list {
		sizes[i] = k.counted
	}
	l.mu.Unlock()
	for i, k := range list {
		if some && n <= 0 {
			break
		}
		k.Drop()
		n, some = n-sizes[i], true
	}
	return some
}

// KeepStep asks the driver for a form of a step; nil: it keeps none. Whoever asks says when it is not needed any more.
func (d *Device) KeepStep(s *Step) *KeptStep {
	keeper, ok := Capability[StepKeeper](d)
	if !ok {
		return nil
	}
	form := keeper.KeepStep(s)
	if form == nil {
		return nil
	}
	k := &KeptStep{form: form, of: &d.kept, n: len(s.Commands)}
	k.refs.Store(1)
	d.kept.mu.Lock()
	d.kept.list = append(d.kept.list, k)
	d.kept.mu.Unlock()
	d.kept.use(k)
	return k
}

// KeepsSteps reports whether the driver keeps forms of steps.
func (d *Device) KeepsSteps() bool {
	_, ok := Capability[StepKeeper](d)
	return ok
}

// Bytes is what the driver's form takes.
func (k *KeptStep) Bytes() int64 { return k.form.Bytes() }

// Drop says that the step will not be recorded again. A second Drop does nothing.
func (k *KeptStep) Drop() {
	if !k.over.Swap(true) {
		k.of.forget(k)
		k.release()
	}
}

// Dropped reports whether the form is given up.
func (k *KeptStep) Dropped() bool { return k.over.Load() }

func (k *KeptStep) release() {
	if k.refs.Add(-1) == 0 {
		k.form.Drop()
	}
}

// tryRetain reports whether the form is still there, and then keeps it.
func (k *KeptStep) tryRetain() bool {
	for {
		n := k.refs.Load()
		if n == 0 {
			return false
		}
		if k.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// Replayed says that the commands from number first on are those of a step, with these ranges in the place of its slots
// and these bytes in that of its values, which nobody changes. Where others were recorded among them, or some of them
// are to be skipped or to run together without the rest, that is no part for the driver.
func (e *Encoder) Replayed(k *KeptStep, first int, slots []Range, values [][]byte) {
	cb := e.cb
	cb.mu.Lock()
	defer cb.mu.Unlock()
	if cb.rec == nil || first < 0 || first > len(cb.rec.cmds) {
		return
	}
	n, alike := 0, true
	var one *Command
	for i := range cb.rec.cmds[first:] {
		c := &cb.rec.cmds[first+i]
		if c.Kind == CmdBarrier {
			continue
		}
		if n++; one == nil {
			one = c
		}
		alike = alike && c.Unit == one.Unit && c.Unless == one.Unless && c.Fault == one.Fault
	}
	if n == 0 || n != k.n || !alike || !k.tryRetain() {
		return
	}
	k.of.use(k)
	cb.rec.parts = append(cb.rec.parts, StepPart{k.form, first, len(cb.rec.cmds), slots, values})
	cb.rec.kept = append(cb.rec.kept, k)
}

// Parts are the commands that are steps', in their order; they are valid until the command buffer has ended. Read only.
// For drivers.
func (cb *CommandBuffer) Parts() []StepPart {
	cb.mu.Lock()
	defer cb.mu.Unlock()
	if cb.rec == nil {
		return nil
	}
	return cb.rec.parts
}
