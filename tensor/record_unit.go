package tensor

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/mlxlua/mlxlua/metal"
)

// recordUnit records a unit; its nodes fail with what goes wrong.
func (e *recorder) recordUnit(u unit) {
	e.batcher.members = e.plan.members(u, e.batcher.members[:0])
	members := e.batcher.members
	if len(members) > 1 && e.anyFailed(members) {
		e.recordSingly(members)
		return
	}
	e.batcher.first, e.batcher.early, e.batcher.whole = e.batcher.commands(), nil, 0
	err := e.seg.tasks[members[0]].node.failure()
	if err == nil {
		root := &e.seg.tasks[members[len(members)-1]]
		recording := e.span("record", root.node.op.name)
		if err = e.recordMembers(members); err == nil && e.plan.single {
			err = e.inspect(root)
		}
		recording.End(root.node.Place())
		e.kernel.begin()
	}
	if err != nil {
		for _, slot := range members {
			e.seg.tasks[slot].unplace()
		}
		switch {
		case e.stops(members, err):
			e.batcher.members = e.batcher.members[:0]
			e.memory.giveBack()
			return
		case len(members) > 1:
			e.recordSingly(members) // what cannot be recorded fails alone
			return
		}
	}
	e.batcher.members = e.batcher.members[:0]
	for _, slot := range members {
		e.finish(&e.seg.tasks[slot], err)
	}
	e.memory.giveBack()
}

// stops reports whether an error of recording members means that the job is stopped: it was before, or it is now, since
// there is no memory.
func (e *recorder) stops(members []int32, err error) bool {
	if errors.Is(err, metal.ErrNoMemory) {
		e.job.runOut(e.seg.tasks[members[len(members)-1]].node.runError(err))
	}
	return e.job.stopped.Load()
}

// recordSingly records members one by one.
func (e *recorder) recordSingly(members []int32) {
	members = append([]int32(nil), members...)
	e.batcher.members = e.batcher.members[:0]
	for _, slot := range members {
		e.plan.next[slot] = -1
		if e.job.stopped.Load() {
			return
		}
		e.recordUnit(unit{slot, slot})
	}
}

func (e *recorder) anyFailed(members []int32) bool {
	for _, slot := range members {
		if e.seg.tasks[slot].node.now() == Failed {
			return true
		}
		for _, v := range e.seg.tasks[slot].reads() {
			if v.Node.now() == Failed {
				return true
			}
		}
	}
	return false
}

// recordMembers records the members' commands.
func (e *recorder) recordMembers(members []int32) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("BUG: executing the op panicked: %v\n%s", r, debug.Stack())
		}
	}()
	if e.job.ctx.Err() != nil {
		return context.Cause(e.job.ctx)
	}
	for _, slot := range members {
		if err := e.await(&e.seg.tasks[slot]); err != nil {
			return err
		}
	}
	root := &e.seg.tasks[members[len(members)-1]]
	e.batcher.op, e.batcher.place, e.batcher.account = root.node.op, root.node.Place(), root.node.holder.account()
	switch p := root.node.op; {
	case p.expr != nil:
		return e.elementwise(members)
	case p.reduce != nil:
		return e.reduce(members)
	case p.view != nil:
		return e.viewRule(root)
	case p.run != nil:
		return e.runRule(root)
	case p.host != nil:
		return e.hostRule(root)
	}
	return errors.New("BUG: the op has no executor")
}

// await waits for inputs that other streams compute, and returns the error of a failed input.
func (e *recorder) await(t *task) error {
	for _, v := range t.reads() {
		n := v.Node
		if n.now() == Scheduled && n.runs != e.s {
			if e.batcher.batch != nil {
				e.batcher.commit(false)
			}
			if err := n.wait(e.job.ctx); err != nil && n.now() != Failed {
				return err
			}
		} else if n.now() == undone {
			return errUndone
		}
		if err := n.failure(); err != nil {
			return err
		}
	}
	return nil
}

// finish records a task whose commands are recorded, or could not be, and lets go of what it read.
func (e *recorder) finish(t *task, err error) {
	b := e.batcher.open()
	sn := settling{task: *t, first: e.batcher.first, last: e.batcher.commands(), early: e.batcher.early}
	if err != nil {
		sn.kind = refused
	}
	b.nodes = append(b.nodes, sn)
	if err == nil {
		for i := range t.node.out {
			e.spendUnread(Value{t.node, i})
		}
	}
	for _, v := range t.reads() {
		v.Node.out[v.Out].readers.n.Add(recordedReader - 1)
		e.spendUnread(v)
	}
	if err != nil {
		t.node.settle(t.node.runError(err))
	}
	*t = task{} // a long segment must not keep what it has read
}

// leave records tasks as not recorded, since the job was stopped.
func (e *recorder) leave() {
	for i := range e.seg.tasks {
		if t := &e.seg.tasks[i]; t.node != nil {
			b := e.batcher.open()
			b.nodes = append(b.nodes, settling{task: *t, kind: unrecorded})
			*t = task{}
		}
	}
}

// unplace takes outputs back whose commands could not be recorded.
func (t *task) unplace() {
	n := t.node
	n.mu.Lock()
	defer n.mu.Unlock()
	for i := range n.out {
		n.out[i].forget()
	}
}

// spendUnread has later calls use a value's storage if no one will read the value. When all that read it have run, and
// have not been undone, it is gone.
func (e *recorder) spendUnread(v Value) {
	o := &v.Node.out[v.Out]
	if o.readers.waiting() != 0 || o.asked && v.Node.now() < Ready || !v.unheld(e.job.proof) {
		return
	}
	v.Node.mu.Lock()
	st := o.data.owner
	spend := !o.spent && !o.gone
	o.spent = true
	v.Node.mu.Unlock()
	if spend && st != nil && st.users.Add(-1) == 0 && st.writable(e.s) {
		st.buf.Retain()
		e.memory.recycle(st.buf)
	}
	if !e.dev.Retains() { // nothing is kept, to see what that prevents
		v.Node.mu.Lock()
		v.Node.drop(v.Out)
		v.Node.mu.Unlock()
	}
}
