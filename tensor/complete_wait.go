package tensor

import (
	"context"
	"runtime"
)

// Eval computes the arrays and what they depend on, and waits for them or for ctx. It returns the first error. When
// ctx is done first, the work that it waits for is cancelled: its kernels stop, its arrays fail with the context's
// cause, and other work goes on.
func Eval(ctx context.Context, xs ...*Array) error { return evaluate(ctx, "eval", xs...) }

func evaluate(ctx context.Context, op string, xs ...*Array) error {
	if ctx == nil {
		ctx = context.Background()
	}
	j, err := submit(op, xs, true)
	if err != nil {
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
	if j != nil {
		j.pay()
	}
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
