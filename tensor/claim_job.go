package tensor

import (
	"context"
	"maps"
	"sync"
	"sync/atomic"

	"github.com/mlxlua/mlxlua/metal"
)

// job is one evaluation: what a call of Eval asked for that nobody had asked for before.
type job struct {
	ctx    context.Context // done when the evaluation is over, or stopped
	cancel context.CancelCauseFunc

	waiter   context.Context // of whoever asked, if he waits for it; else nobody
	roots    []Value         // what was asked for; nil once the job is claimed
	fallback *Stream         // of nodes that have none
	proof    proof           // what the roots' holder knew
	tasks    atomic.Int64
	bytes    atomic.Int64 // that its kernels write, or reduce
	flops    atomic.Int64 // of what says how many it takes: Rules.Flops
	commands atomic.Int64
	visited  uint64 // the walk that saw it last; guarded by schedMu

	stopped atomic.Bool // nothing more of it is recorded, and what has not run is undone; set with jobs held

	changes  []*Change // that it computes new values of; of claiming
	fallible []*Node   // that it has claimed and that may fail; of claiming

	// Guarded by jobs:
	deps       []*job // evaluations whose results this one waits for
	dependents []*job // and those that wait for this one's
	settled    bool   // all its segments are

	mu        sync.Mutex
	unsettled int             // segments that are not settled: unknownSegments before it is claimed
	err       error           // the first
	noMemory  error           // the error that stopped it, if that was a limit's
	ranOutAt  uint64          // the number of the node that it stopped at; the largest: none
	blockedOn *job            // it was stopped at once, because it needs what this one is undoing
	chains    []streamChain   // by stream
	words     []*metal.Buffer // that gates look at, until the job is over
	checked   map[*Node]error // nodes whose checks have failed, until the job is over; it is not changed
	undone    []*Node         // to be lazy again
	lost      []Value         // those of them that were asked for, for a Work that is waited for
	ended     bool            // nothing of it is left to do
	end       chan struct{}   // closed then; made when first waited for
}

// streamChain is the chain of a job's command buffers on one stream.
type streamChain struct {
	stream *Stream
	chain  *metal.Chain
	fault  *metal.Buffer // a word in which its commands note that they have failed; nil: they do not
}

// jobs makes changes of what jobs wait for one step.
var jobs sync.Mutex

// unknownSegments stands for a number of segments before the job is claimed.
const unknownSegments = -1

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

// same reports whether the task's output is its input: see Rules.Same.
func (t *task) same() bool {
	if !t.node.op.same {
		return false
	}
	in, out := t.in[0].Spec(), t.node.out[0].spec
	return in.DType == out.DType && in.Shape.Equal(out.Shape)
}

// elementwise reports whether the task is computed by an expression of its operands' elements.
func (t *task) elementwise() bool { return t.node.op.expr != nil || t.same() }

// chain is the job's chain on a stream. It is for the stream's goroutine.
func (j *job) chain(s *Stream) *metal.Chain {
	if c := j.chainOn(s); c.chain != nil {
		return c.chain
	}
	c := streamChain{stream: s, chain: &metal.Chain{}, fault: j.faultWord(s)}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.stopped.Load() {
		c.chain.Interrupt(context.Cause(j.ctx))
	}
	j.chains = append(j.chains, c)
	return c.chain
}

// chainOn is the job's chain on a stream, without a chain if there is none yet.
func (j *job) chainOn(s *Stream) streamChain {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, c := range j.chains {
		if c.stream == s {
			return c
		}
	}
	return streamChain{}
}

// faultWord is a word for the commands of a stream where changes may need gates, or nil: what is recorded then is
// behind no gate.
func (j *job) faultWord(s *Stream) *metal.Buffer {
	if changes.n.Load() == 0 {
		return nil
	}
	buf, err := s.dev.Alloc(j.ctx, wordBytes)
	if err != nil {
		return nil
	}
	j.keep(buf)
	if buf.WriteBytes(0, make([]byte, wordBytes)) != nil {
		return nil
	}
	return buf
}

// keep has the job hold a buffer until it is over, on the caller's reference.
func (j *job) keep(b *metal.Buffer) {
	j.mu.Lock()
	j.words = append(j.words, b)
	j.mu.Unlock()
}

// note notes that a check of a node's has failed.
func (j *job) note(n *Node, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.checked[n] == nil {
		checked := map[*Node]error{n: err}
		maps.Copy(checked, j.checked)
		j.checked = checked
	}
}

// noted are the errors of checks that have failed.
func (j *job) noted() map[*Node]error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.checked
}

// failed reports whether something of the job has failed so far.
func (j *job) failed() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.err != nil
}

// withDeps lists the job and those that it waits for. Called with schedMu held.
func (j *job) withDeps() []*job {
	jobs.Lock()
	defer jobs.Unlock()
	claimID++
	j.visited = claimID
	all := []*job{j}
	for i := 0; i < len(all); i++ {
		for _, d := range all[i].deps {
			if !d.settled && d.visited != claimID {
				d.visited = claimID
				all = append(all, d)
			}
		}
	}
	return all
}

// fail notes an error of the job's.
func (j *job) fail(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err == nil {
		j.err = err
	}
}

// waitFor makes the job wait for others, where these are not over: it is a dependent of each. Where one of them is
// being undone the job is stopped at once. Called with schedMu held, when the job's nodes are claimed.
func (j *job) waitFor(deps []*job) {
	jobs.Lock()
	defer jobs.Unlock()
	for _, d := range deps {
		if d.stopped.Load() {
			j.mu.Lock()
			j.blockedOn = d
			j.mu.Unlock()
			j.stop(errBlocked)
			return
		}
	}
	for _, d := range deps {
		if !d.settled {
			j.deps, d.dependents = append(j.deps, d), append(d.dependents, j)
		}
	}
}

// setUnsettled notes how many segments are not settled.
func (j *job) setUnsettled(n int) {
	j.mu.Lock()
	j.unsettled = n
	j.mu.Unlock()
	if n > 0 {
		return
	}
	jobs.Lock() // others have claimed all that was asked for
	j.settled = true
	jobs.Unlock()
	j.cancel(context.Canceled)
	j.over()
}

func (j *job) isOver() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.ended
}

// segmentSettled tells the job that a segment is done with.
func (j *job) segmentSettled() {
	j.mu.Lock()
	j.unsettled--
	last := j.unsettled == 0
	j.mu.Unlock()
	if last {
		j.settle()
	}
}

// settle ends the job when all its segments are settled. If it was stopped its nodes become lazy again, when nobody
// looks at them any more who depends on them.
func (j *job) settle() {
	var undone []*job
	jobs.Lock()
	j.settled = true
	for _, d := range j.deps {
		for i, x := range d.dependents {
			if x == j {
				last := len(d.dependents) - 1
				d.dependents[i], d.dependents[last] = d.dependents[last], nil
				d.dependents = d.dependents[:last]
				break
			}
		}
		if d.stopped.Load() && d.settled && len(d.dependents) == 0 {
			undone = append(undone, d)
		}
	}
	stopped := j.stopped.Load()
	if !stopped {
		j.deps = nil // one that is stopped has them until it gives its nodes back: see needs
	} else if len(j.dependents) == 0 {
		undone = append(undone, j)
	}
	jobs.Unlock()
	j.cancel(context.Canceled)
	if !stopped {
		j.evaluated()
		j.over()
	}
	for _, d := range undone {
		d.evaluated()
		d.giveBack()
		d.over()
	}
}

// countClaimed adds nodes of the job to what its holder has under way.
func (j *job) countClaimed(nodes int64) {
	if h := j.proof.holder; h != nil {
		h.work.claimed.Add(nodes * (nodeBytes + taskBytes))
	}
}

// over says that nothing is left to do.
func (j *job) over() {
	j.countClaimed(-j.tasks.Load())
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, b := range j.words {
		b.Release()
	}
	j.words, j.checked = nil, nil
	if j.ended = true; j.end != nil {
		close(j.end)
	}
}

// waitEnd waits until nothing is left to do, or ctx is done: then it returns the context's cause.
func (j *job) waitEnd(ctx context.Context) error {
	j.mu.Lock()
	if j.end == nil {
		if j.end = make(chan struct{}); j.ended {
			close(j.end)
		}
	}
	end := j.end
	j.mu.Unlock()
	select {
	case <-end:
		return nil
	default:
	}
	select {
	case <-end:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
