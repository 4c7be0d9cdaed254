package tensor

import (
	"context"
	"errors"
	"fmt"
)

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
	settleMemory(n, state == Ready)
	for i := range n.out {
		if o := &n.out[i]; (o.dead || o.spent || err != nil || n.unneeded(i)) && o.readers.none() {
			n.drop(i)
		}
	}
}

// settleMemory says whether the outputs' buffers hold nothing but what their owners may see: all that the call was to
// write is written, and it has read nothing else. Called with n.mu held.
func settleMemory(n *Node, ready bool) {
	for i := range n.out {
		switch buf := n.out[i].data.buf; {
		case buf == nil:
		case ready:
			buf.Settle()
		default:
			buf.Taint()
		}
	}
}

// failure is the node's error if it failed.
func (n *Node) failure() error {
	if n.now() == Failed {
		return n.rare.err
	}
	return nil
}

// runError is an error of computing the node, which names the op and the line, or of what it depends on.
func (n *Node) runError(err error) error {
	var before *nodeError
	if errors.As(err, &before) {
		return err
	}
	return &nodeError{n.op.named(err, n.Place()), n.id}
}

// named is an error of computing a call that was made at the place: it names both.
func (p *Op) named(err error, at Place) error {
	var oe *OpError
	if errors.As(err, &oe) {
		return err
	}
	c := &Ctx{Place: at}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return c.Errorf(p.name, "cancelled: %w", err)
	}
	return c.Errorf(p.name, "%w", err)
}

// nodeError is the error of computing a node, and of those that depend on it.
type nodeError struct {
	error
	id uint64
}

// Unwrap is the error.
func (e *nodeError) Unwrap() error { return e.error }

// failedFirst is the number of the node whose error a failed one has.
func failedFirst(n *Node) uint64 {
	var e *nodeError
	if errors.As(n.failure(), &e) {
		return e.id
	}
	return n.id
}

// uncovered is the error of a built-in kernel that left parts of an output as they were: threads that never ran. Users'
// kernels may do that; who reads those parts learns of it. Of outputs that are spent nothing is known: later commands
// may be writing to their storage by now.
func (n *Node) uncovered() error {
	if n.op.partial || n.op.view != nil {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for i := range n.out {
		if o := &n.out[i]; !o.gone && !o.spent {
			if err := o.unwritten(); err != nil {
				return fmt.Errorf("[validate] BUG: %w", err)
			}
		}
	}
	return nil
}
