package tensor

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
)

// handed are the evaluations that were handed over and that nobody has claimed: their callers went on at once, however
// large the graphs are. The stream's goroutine claims them, or whoever needs to know before what depends on them.
var handed struct {
	unclaimed atomic.Int32 // jobs that are not claimed, also those that are just being claimed

	sync.Mutex
	jobs    []*job // oldest first
	helping bool   // a goroutine claims them while a stream's is at work
}

// spareJobs is a list for handed to use; guarded by schedMu.
var spareJobs []*job

// AsyncEval hands the arrays over to their streams and returns: going over the graph, planning, recording and computing
// happen there. What goes wrong then is the error of the arrays. It fails at once on arrays that cannot be evaluated.
func AsyncEval(xs ...*Array) error {
	_, err := Submit(xs...)
	return err
}

// Submit is AsyncEval for callers who may never read the arrays: the Work tells them how it ends.
func Submit(xs ...*Array) (*Work, error) {
	j, err := submit(nobody, "async_eval", xs)
	return &Work{j}, err
}

// nobody stands for the context of a waiter where there is none.
var nobody context.Context

// submit hands over what xs depend on. The job is nil if all of that was asked for before. A waiter, unless it is
// nobody, is the context of a caller who has nothing else to do: where the stream's goroutine is at work, the job is
// claimed on return. When it is done the job is stopped.
func submit(waiter context.Context, op string, xs []*Array) (*job, error) {
	roots, fallback, err := lazyRoots(op, xs)
	if len(roots) == 0 {
		return nil, err
	}
	return submitValues(waiter, roots, fallback), nil
}

// lazyRoots are those of xs that nobody has asked for, and the stream of nodes that have none. It fails if one of xs
// cannot be evaluated.
func lazyRoots(op string, xs []*Array) (roots []Value, fallback *Stream, err error) {
	lazy := 0
	for _, x := range xs {
		if err := x.readable(op); err != nil {
			return nil, nil, err
		}
		if x.node.now() == Lazy {
			lazy++
		}
	}
	if lazy == 0 {
		return nil, nil, nil
	}
	fallback, err = (*Ctx)(nil).stream()
	if err == nil && fallback == nil {
		err = ErrNoDevice
	}
	if err != nil && needsDefault(xs) {
		return nil, nil, &OpError{Op: op, Msg: err.Error(), Err: err}
	}
	roots = make([]Value, 0, lazy)
	for _, x := range xs {
		if x.node.now() == Lazy {
			roots = append(roots, x.Value())
		}
	}
	return roots, fallback, nil
}

// submitValues is submit for values that may be lazy: fallback is the stream of nodes that have none.
func submitValues(waiter context.Context, roots []Value, fallback *Stream) *job {
	j := newJob(fallback)
	j.waiter = waiter
	s := j.handOver(roots)
	switch {
	case s == nil: // others were faster
		return nil
	case s.start():
	case waiter != nobody:
		claimAll(nil)
	default:
		startHelper()
	}
	return j
}

func newJob(fallback *Stream) *job {
	j := &job{fallback: fallback, unsettled: unknownSegments}
	j.ctx, j.cancel = context.WithCancelCause(context.Background())
	return j
}

// handOver puts the job in the line, with those of the values as roots that nobody asked for before; it takes the list
// over. It gives the first one's stream, or nil if there are none.
func (j *job) handOver(values []Value) *Stream {
	handed.Lock()
	defer handed.Unlock()
	handed.unclaimed.Add(1) // first: who sees that a root was submitted sees that there is something to claim
	j.roots = values[:0]
	for _, v := range values {
		if v.Node.state.CompareAndSwap(int32(Lazy), int32(submitted)) {
			j.roots = append(j.roots, v)
		}
	}
	if len(j.roots) == 0 {
		handed.unclaimed.Add(-1)
		return nil
	}
	j.prove()
	handed.jobs = append(handed.jobs, j)
	if s := j.roots[0].Node.stream; s != nil {
		return s
	}
	return j.fallback
}

// needsDefault reports whether a lazy node that xs depend on was made while no device was open.
func needsDefault(xs []*Array) bool {
	order := Order(xs, func(n *Node) bool { return n.now() != Lazy })
	return slices.ContainsFunc(order, func(n *Node) bool { return n.stream == nil })
}

// startHelper has a goroutine of its own claim what is handed over, and ends it when there is nothing more: the job may
// be of other streams than the one whose goroutine is at work.
func startHelper() {
	handed.Lock()
	defer handed.Unlock()
	if handed.helping {
		return
	}
	handed.helping = true
	go func() {
		for waiting := true; waiting; {
			claimAll(nil)
			handed.Lock()
			waiting = len(handed.jobs) > 0
			handed.helping = waiting
			handed.Unlock()
		}
	}()
}
