package tensor

import (
	"context"
	"runtime"
)

// Eval computes the arrays and what they depend on, and waits for them or for ctx. It returns the first error. When
// ctx is done first that is the context's cause, and what nobody else waits for is stopped: the arrays are lazy again,
// with what was computed for them, and whoever reads them has them computed. An error of the memory limit leaves them
// so, too.
func Eval(ctx context.Context, xs ...*Array) error { return evaluate(ctx, "eval", xs...) }

func evaluate(ctx context.Context, op string, xs ...*Array) error {
	if ctx == nil {
		ctx = context.Background()
	}
	for {
		if ctx.Err() != nil {
			if begun, err := neverBegin(ctx, op, xs); begun || err != nil {
				return err
			}
		}
		j, err := submit(ctx, op, xs)
		if err != nil {
			return err
		}
		again, err := await(ctx, op, j, xs)
		if err != nil {
			return err
		}
		if !again {
			if j != nil {
				j.pay()
			}
			return nil
		}
	}
}

// neverBegin hands over what nobody has asked for, and gives it up at once, since ctx is done: nothing of it runs, and
// the error is the context's cause. Begun is false if there is no such thing.
func neverBegin(ctx context.Context, op string, xs []*Array) (begun bool, err error) {
	defer runtime.KeepAlive(xs)
	roots, fallback, err := lazyRoots(op, xs)
	if len(roots) == 0 {
		return false, err
	}
	w, j, cause := waiter{ctx: ctx, xs: xs}, newJob(fallback), context.Cause(ctx)
	schedMu.Lock() // nobody claims it in between
	defer schedMu.Unlock()
	jobs.Lock()
	j.stop(cause)
	jobs.Unlock()
	if j.handOver(roots) == nil { // others were faster
		return false, nil
	}
	w.giveUpHeld(j)
	return true, cause
}

// await waits for arrays that were handed over, of which own is what the caller has handed over itself. Again says that
// somebody else's evaluation had them and gave them up: they are to be handed over once more.
func await(ctx context.Context, op string, own *job, xs []*Array) (again bool, err error) {
	defer runtime.KeepAlive(xs)
	w := waiter{ctx: ctx, xs: xs}
	waiting := false
	for _, x := range xs {
		if x.node.now() < Ready && !waiting {
			defer BeginSpan("wait", op).End(Place{})
			waiting = true
			w.begin()
			defer w.end()
		}
		err := x.node.wait(ctx)
		if err == errUndone {
			again, err = true, x.node.lastJob().again(ctx, own)
		}
		switch {
		case err == nil:
		case ctx.Err() != nil && x.node.now() != Failed:
			w.giveUp(own)
			return false, context.Cause(ctx)
		default:
			return false, err
		}
	}
	return again, nil
}

// Wait waits for an array that was handed over, and returns its error, or the context's cause when ctx is done
// first; the work goes on. It does not start the computation of a lazy array: that is an error.
func (x *Array) Wait(ctx context.Context) error {
	if err := x.readable("wait"); err != nil {
		return err
	}
	if ctx == nil {
		ctx = context.Background()
	}
	if err := x.notHandedOver(); err != nil {
		return err
	}
	w := waiter{ctx: ctx, xs: []*Array{x}}
	w.begin()
	defer w.end()
	for {
		err := x.node.wait(ctx)
		if err != errUndone {
			return err
		}
		j := x.node.lastJob()
		if err := j.again(ctx, j); err != nil {
			return err
		}
		if _, err := submit(context.Background(), "wait", w.xs); err != nil {
			return err
		}
	}
}

// notHandedOver is the error of waiting for an array that is lazy, or will be since its evaluation was stopped.
func (x *Array) notHandedOver() error {
	n, c := x.node, &Ctx{Place: x.node.Place()}
	n.State() // it may be an input of what was handed over
	if n.now() == submitted {
		return nil
	}
	schedMu.Lock()
	defer schedMu.Unlock()
	j := n.lastJob()
	if n.pending() {
		if j = n.seg.job; !j.stopped.Load() {
			return nil
		}
	}
	switch {
	case n.now() >= Ready:
		return nil
	case j != nil:
		return c.Errorf("wait", "the evaluation of %s was stopped: %w", x.describe(), context.Cause(j.ctx))
	}
	return c.Errorf("wait", "%s was not handed over by eval or async_eval", x.describe())
}

// lastJob is the last job that gave the node up, or nil.
func (n *Node) lastJob() *job {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.rare == nil {
		return nil
	}
	return n.rare.gaveUp
}

// wait waits until the node is ready or has failed, which is the error, or is lazy: then that is errUndone.
func (n *Node) wait(ctx context.Context) error {
	if n.now() < Ready {
		n.mu.Lock()
		var done chan struct{}
		if s := n.now(); s < Ready && s != Lazy {
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
	switch n.now() {
	case Ready:
		return nil
	case Failed:
		return n.rare.err
	}
	return errUndone
}
