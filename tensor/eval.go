package tensor

import (
	"context"
	"runtime"
	"slices"
	"sync"

	"github.com/mlxlua/mlxlua/metal"
)

// schedMu makes claiming nodes and handing them to streams one step: all streams agree on the order of evaluations.
var schedMu sync.Mutex

// walk numbers the walks over the graph; guarded by schedMu.
var walk uint64

// job is one evaluation: what a call of Eval claimed.
type job struct {
	ctx    context.Context // done when the evaluation is cancelled
	cancel context.CancelCauseFunc

	mu      sync.Mutex
	deps    []*job                 // evaluations whose results this one waits for
	left    int                    // segments that are not settled
	err     error                  // the first
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
	job   *job
	tasks []task
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
	if _, err := schedule(op, xs); err != nil {
		return err
	}
	defer BeginSpan("wait", op).End(Where{})
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

// AsyncEval hands the arrays over to their streams and returns: planning, encoding and computing happen there. What
// goes wrong then is the error of the arrays. It fails at once on arrays that cannot be evaluated.
func AsyncEval(xs ...*Array) error {
	_, err := Submit(xs...)
	return err
}

// Submit is AsyncEval for callers who may never read the arrays: the Work tells them how it ends.
func Submit(xs ...*Array) (*Work, error) {
	j, err := schedule("async_eval", xs)
	return &Work{j}, err
}

// Work is what a call of Submit handed over that had not been handed over before.
type Work struct{ job *job }

// Wait waits for all of the work, or ctx, and returns the work's first error, or the context's cause.
func (w *Work) Wait(ctx context.Context) error {
	if w.job == nil {
		return nil
	}
	select {
	case <-w.job.ctx.Done():
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	_, err := w.Done()
	return err
}

// Done says whether all of the work has been done, and its first error so far.
func (w *Work) Done() (bool, error) {
	if w.job == nil {
		return true, nil
	}
	w.job.mu.Lock()
	defer w.job.mu.Unlock()
	return w.job.left == 0, w.job.err
}

// Wait waits for an array that was handed over, and returns its error, or the context's cause when ctx is done
// first; the work goes on. It does not start the computation of a lazy array: that is an error.
func (x *Array) Wait(ctx context.Context) error {
	if err := x.readable("wait"); err != nil {
		return err
	}
	if x.node.State() == Lazy {
		return (&Ctx{Where: x.node.where}).Errorf("wait", "%s was not handed over by eval or async_eval",
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
	if n.State() < Ready {
		n.mu.Lock()
		if n.State() < Ready && n.done == nil {
			n.done = make(chan struct{})
		}
		done := n.done
		n.mu.Unlock()
		if done != nil {
			select {
			case <-done:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}
	if n.State() == Failed {
		return n.err
	}
	return nil
}

// settle makes the node ready, or failed with err.
func (n *Node) settle(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.State() >= Ready {
		return
	}
	state := Ready
	if err != nil {
		n.err, state = err, Failed
		if n.seg != nil {
			n.seg.job.fail(err)
		}
	}
	n.state.Store(int32(state))
	if n.done != nil {
		close(n.done)
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

// schedule claims all lazy nodes that xs depend on and hands them to their streams. The job is nil if there are none.
func schedule(op string, xs []*Array) (*job, error) {
	for _, x := range xs {
		if err := x.readable(op); err != nil {
			return nil, err
		}
	}
	schedMu.Lock()
	defer schedMu.Unlock()
	order, err := claimable(xs)
	if err != nil {
		return nil, &OpError{Op: op, Msg: err.Error(), Err: err}
	}
	for _, x := range xs {
		if x.node.mark == walk { // it is claimed now; its stream does not know it yet
			x.node.out[x.out].asked = true
		}
	}
	if len(order) == 0 {
		return nil, nil
	}
	return claim(order), nil
}

type frame struct {
	n    *Node
	next int
}

var frames []frame // of claimable, guarded by schedMu

// claimable lists the lazy nodes that xs depend on so that each comes after its inputs, and gives each a stream.
func claimable(xs []*Array) ([]*Node, error) {
	walk++
	var order []*Node
	var fallback *Stream
	stack := frames[:0]
	push := func(n *Node) error {
		if n.mark == walk || n.State() != Lazy {
			return nil
		}
		n.mark = walk
		if n.runs = n.stream; n.runs == nil {
			if fallback == nil {
				s, err := DefaultStream(DefaultDevice())
				if err != nil {
					return err
				}
				fallback = s
			}
			n.runs = fallback
		}
		stack = append(stack, frame{n: n})
		return nil
	}
	defer func() { clear(stack[:cap(stack)]); frames = stack[:0] }()
	for _, x := range xs {
		if err := push(x.node); err != nil {
			return nil, err
		}
		for len(stack) > 0 {
			f := &stack[len(stack)-1]
			if f.next == f.n.specFrom(len(f.n.in)) {
				order = append(order, f.n)
				stack = stack[:len(stack)-1]
				continue
			}
			f.next++
			if err := push(f.n.in[f.next-1].Node); err != nil {
				return nil, err
			}
		}
	}
	return order, nil
}

// claim turns lazy nodes into scheduled ones and hands them to their streams.
func claim(order []*Node) *job {
	j := &job{}
	j.ctx, j.cancel = context.WithCancelCause(context.Background())
	tasks := make([]task, len(order))
	inputs := 0
	for _, n := range order {
		inputs += len(n.in)
	}
	in := make([]Value, 0, inputs)
	var last *job
	for i, n := range order {
		t := &tasks[i]
		at := len(in)
		in = append(in, n.in...)
		t.node, t.in, t.from = n, in[at:len(in):len(in)], n.specFrom(len(n.in))
		for _, v := range t.reads() {
			if v.Node.State() == Scheduled && v.Node.mark != walk && v.Node.seg.job != last {
				last = v.Node.seg.job
				j.deps = append(j.deps, last)
			}
		}
		n.state.Store(int32(Scheduled))
		n.handOver(t)
	}
	for first := 0; first < len(order); {
		end := first + 1
		for end < len(order) && order[end].runs == order[first].runs {
			end++
		}
		seg := &segment{job: j, tasks: tasks[first:end:end]}
		for i, n := range order[first:end] {
			n.seg, n.slot = seg, i
		}
		j.left++
		first = end
	}
	for first := 0; first < len(order); {
		seg, n := order[first].seg, len(order[first].seg.tasks)
		order[first].runs.enqueue(seg) // from here on it is the stream's
		first += n
	}
	return j
}

// handOver gives the node's inputs to its task, unless a trace may still walk it: then the task has uses of its own.
func (n *Node) handOver(t *task) {
	if len(n.traces) > 0 {
		addUses(n, t.in, 1) // first: a trace that ends meanwhile takes the node's own away
		held := false
		for _, tr := range n.traces {
			held = tr.keep(n) || held
		}
		if held {
			return
		}
		addUses(n, t.in, -1)
	}
	n.mu.Lock()
	n.letGo()
	n.mu.Unlock()
}

// letGo forgets the node's inputs. Called with mu held.
func (n *Node) letGo() {
	n.in = nil
	clear(n.few[:])
}

// settled tells the job that a segment is done with.
func (j *job) settled() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.left--; j.left == 0 {
		j.deps = nil
		j.cancel(context.Canceled)
	}
}

// cancel stops the evaluations that xs wait for.
func cancel(xs []*Array, cause error) {
	seen := map[*job]bool{}
	var todo []*job
	schedMu.Lock()
	for _, x := range xs {
		if x.node.State() == Scheduled {
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
