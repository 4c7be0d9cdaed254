package tensor

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
)

// recordUnit encodes a recordUnit; its nodes fail with what goes wrong.
func (e *recorder) recordUnit(u unit) {
	e.batcher.members = e.plan.members(u, e.batcher.members[:0])
	members := e.batcher.members
	if len(members) > 1 && e.anyFailed(members) {
		e.recordSingly(members, nil)
		return
	}
	e.memory.short = false
	e.batcher.first, e.batcher.early = e.batcher.commands(), nil
	err := e.seg.tasks[members[0]].node.failure()
	if err == nil {
		root := &e.seg.tasks[members[len(members)-1]]
		encoding := e.span("encode", root.node.op.name)
		if err = e.encode(members); err == nil && e.plan.single {
			err = e.inspect(root)
		}
		encoding.End(root.node.Place())
		e.kernel.begin()
	}
	if err != nil {
		for _, slot := range members {
			e.seg.tasks[slot].node.unplace()
		}
		if len(members) > 1 {
			if !e.memory.short {
				err = nil
			}
			e.recordSingly(members, err) // what cannot be encoded fails alone
			return
		}
	}
	e.batcher.members = e.batcher.members[:0]
	for _, slot := range members {
		e.finish(&e.seg.tasks[slot], err)
	}
	e.memory.giveBack()
}

// recordSingly records members one by one. Where there was no memory for them together (short is the error), the root
// would not have any either, and steps that only lead to it would take more, and time, in vain: these fail at once.
func (e *recorder) recordSingly(members []int32, short error) {
	members = append([]int32(nil), members...)
	e.batcher.members = e.batcher.members[:0]
	wanted := make([]bool, len(members))
	for i := len(members) - 1; i >= 0; i-- {
		slot := members[i]
		wanted[i] = wanted[i] || short == nil || i < len(members)-1 && e.plan.live[e.plan.base[slot]]
		for _, v := range e.seg.tasks[slot].reads() {
			if k := slices.Index(members, v.Node.slot); wanted[i] && v.Node.seg == e.seg && k >= 0 {
				wanted[k] = true
			}
		}
	}
	for i, slot := range members {
		e.plan.next[slot] = -1
		if wanted[i] {
			e.recordUnit(unit{slot, slot})
		} else {
			e.finish(&e.seg.tasks[slot], short)
		}
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

// encode encodes the members' commands.
func (e *recorder) encode(members []int32) (err error) {
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
	e.batcher.op, e.batcher.place = root.node.op, root.node.Place()
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
		}
		if err := n.failure(); err != nil {
			return err
		}
	}
	return nil
}

// finish records a task whose commands are encoded, or could not be, and lets go of what it read.
func (e *recorder) finish(t *task, err error) {
	if err == nil {
		b := e.batcher.open()
		b.nodes = append(b.nodes, settling{node: t.node, in: t.reads(), first: e.batcher.first, last: e.batcher.commands(),
			early: e.batcher.early})
		for i := range t.node.out {
			e.recycleUnread(Value{t.node, i})
		}
	}
	for _, v := range t.reads() {
		v.Node.out[v.Out].uses.Add(-1)
		e.recycleUnread(v)
	}
	if err != nil {
		t.node.settleLast(t.node.runError(err))
	}
	*t = task{} // a long segment must not keep what it has read
}

// unplace takes outputs back whose commands could not be encoded.
func (n *Node) unplace() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i := range n.out {
		if st := n.detach(i); st != nil {
			if buf := st.take(); buf != nil {
				buf.Release()
			}
		}
		n.out[i].gone = false
	}
}

// recycleUnread gives a value's storage back for later calls if no one will read the value.
func (e *recorder) recycleUnread(v Value) {
	o := &v.Node.out[v.Out]
	if o.uses.Load() != 0 || o.asked && v.Node.now() < Ready || !v.unheld(e.job.proof) {
		return
	}
	v.Node.mu.Lock()
	st := v.Node.detach(v.Out)
	v.Node.mu.Unlock()
	if st == nil {
		return
	}
	writable := st.writable(e.s)
	buf := st.take()
	switch {
	case buf == nil:
	case writable:
		e.memory.recycle(buf)
	default:
		buf.Release()
	}
}
