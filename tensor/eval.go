package tensor

import (
	"context"
	"runtime"
	"slices"
	"sync"

	"github.com/mlxlua/mlxlua/metal"
)

// job is one evaluation: what a call of Eval asked for that nobody had asked for before.
type job struct {
	ctx    context.Context // done when the evaluation is over, or cancelled
	cancel context.CancelCauseFunc

	roots    []Value // what was asked for; nil once the job is claimed
	fallback *Stream // of nodes that have none

	mu      sync.Mutex
	deps    []*job                 // evaluations whose results this one waits for
	left    int                    // segments that are not settled: unclaimed before anyone knows how many there are
	err     error                  // the first
	over    chan struct{}          // closed when left is 0; made when first waited for
	running []*metal.CommandBuffer // committed, or about to be, and not ended
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

// Eval computes the arrays and what they depend on, and waits for them or for ctx. It returns the first error. When
// ctx is done first, the work that it waits for is cancelled: its kernels stop, its arrays fail with the context's
// cause, and other work goes on.
func Eval(ctx context.Context, xs ...*Array) error { return evaluate(ctx, "eval", xs...) }

func evaluate(ctx context.Context, op string, xs ...*Array) error {
	if ctx == nil {
		ctx = context.Background()
	}
	if _, err := submit(op, xs, true); err != nil {
		return err
	}
	defer BeginSpan("wait", op).End(Place{})
	for _, x := range xs {
		if err := x.wait(ctx); err != nil {
			if ctx.Err() != nil {
				cancel(xs, context.Cause(ctx))
			}
			return err
		}
	}
	runtime.KeepAlive(xs)
	return nil
}

// Wait waits for an array that was handed over, and returns its error, or the context's cause when ctx is done
// first; the work goes on. It does not start the computation of a lazy array: that is an error.
func (x *Array) Wait(ctx context.Context) error {
	if err := x.readable("wait"); err != nil {
		return err
	}
	if x.node.State() == Lazy {
		return (&Ctx{Place: x.node.Place()}).Errorf("wait", "%s was not handed over by eval or async_eval",
			x.describe())
	}
	return x.wait(ctx)
}

// wait waits until x's node is ready or failed.
func (x *Array) wait(ctx context.Context) error {
	return x.node.wait(ctx)
}

func (n *Node) wait(ctx context.Context) error {
	if ctx == nil {
		ctx = context.Background()
	}
	if n.now() < Ready {
		n.mu.Lock()
		var done chan struct{}
		if n.now() < Ready {
			if r := n.extra(); r.done == nil {
				r.done = make(chan struct{})
			}
			done = n.rare.done
		}
		n.mu.Unlock()
		if done != nil {
			select {
			case <-done:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}
	if n.now() == Failed {
		return n.rare.err
	}
	return nil
}

// settle makes the node ready, or failed with err.
func (n *Node) settle(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.settleHeld(err)
}

// settleLast is settle for a node whose task reads its inputs no more.
func (n *Node) settleLast(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.settleHeld(err)
	if n.taskDone = true; n.in == nil {
		clear(n.few[:])
	}
}

// settleHeld is settle with mu held.
func (n *Node) settleHeld(err error) {
	if n.now() >= Ready {
		return
	}
	state := Ready
	if err != nil {
		n.extra().err, state = err, Failed
		if n.seg != nil {
			n.seg.job.fail(err)
		}
	}
	n.state.Store(int32(state))
	if n.rare != nil && n.rare.done != nil {
		close(n.rare.done)
	}
	for i := range n.out {
		if o := &n.out[i]; (o.dead || err != nil) && o.uses.Load() == 0 {
			n.drop(i)
		}
	}
}

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
	j.setLeft(j.left - 1)
}

// setLeft notes how many segments are not settled. Called with mu held.
func (j *job) setLeft(n int) {
	if j.left = n; n == 0 {
		j.deps = nil
		j.cancel(context.Canceled)
		if j.over != nil {
			close(j.over)
		}
	}
}

// cancel stops the evaluations that xs wait for.
func cancel(xs []*Array, cause error) {
	seen := map[*job]bool{}
	var todo []*job
	claimAll(nil)
	schedMu.Lock()
	for _, x := range xs {
		if x.node.now() == Scheduled {
			todo = append(todo, x.node.seg.job)
		}
	}
	schedMu.Unlock()
	for len(todo) > 0 {
		j := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[j] {
			continue
		}
		seen[j] = true
		j.mu.Lock()
		todo = append(todo, j.deps...)
		j.mu.Unlock()
		j.stop(cause)
	}
}
