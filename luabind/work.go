package luabind

import (
	"context"
	"errors"

	"github.com/mlxlua/mlxlua/tensor"
)

// handedOver is the work that a script gave to async_eval. It keeps the errors of values that nobody reads.
type handedOver struct {
	running []*tensor.Work
	enough  int     // works that may be noted before add asks which are done
	raised  []error // while work was running: what the script knows of already
	failed  error   // the first error that the script does not know of
}

// add notes work. It forgets finished work now and then, since a program may hand over work for ever. Handing over is
// quicker than computing, and graphs that wait take memory: where very much is unfinished, add waits for half of it, or
// until ctx is done.
func (h *handedOver) add(ctx context.Context, w *tensor.Work) error {
	if len(h.running) >= h.enough {
		h.sort()
		if n := len(h.running); n >= mostWork {
			if err := h.wait(ctx, n/2); err != nil {
				h.running = append(h.running, w)
				return err
			}
			h.sort()
		}
		h.enough = min(2*len(h.running)+leastWork, mostWork)
	}
	h.running = append(h.running, w)
	return nil
}

const (
	leastWork = 8   // how many works are noted before the first of them is asked whether it is done
	mostWork  = 128 // how many may be unfinished: enough to keep the streams busy with the smallest of graphs
)

// wait waits for the first n works, or until ctx is done, which is an error.
func (h *handedOver) wait(ctx context.Context, n int) error {
	for _, w := range h.running[:n] {
		if err := w.Wait(ctx); err != nil && ctx.Err() != nil {
			return err
		}
	}
	return nil
}

// sort takes out the work that is finished.
func (h *handedOver) sort() {
	left := h.running[:0]
	for _, w := range h.running {
		done, err := w.Done()
		if !done {
			left = append(left, w)
		} else if h.failed == nil && err != nil && !h.known(err) {
			h.failed = err
		}
	}
	clear(h.running[len(left):])
	if h.running = left; len(left) == 0 {
		h.raised = nil
	}
}

func (h *handedOver) known(err error) bool {
	for _, r := range h.raised {
		if errors.Is(r, err) {
			return true
		}
	}
	return false
}

// tell notes that the script learns of an error.
func (h *handedOver) tell(err error) {
	h.sort()
	if h.failed != nil && errors.Is(err, h.failed) {
		h.failed = nil
	}
	if len(h.running) > 0 {
		h.raised = append(h.raised, err)
	}
}

// failure returns the first error of finished work that the script has not learnt of, and counts it as told.
func (h *handedOver) failure() error {
	h.sort()
	err := h.failed
	h.failed = nil
	return err
}

// stop ends what is unfinished, but for what others wait for, because of an error that the script's host learns of.
func (h *handedOver) stop(failed error) {
	for _, w := range h.running {
		w.Stop(failed)
	}
	clear(h.running)
	h.running, h.raised, h.failed = h.running[:0], nil, nil
}

// Finish waits for what scripts handed over to mx.async_eval, or ctx, and returns its first error that no script was
// told of. A host that never reads what a script left behind calls it to learn how that ended.
func (s *State) Finish(ctx context.Context) error {
	if err := s.life.hold(ctx); err != nil {
		return err
	}
	defer s.life.leave()
	if err := s.work.wait(ctx, len(s.work.running)); err != nil {
		return err
	}
	s.changes.rollBack(s)
	return s.work.failure()
}
