package tensor

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/mlxlua/mlxlua/metal"
)

// batch is a command buffer with the nodes whose outputs it writes. A stream settles its batches in order.
type batch struct {
	cb     *metal.CommandBuffer // nil if there is nothing to run
	job    *job
	nodes  []settling
	checks []check
	bytes  int64 // written by its commands

	commands int
	last     bool          // it ends a segment
	ended    chan struct{} // closed when it is settled

	done bool // guarded by the stream's settling
	err  error
}

// settling is a node of a batch, what it read, and the commands that compute it.
type settling struct {
	node        *Node
	in          []Value
	first, last int    // [first, last)
	early       *error // a batch with the node's first commands leaves their error there, for the last batch
	more        bool   // this is not the batch with the last ones
}

// uncovered is the error of a built-in kernel that left parts of an output as they were: threads that never ran. Users'
// kernels may do that; who reads those parts learns of it.
func (n *Node) uncovered() error {
	if n.op.partial || n.op.view != nil {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for i := range n.out {
		if o := &n.out[i]; !o.gone {
			if err := o.unwritten(); err != nil {
				return fmt.Errorf("[validate] BUG: %w", err)
			}
		}
	}
	return nil
}

type check struct {
	node *Node
	buf  *metal.Buffer
	at   int64
	n    int64
	f    func([]byte) error
}

// complete notes that a batch's commands have run, or failed, and settles the oldest batches that have.
func (s *Stream) complete(b *batch, err error) {
	s.settling.Lock()
	defer s.settling.Unlock()
	b.done, b.err = true, err
	for {
		s.mu.Lock()
		if len(s.pending) == 0 || !s.pending[0].done {
			s.settleIdle()
			s.mu.Unlock()
			return
		}
		head := s.pending[0]
		s.mu.Unlock()
		head.settle()
		s.spare.put(head.nodes)
		head.nodes = nil
		s.mu.Lock()
		s.pending = slices.Delete(s.pending, 0, 1) // they are few: the list keeps its memory
		s.mu.Unlock()
		close(head.ended)
		if head.last {
			head.job.settled()
		}
	}
}

// settle makes the batch's nodes ready or failed.
func (b *batch) settle() {
	var failed map[*Node]error
	for _, c := range b.checks {
		if b.err == nil {
			if err := c.run(); err != nil {
				if failed == nil {
					failed = map[*Node]error{}
				}
				if failed[c.node] == nil {
					failed[c.node] = err
				}
			}
		}
		c.buf.Release()
	}
	var single []*metal.CommandError
	if b.err != nil {
		single = commandErrors(b.err)
	}
	validated := b.cb != nil && b.cb.Validating()
	for i := range b.nodes {
		sn := &b.nodes[i]
		err := sn.inputError()
		if err == nil {
			if err = failed[sn.node]; err == nil && b.err != nil {
				err = sn.commandError(b.err, single)
			}
			if err == nil && sn.early != nil {
				err = *sn.early
			}
			if err == nil && validated && !sn.more {
				err = sn.node.uncovered()
			}
			if err != nil {
				err = sn.node.runError(err)
			}
		}
		if sn.more {
			*sn.early = err
		} else {
			sn.node.settleLast(err)
		}
		*sn = settling{}
	}
	b.nodes, b.checks, b.cb = b.nodes[:0], nil, nil
}

// spareLists are lists of a batch's nodes that are used again: at most as many as batches can be pending.
type spareLists struct {
	mu    sync.Mutex
	lists [][]settling
}

func (s *spareLists) get() []settling {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.lists)
	if n == 0 {
		return make([]settling, 0, batchCommands)
	}
	list := s.lists[n-1]
	s.lists = s.lists[:n-1]
	return list
}

func (s *spareLists) put(list []settling) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.lists) < maxPending && cap(list) <= 16*batchCommands {
		s.lists = append(s.lists, list[:0])
	}
}

func (c *check) run() (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("BUG: the check panicked: %v\n%s", r, debug.Stack())
		}
	}()
	return c.f(c.buf.Bytes()[c.at:][:c.n:c.n])
}

// inputError is the error of the first failed input.
func (sn *settling) inputError() error {
	for _, v := range sn.in {
		if err := v.Node.failure(); err != nil {
			return err
		}
	}
	return nil
}

// commandError is the node's share of its command buffer's error: all of it, unless the driver says which commands
// failed.
func (sn *settling) commandError(all error, single []*metal.CommandError) error {
	if len(single) == 0 {
		return all
	}
	for _, c := range single {
		if c.Index >= sn.first && c.Index < sn.last {
			return c.Err
		}
	}
	return nil
}

// commandErrors lists the errors of single commands, if err consists of such.
func commandErrors(err error) []*metal.CommandError {
	var one *metal.CommandError
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var out []*metal.CommandError
		for _, e := range joined.Unwrap() {
			if !errors.As(e, &one) {
				return nil
			}
			out = append(out, one)
		}
		return out
	}
	if errors.As(err, &one) {
		return []*metal.CommandError{one}
	}
	return nil
}

// runError is an error of computing the node: it names the op and the line.
func (n *Node) runError(err error) error {
	var oe *OpError
	if errors.As(err, &oe) {
		return err
	}
	c := &Ctx{Place: n.Place()}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return c.Errorf(n.op.name, "cancelled: %w", err)
	}
	return c.Errorf(n.op.name, "%w", err)
}
