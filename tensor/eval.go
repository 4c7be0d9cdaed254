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
		return (&Ctx{Where: x.node.Where()}).Errorf("wait", "%s was not handed over by eval or async_eval",
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
		var done chan struct{}
		if n.State() < Ready {
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
	if n.State() == Failed {
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
	if n.State() >= Ready {
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

// schedule claims all lazy nodes that xs depend on and hands them to their streams. The job is nil if there are none.
func schedule(op string, xs []*Array) (*job, error) {
	for _, x := range xs {
		if err := x.readable(op); err != nil {
			return nil, err
		}
	}
	schedMu.Lock()
	defer schedMu.Unlock()
	fallback, err := (*Ctx)(nil).stream()
	if err == nil && fallback == nil {
		err = ErrNoDevice
	}
	if err != nil && needsDefault(xs) {
		return nil, &OpError{Op: op, Msg: err.Error(), Err: err}
	}
	return claim(xs, fallback), nil
}

// needsDefault says whether a lazy node that xs depend on was made while no device was open. Called with schedMu held.
func needsDefault(xs []*Array) bool {
	order := Order(xs, func(n *Node) bool { return n.State() != Lazy })
	return slices.ContainsFunc(order, func(n *Node) bool { return n.stream == nil })
}

// frame is a node on the way from a root: its inputs from next on are still to be looked at.
type frame struct {
	n           *Node
	next, reads int
}

// walking is the scratch of claim, guarded by schedMu.
var walking struct {
	frames []frame
	segs   []*segment
}

// claim turns the lazy nodes that xs depend on into scheduled ones, each after those that it reads, and hands them to
// their streams, or to fallback where they have none. The job is nil if there are none. The caller waits meanwhile: it
// goes over the graph once.
func claim(xs []*Array, fallback *Stream) *job {
	walk++
	w := &walking
	frames, segs := w.frames[:0], w.segs[:0]
	var j *job
	var seg *segment
	var last *job // that was found to be waited for
	tasks := spareTasks.get()
	for _, x := range xs {
		next := x.node // that the walk comes to
		for {
			if next != nil && next.mark != walk && next.State() == Lazy {
				next.mark = walk
				frames = append(frames, frame{n: next, reads: next.specFrom(len(next.in))})
			}
			if len(frames) == 0 {
				break
			}
			f := &frames[len(frames)-1]
			if f.next < f.reads {
				next = f.n.in[f.next].Node
				f.next++
				continue
			}
			n, reads := f.n, f.reads
			next, frames = nil, frames[:len(frames)-1]
			if j == nil {
				j = &job{}
				j.ctx, j.cancel = context.WithCancelCause(context.Background())
			}
			if n.runs = n.stream; n.runs == nil {
				n.runs = fallback
			}
			if seg == nil || seg.stream != n.runs {
				seg = &segment{job: j, stream: n.runs, first: len(tasks)}
				segs = append(segs, seg)
			}
			for _, v := range n.in[:reads] {
				if in := v.Node; in.mark != walk && in.State() == Scheduled && in.seg.job != last {
					last = in.seg.job
					j.deps = append(j.deps, last)
				}
			}
			n.seg, n.slot = seg, int32(len(tasks)-seg.first)
			tasks = append(tasks, task{n, n.in, reads})
			n.state.Store(int32(Scheduled))
			n.handOver(&tasks[len(tasks)-1])
		}
	}
	if j == nil {
		spareTasks.put(tasks)
		return nil
	}
	for _, x := range xs {
		if x.node.mark == walk { // it is claimed now; its stream does not know it yet
			x.node.out[x.out].asked = true
		}
	}
	j.left = len(segs)
	for i, s := range segs {
		end := len(tasks)
		if i+1 < len(segs) {
			end = segs[i+1].first
		}
		s.tasks, s.whole = tasks[s.first:end:end], len(segs) == 1
	}
	for _, s := range segs {
		s.stream.enqueue(s) // from here on it is the stream's
	}
	clear(frames[:cap(frames)])
	clear(segs)
	w.frames, w.segs = frames[:0], segs[:0]
	return j
}

// spareTasks are lists of tasks for later evaluations.
var spareTasks taskLists

type taskLists struct {
	mu    sync.Mutex
	lists [][]task
}

// The most that taskLists keep.
const (
	maxSpareTasks = 1 << 14
	maxTaskLists  = 4
)

func (l *taskLists) get() []task {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.lists)
	if n == 0 {
		return nil
	}
	tasks := l.lists[n-1]
	l.lists = l.lists[:n-1]
	return tasks
}

// put takes a list back; nothing refers to its elements any more.
func (l *taskLists) put(tasks []task) {
	if cap(tasks) == 0 || cap(tasks) > maxSpareTasks {
		return
	}
	clear(tasks)
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.lists) < maxTaskLists {
		l.lists = append(l.lists, tasks[:0])
	}
}

// handOver gives the node's inputs to its task, unless a trace may still walk it: then the task has uses of its own.
func (n *Node) handOver(t *task) {
	if n.traces != nil {
		addUses(n, t.in, 1) // first: a trace that ends meanwhile takes the node's own away
		held := false
		for _, tr := range n.traces.list() {
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

// letGo forgets the node's inputs; its task may still read them. Called with mu held.
func (n *Node) letGo() {
	n.in = nil
	if n.taskDone {
		clear(n.few[:])
	}
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
