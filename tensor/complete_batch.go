package tensor

import (
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
	checks []*check
	gates  []passage
	steps  []stepUnits
	bytes  int64 // written by its commands
	fresh  int64 // those of them for which memory came from the pool

	commands int
	last     bool          // it ends a segment
	ended    chan struct{} // closed when it is settled

	after []*batch               // of other streams: it is settled after them
	ahead []*metal.CommandBuffer // theirs: it runs after them

	arrivals []arrival // what it runs after, too

	// Guarded by the stream's mu:
	handed    bool                   // it is committed
	runs      []*metal.CommandBuffer // see computedBy
	far       []*metal.CommandBuffer // of other devices, what its views may be of
	followers []*Stream              // whose batches are settled after it

	done bool // guarded by the stream's settling
	err  error
}

// settling is a node of a batch, what it reads, and the commands that compute it.
type settling struct {
	task
	first, last int    // [first, last)
	early       *error // a batch with the node's first commands leaves their error there, for the last batch
	kind        settlingKind
	update      *updateMoves
	spoils      bool // the last command writes over what it reads, and may be stopped midway
}

type settlingKind uint8

const (
	recorded   settlingKind = iota // all its commands are, the last of them in this batch
	unfinished                     // more of its commands are in later batches
	refused                        // it has failed while it was recorded
	unrecorded                     // its job was stopped before it was recorded
)

// complete notes that a batch's commands have run, or failed, and settles the oldest batches that have, and of other
// streams those that come after them.
func (s *Stream) complete(b *batch, err error) {
	s.settling.Lock()
	b.done, b.err = true, err
	s.settling.Unlock()
	for next := []*Stream{s}; len(next) > 0; {
		t := next[0]
		next = append(next[1:], t.settleOldest()...)
	}
}

// settleOldest settles the oldest batches that have ended, and lists the streams whose batches come after them.
func (s *Stream) settleOldest() (followers []*Stream) {
	s.settling.Lock()
	defer s.settling.Unlock()
	for {
		s.mu.Lock()
		if len(s.pending) == 0 || !s.pending[0].turn() {
			s.settleIdle()
			s.mu.Unlock()
			return followers
		}
		head := s.pending[0]
		s.mu.Unlock()
		head.settle()
		s.spare.put(head.nodes)
		head.nodes = nil
		s.mu.Lock()
		s.pending = slices.Delete(s.pending, 0, 1) // they are few: the list keeps its memory
		followers = append(followers, head.followers...)
		head.followers, head.runs, head.far, head.ahead = nil, nil, nil, nil
		s.tellNews()
		s.mu.Unlock()
		close(head.ended)
		if head.last {
			head.job.segmentSettled()
		}
	}
}

// settle makes the batch's nodes ready or failed.
func (b *batch) settle() {
	stop, ranError := interruption(b.err)
	for _, c := range b.checks { // before the job is halted, so that nobody takes what has failed for undone
		if ranError == nil && c.ran(stop) {
			if err := c.result(); err != nil {
				b.job.note(c.node, err)
			}
		}
		c.end()
	}
	for i := range b.arrivals {
		b.arrivals[i].noteFailure(b.job)
	}
	if stop != nil && (errors.Is(stop.Cause, metal.ErrSkipped) || !b.job.stopped.Load()) { // or what it comes after was
		b.job.halt(stop.Cause)
	}
	for i := range b.gates {
		if p := &b.gates[i]; p.open(stop) {
			p.change.endInOrder()
		}
	}
	var single []*metal.CommandError
	if ranError != nil {
		single = commandErrors(ranError)
	}
	noted := b.job.noted()
	validated := b.cb != nil && b.cb.Validating()
	for i := range b.nodes {
		sn := &b.nodes[i]
		var err error
		if sn.kind < refused {
			err = sn.outcome(stop)
			if wrong := noted[sn.node]; wrong != nil && (err == nil || err == errMissed) {
				err = sn.node.runError(wrong)
			} else if err == errMissed {
				err = errUndone
			} else if err == nil {
				if ranError != nil {
					err = b.commandError(sn, ranError, single)
				}
				if err == nil && validated && sn.kind == recorded && !sn.same() {
					err = sn.node.uncovered()
				}
				if err != nil {
					err = sn.node.runError(err)
				}
			}
		}
		sn.settle(b.job, err)
		*sn = settling{}
	}
	b.nodes, b.checks, b.gates, b.steps, b.arrivals, b.cb = b.nodes[:0], nil, nil, nil, nil, nil
}

// noteFailure notes that a copy has failed, or that a limit did not hold what it needed meanwhile: then the job is
// stopped.
func (a *arrival) noteFailure(j *job) {
	err := a.transfer.Err()
	switch {
	case err == nil:
	case errors.Is(err, metal.ErrNoMemory):
		n := a.nodes[len(a.nodes)-1]
		j.runOut(n.runError(err), n.id)
	default:
		for _, n := range a.nodes {
			j.note(n, err)
		}
	}
}

// settle does what the node's outcome asks for.
func (sn *settling) settle(j *job, err error) {
	switch {
	case sn.kind == unfinished:
		*sn.early = err
		return
	case sn.kind == unrecorded || err == errUndone:
		sn.undo(j, sn.kind == recorded)
		return
	}
	for _, v := range sn.reads() { // which have been read now
		if v.Node.out[v.Out].readers.n.Add(-recordedReader) == 0 {
			v.dropIfUnread()
		}
	}
	sn.node.settleLast(err) // which forgets what it read
}

// spareLists are lists of a batch's nodes that are used again: at most as many as batches can be pending on the CPU.
type spareLists struct {
	mu    sync.Mutex
	lists [][]settling
}

func (s *spareLists) get() []settling {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.lists)
	if n == 0 {
		return make([]settling, 0, metal.DefaultPace.Commands)
	}
	list := s.lists[n-1]
	s.lists = s.lists[:n-1]
	return list
}

func (s *spareLists) put(list []settling) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.lists) < metal.DefaultPace.Pending && cap(list) <= 16*metal.DefaultPace.Commands {
		s.lists = append(s.lists, list[:0])
	}
}

func (c *check) run() (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("BUG: the check panicked: %v\n%s", r, debug.Stack())
		}
	}()
	b, err := hostBytes(c.buf, c.at, c.n)
	if err != nil {
		return err
	}
	return c.f(b)
}
