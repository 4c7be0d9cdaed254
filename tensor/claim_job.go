package tensor

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/mlxlua/mlxlua/metal"
)

// job is one evaluation: what a call of Eval asked for that nobody had asked for before.
type job struct {
	ctx    context.Context // done when the evaluation is over, or cancelled
	cancel context.CancelCauseFunc

	roots    []Value // what was asked for; nil once the job is claimed
	fallback *Stream // of nodes that have none
	proof    proof   // what the roots' holder knew
	tasks    atomic.Int64
	bytes    atomic.Int64 // that its kernels write, or reduce
	commands atomic.Int64

	mu        sync.Mutex
	deps      []*job                 // evaluations whose results this one waits for
	unsettled int                    // segments that are not settled: unclaimed before anyone knows how many there are
	err       error                  // the first
	over      chan struct{}          // closed when left is 0; made when first waited for
	running   []*metal.CommandBuffer // committed, or about to be, and not ended
}

// watch has the evaluation's end by cancellation end a command buffer too, until forget.
func (j *job) watch(cb *metal.CommandBuffer) {
	j.mu.Lock()
	j.running = append(j.running, cb)
	j.mu.Unlock()
	if j.ctx.Err() != nil {
		cb.Cancel(context.Cause(j.ctx))
	}
}

func (j *job) forget(cb *metal.CommandBuffer) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if i := slices.Index(j.running, cb); i >= 0 {
		j.running = slices.Delete(j.running, i, i+1)
	}
}

// stop cancels the evaluation.
func (j *job) stop(cause error) {
	j.cancel(cause)
	j.mu.Lock()
	running := slices.Clone(j.running)
	j.mu.Unlock()
	for _, cb := range running {
		cb.Cancel(context.Cause(j.ctx))
	}
}

// segment is the part of a job that runs on one stream without a break.
type segment struct {
	job    *job
	stream *Stream
	first  int // of its tasks in the job's
	tasks  []task
	whole  bool // the job has no other
}

// task is a claimed node with what it reads.
type task struct {
	node *Node
	in   []Value
	from int // index of the first input of which only the spec is read
}

// reads are the inputs whose data the task reads.
func (t *task) reads() []Value { return t.in[:t.from] }

func (j *job) fail(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err == nil {
		j.err = err
	}
}

// settled tells the job that a segment is done with.
func (j *job) settled() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.setUnsettled(j.unsettled - 1)
}

// setUnsettled notes how many segments are not settled. Called with mu held.
func (j *job) setUnsettled(n int) {
	if j.unsettled = n; n == 0 {
		j.deps = nil
		j.cancel(context.Canceled)
		if j.over != nil {
			close(j.over)
		}
	}
}

// unknownSegments is the left of a job before it is claimed.
const unknownSegments = -1

func (j *job) progress() (left int, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.unsettled, j.err
}
