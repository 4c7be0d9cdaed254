package tensor

import (
	"fmt"
	"runtime/debug"

	"github.com/mlxlua/mlxlua/metal"
)

// recorder turns segments into command buffers, on its stream's goroutine. It goes over the units of a plan; what it
// holds knows how: where values lie, how kernels are encoded, when commands are handed over.
type recorder struct {
	current
	s   *Stream
	dev *metal.Device

	batcher batcher
	memory  allocator
	places  placer
	exec    executor
	rule    Run // of the Run rule that is being executed
	gates   gates
	steps   steps
}

// current is what a recorder is at.
type current struct {
	job     *job
	seg     *segment
	plan    plan
	preview *preview // what is recorded is not to run: nil otherwise
	dry     *dry     // what is recorded is for a take: nil otherwise
}

func (rec *recorder) init(s *Stream) {
	rec.s, rec.dev = s, s.dev
	rec.batcher = batcher{s: s, dev: s.dev, pace: s.dev.Info().Pace}
	rec.memory = allocator{dev: s.dev, batcher: &rec.batcher}
	rec.places = placer{current: &rec.current, s: s, dev: s.dev, memory: &rec.memory, batcher: &rec.batcher,
		gates: &rec.gates}
	rec.exec = executor{current: &rec.current, s: s, dev: s.dev, memory: &rec.memory, batcher: &rec.batcher,
		places: &rec.places, texts: map[string]metal.Source{}}
	rec.gates = gates{rec: rec, skips: s.dev.Info().Skips, behind: map[*metal.Buffer][]*Change{}}
	rec.steps.rec = rec
}

// beginSegment makes the segment the one that is recorded.
func (rec *recorder) beginSegment(seg *segment) {
	rec.seg, rec.job = seg, seg.job
	rec.batcher.job, rec.batcher.tasks, rec.batcher.begun = seg.job, seg.tasks, false
	rec.batcher.beginSegment()
}

// runSegment plans and records a segment.
func (rec *recorder) runSegment(seg *segment) {
	rec.beginSegment(seg)
	defer rec.endSegment(seg)
	if !rec.job.stopped.Load() {
		planning := rec.s.span("plan", "plan")
		rec.makePlan(rec.s)
		rec.refuseTooLarge()
		planning.End(Place{})
		for _, u := range rec.plan.units {
			if rec.job.stopped.Load() {
				break
			}
			rec.recordUnit(u)
			if rec.batcher.full() {
				rec.batcher.commit(false)
			}
		}
	}
	if rec.job.stopped.Load() {
		rec.leave()
	}
}

// refuseTooLarge fails what cannot fit in memory before anything runs: nobody should wait for the rest to learn of it.
func (rec *recorder) refuseTooLarge() {
	limit := rec.dev.Memory().Limit
	refused := false
	for _, u := range rec.plan.units {
		if rec.seg.tasks[u.root].isView() {
			continue
		}
		n := rec.seg.tasks[u.root].node
		for i := range n.out {
			bytes := n.out[i].spec.NBytes()
			if a := n.holder.account(); bytes <= limit && (a == nil || bytes <= a.Limit()) {
				continue
			}
			origin := n.origin(i)
			buf, err := rec.dev.AllocToFill(rec.job.ctx, bytes, &origin) // it says why
			switch {
			case err == nil:
				buf.Release()
				continue
			case rec.stops([]int32{u.root}, err):
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
	for i := range rec.seg.tasks {
		t := &rec.seg.tasks[i]
		for _, v := range t.reads() {
			if err := v.Node.failure(); err != nil {
				t.node.settle(err)
				break
			}
		}
	}
}

// endSegment hands the rest of a segment over; what a bug left undone fails.
func (rec *recorder) endSegment(seg *segment) {
	if r := recover(); r != nil {
		err := fmt.Errorf("BUG: planning panicked: %v\n%s", r, debug.Stack())
		for i := range seg.tasks {
			if n := seg.tasks[i].node; n != nil {
				n.settle(n.runError(err))
			}
		}
	}
	rec.batcher.members, rec.batcher.early = rec.batcher.members[:0], nil
	rec.gates.endSegment()
	rec.memory.free.flush()
	rec.memory.group = storageGroup{} // evaluations do not keep each other's memory
	rec.batcher.commit(true)
	tasks := seg.tasks
	seg.tasks = nil // the nodes hold on to seg
	if seg.whole {
		spareTasks.put(tasks)
	}
	rec.seg, rec.job, rec.batcher.job, rec.batcher.tasks = nil, nil, nil, nil
}
