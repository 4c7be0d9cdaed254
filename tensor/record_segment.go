package tensor

import (
	"fmt"
	"runtime/debug"

	"github.com/mlxlua/mlxlua/metal"
)

// recorder turns segments into command buffers, on its stream's goroutine.
type recorder struct {
	s   *Stream
	dev *metal.Device

	job     *job
	seg     *segment
	plan    plan
	batcher batcher
	memory  allocator

	texts  map[string]metal.Source // generated kernels by key
	key    []byte
	kernel kernelScratch
	spare  kernelScratch // for a copy that a rule makes while its own kernel is being prepared
	rule   Run           // of the Run rule that is being executed

	preview *preview // what is recorded is not to run: nil otherwise
}

func (e *recorder) init(s *Stream) {
	e.s, e.dev = s, s.dev
	e.batcher = batcher{s: s, dev: s.dev}
	e.memory = allocator{dev: s.dev, batcher: &e.batcher}
	e.texts = map[string]metal.Source{}
}

// beginSegment makes the segment the one that is recorded.
func (e *recorder) beginSegment(seg *segment) {
	e.seg, e.job = seg, seg.job
	e.batcher.job, e.batcher.tasks, e.batcher.begun = seg.job, seg.tasks, false
}

// runSegment plans and records a segment.
func (e *recorder) runSegment(seg *segment) {
	e.beginSegment(seg)
	defer e.endSegment(seg)
	if !e.job.stopped.Load() {
		planning := e.span("plan", "plan")
		e.makePlan()
		e.refuseTooLarge()
		planning.End(Place{})
		for _, u := range e.plan.units {
			if e.job.stopped.Load() {
				break
			}
			e.recordUnit(u)
			if e.batcher.full() {
				e.batcher.commit(false)
			}
		}
	}
	if e.job.stopped.Load() {
		e.leave()
	}
}

// refuseTooLarge fails what cannot fit in memory before anything runs: nobody should wait for the rest to learn of it.
func (e *recorder) refuseTooLarge() {
	limit := e.dev.Memory().Limit
	refused := false
	for _, u := range e.plan.units {
		n := e.seg.tasks[u.root].node
		if n.op.view != nil {
			continue
		}
		for i := range n.out {
			bytes := n.out[i].spec.NBytes()
			if a := n.holder.account(); bytes <= limit && (a == nil || bytes <= a.Limit()) {
				continue
			}
			origin := n.origin(i)
			buf, err := e.dev.AllocFor(e.job.ctx, bytes, &origin) // it says why
			switch {
			case err == nil:
				buf.Release()
				continue
			case e.stops([]int32{u.root}, err):
				return
			}
			n.settle(n.runError(err))
			refused = true
			break
		}
	}
	if !refused {
		return
	}
	for i := range e.seg.tasks {
		t := &e.seg.tasks[i]
		for _, v := range t.reads() {
			if err := v.Node.failure(); err != nil {
				t.node.settle(err)
				break
			}
		}
	}
}

// endSegment hands the rest of a segment over; what a bug left undone fails.
func (e *recorder) endSegment(seg *segment) {
	if r := recover(); r != nil {
		err := fmt.Errorf("BUG: planning panicked: %v\n%s", r, debug.Stack())
		for i := range seg.tasks {
			if n := seg.tasks[i].node; n != nil {
				n.settle(n.runError(err))
			}
		}
	}
	e.batcher.members, e.batcher.early = e.batcher.members[:0], nil
	e.memory.free.flush()
	e.memory.crowd = crowd{} // evaluations do not keep each other's memory
	e.batcher.commit(true)
	tasks := seg.tasks
	seg.tasks = nil // the nodes hold on to seg
	if seg.whole {
		spareTasks.put(tasks)
	}
	e.seg, e.job, e.batcher.job, e.batcher.tasks = nil, nil, nil, nil
}
