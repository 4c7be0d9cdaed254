package tensor

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/mlxlua/mlxlua/metal"
)

// recordUnit records a unit; its nodes fail with what goes wrong.
func (rec *recorder) recordUnit(u unit) {
	rec.batcher.members = rec.plan.members(u, rec.batcher.members[:0])
	members := rec.batcher.members
	if len(members) > 1 && rec.anyFailed(members) {
		rec.recordSingly(members)
		return
	}
	rec.batcher.first, rec.batcher.early, rec.batcher.atomicGroup = rec.batcher.commands(), nil, 0
	rec.batcher.update = nil
	rec.batcher.spoils = false
	err := rec.seg.tasks[members[0]].node.failure()
	if err == nil {
		root := &rec.seg.tasks[members[len(members)-1]]
		recording := rec.s.span("record", root.node.op.name)
		if err = rec.recordMembers(members); err == nil && rec.plan.single {
			err = rec.batcher.inspect(root)
		}
		recording.End(root.node.Place())
		rec.exec.kernel.begin()
	}
	if err != nil {
		for _, slot := range members {
			rec.seg.tasks[slot].unplace()
		}
		switch {
		case rec.stops(members, err):
			rec.batcher.members = rec.batcher.members[:0]
			rec.memory.giveBack()
			return
		case len(members) > 1:
			rec.recordSingly(members) // what cannot be recorded fails alone
			return
		}
	}
	rec.batcher.members = rec.batcher.members[:0]
	for _, slot := range members {
		rec.finish(&rec.seg.tasks[slot], err)
	}
	rec.memory.giveBack()
}

// stops reports whether an error of recording members means that the job is stopped: it was before, or it is now, since
// there is no memory.
func (rec *recorder) stops(members []int32, err error) bool {
	if errors.Is(err, metal.ErrNoMemory) {
		n := rec.seg.tasks[members[len(members)-1]].node
		rec.job.runOut(n.runError(err), n.id)
	}
	return rec.job.stopped.Load()
}

// recordSingly records members one by one.
func (rec *recorder) recordSingly(members []int32) {
	members = append([]int32(nil), members...)
	rec.batcher.members = rec.batcher.members[:0]
	for _, slot := range members {
		rec.plan.next[slot] = -1
		if rec.job.stopped.Load() {
			return
		}
		rec.recordUnit(unit{slot, slot})
	}
}

func (rec *recorder) anyFailed(members []int32) bool {
	for _, slot := range members {
		if rec.seg.tasks[slot].node.now() == Failed {
			return true
		}
		for _, v := range rec.seg.tasks[slot].reads() {
			if v.Node.now() == Failed {
				return true
			}
		}
	}
	return false
}

// recordMembers records the members' commands.
func (rec *recorder) recordMembers(members []int32) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("BUG: executing the op panicked: %v\n%s", r, debug.Stack())
		}
	}()
	if rec.job.ctx.Err() != nil {
		return context.Cause(rec.job.ctx)
	}
	for _, slot := range members {
		if err := rec.await(&rec.seg.tasks[slot]); err != nil {
			return err
		}
	}
	root := &rec.seg.tasks[members[len(members)-1]]
	rec.batcher.op, rec.batcher.place = root.node.op, root.node.Place()
	rec.batcher.account, rec.batcher.owner = root.node.holder.account(), root.node.holder.memory()
	rec.job.flops.Add(countedFlops(root.node, root.in))
	switch p := root.node.op; {
	case p.record != nil:
		return p.record(rec, root)
	case root.elementwise():
		return rec.exec.elementwise(members)
	case p.reduce != nil:
		return rec.exec.reduce(members)
	case p.view != nil:
		return rec.exec.viewRule(root)
	case p.run != nil:
		return rec.rule.record(rec, root)
	case p.host != nil:
		return newHostCall(rec, root).record()
	}
	return errors.New("BUG: the op has no executor")
}

// await has the task come after inputs that other streams compute, and returns the error of a failed input.
func (rec *recorder) await(t *task) error {
	for _, v := range t.reads() {
		n := v.Node
		if n.now() == Scheduled && n.runs != rec.s {
			if err := rec.meet(t, n); err != nil && n.now() != Failed {
				return err
			}
		} else if n.now() == undone {
			return errUndone
		} else if len(rec.batcher.older) > 0 && n.now() == Scheduled && !rec.seg.has(n) {
			rec.batcher.followOlder()
		}
		if err := n.failure(); err != nil {
			return err
		}
	}
	return nil
}

// finish records a task whose commands are recorded, or could not be, and lets go of what it read.
func (rec *recorder) finish(t *task, err error) {
	b := rec.batcher.open()
	sn := settling{task: *t, first: rec.batcher.first, last: rec.batcher.commands(), early: rec.batcher.early,
		update: rec.batcher.update, spoils: rec.batcher.spoils}
	if err != nil {
		sn.kind = refused
	}
	b.nodes = append(b.nodes, sn)
	if err == nil {
		for i := range t.node.out {
			rec.places.spendUnread(Value{t.node, i})
		}
	}
	for _, v := range t.reads() {
		v.Node.out[v.Out].readers.n.Add(recordedReader - 1)
		rec.places.spendUnread(v)
	}
	if err != nil {
		t.node.settle(t.node.runError(err))
	}
	*t = task{} // a long segment must not keep what it has read
}

// leave records tasks as not recorded, since the job was stopped. What has failed before it could be recorded stays so.
func (rec *recorder) leave() {
	noted := rec.job.noted()
	for i := range rec.seg.tasks {
		t := &rec.seg.tasks[i]
		if t.node == nil {
			continue
		}
		err := t.node.failure()
		if err == nil {
			err = noted[t.node] // its indices were checked ahead
		}
		if err != nil {
			rec.finish(t, err)
		} else {
			b := rec.batcher.open()
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
