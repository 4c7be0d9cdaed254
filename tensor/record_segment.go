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

	job    *job
	seg    *segment
	batch  *batch
	plan   plan
	temps  []*metal.Buffer // of the call being encoded
	lent   []*metal.Buffer // those of them that someone reads after the call
	free   freeList
	crowd  crowd // of the segment being encoded
	pieces []int // that strides are cut from

	texts   map[string]metal.Source // generated kernels by key
	key     []byte
	members []int32 // of the unit that is being encoded
	op      *Op     // that the last of them calls
	place   Place   // and the line
	first   int     // its first command in the batch
	early   *error  // of its commands in earlier batches
	short   bool    // there was no memory for it
	begins  bool    // no batch of the segment was handed over
	kernel  kernelScratch
	rule    Run           // of the Run rule that is being executed
	spare   kernelScratch // for a copy that a rule makes while its own kernel is being prepared
}

func (e *recorder) init(s *Stream) {
	e.s, e.dev = s, s.dev
	e.texts = map[string]metal.Source{}
}

// run plans and encodes a segment.
func (e *recorder) run(seg *segment) {
	e.seg, e.job, e.begins = seg, seg.job, true
	defer e.end(seg)
	planning := e.span("plan", "plan")
	e.order()
	e.refuse()
	planning.End(Place{})
	for _, u := range e.plan.units {
		e.unit(u)
		if e.full() {
			e.commit(false)
		}
	}
}

// refuse fails what cannot fit in memory before anything runs: nobody should wait for the rest to learn of it.
func (e *recorder) refuse() {
	limit := e.dev.Memory().Limit
	refused := false
	for _, u := range e.plan.units {
		n := e.seg.tasks[u.root].node
		if n.op.view != nil {
			continue
		}
		for i := range n.out {
			bytes := n.out[i].spec.NBytes()
			if bytes <= limit {
				continue
			}
			buf, err := e.dev.Alloc(e.job.ctx, bytes) // it says why
			if err != nil {
				n.settle(n.runError(err))
				refused = true
				break
			}
			buf.Release()
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

// end hands the rest of a segment over; what a bug left undone fails.
func (e *recorder) end(seg *segment) {
	if r := recover(); r != nil {
		err := fmt.Errorf("BUG: planning panicked: %v\n%s", r, debug.Stack())
		for i := range seg.tasks {
			if n := seg.tasks[i].node; n != nil {
				n.settle(n.runError(err))
			}
		}
	}
	e.members, e.early = e.members[:0], nil
	e.free.flush()
	e.crowd = crowd{} // evaluations do not keep each other's memory
	e.commit(true)
	tasks := seg.tasks
	seg.tasks = nil // the nodes hold on to seg
	if seg.whole {
		spareTasks.put(tasks)
	}
	e.seg, e.job = nil, nil
}
