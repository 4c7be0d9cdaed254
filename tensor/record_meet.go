package tensor

import (
	"context"
	"slices"

	"github.com/mlxlua/mlxlua/metal"
)

// Streams of one device meet on the device: what reads a value that another stream computes is recorded as soon as that
// is, in a batch whose command buffer comes after the other's (metal.CommandBuffer.After). It is settled after the
// other's batch, so it finds its inputs ready, failed or undone, as those of its own stream. Nothing waits in a circle:
// a batch comes after such only as were handed over before, and recorders wait for what was claimed before theirs.
//
// Streams of two devices meet in the same way, but that the command buffer comes after a copy, and the copy after the
// other's command buffer: see memory_replica.go.

// meet has what is recorded next come after what computes n, which another stream has or will have recorded and which
// the task reads. It waits for the result itself where the host reads that, for a call on the host.
func (rec *recorder) meet(t *task, n *Node) error {
	if t.node.op.host != nil || rec.plan.single {
		if rec.batcher.batch != nil {
			rec.batcher.commit(false)
		}
		rec.s.waits.Add(1)
		return n.wait(rec.job.ctx)
	}
	for {
		b, news := n.runs.handedOver(n)
		switch {
		case b != nil:
			rec.batcher.follow(n.runs, b)
			return nil
		case news == nil:
			return n.wait(rec.job.ctx) // it is settled
		}
		if rec.batcher.batch != nil {
			rec.batcher.commit(false)
		}
		select {
		case <-news:
		case <-rec.job.ctx.Done():
			return context.Cause(rec.job.ctx)
		}
	}
}

// handedOver is the batch with the last commands of a node that the stream runs. It is nil where they are not handed
// over, and then news is closed when the stream has handed over or settled more; nil: the node is settled.
func (s *Stream) handedOver(n *Node) (b *batch, news <-chan struct{}) {
	s.settling.Lock()
	defer s.settling.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if n.now() != Scheduled {
		return nil, nil
	}
	for _, b := range slices.Backward(s.pending) {
		if b.handed && slices.ContainsFunc(b.nodes, func(sn settling) bool { return sn.node == n && sn.kind == recorded }) {
			return b, nil
		}
	}
	if s.news == nil {
		s.news = make(chan struct{})
	}
	return nil, s.news
}

// tellNews tells other streams' recorders that there is something new. Called with mu held.
func (s *Stream) tellNews() {
	if s.news != nil {
		close(s.news)
		s.news = nil
	}
}

// follow has what is recorded next come after a batch of another stream's.
func (q *batcher) follow(s *Stream, other *batch) {
	if q.batch != nil && slices.Contains(q.batch.after, other) {
		return
	}
	q.room()
	s.mu.Lock()
	pending, runs, far := slices.Contains(s.pending, other), other.runs, other.far
	if pending && !slices.Contains(other.followers, q.s) {
		other.followers = append(other.followers, q.s)
	}
	s.mu.Unlock()
	if !pending {
		return // it is settled
	}
	b := q.open()
	b.after = append(b.after, other)
	b.comeAfter(q.near(runs))
	b.comeAfter(q.near(far))
}

// near are those of other streams' command buffers that are of this device. Of others the batcher knows from then on
// that views which are recorded may be of what they compute.
func (q *batcher) near(cbs []*metal.CommandBuffer) (near []*metal.CommandBuffer) {
	for _, cb := range cbs {
		switch {
		case cb.Device() == q.dev:
			near = append(near, cb)
		case !slices.Contains(q.far, cb):
			q.far = append(q.far, cb)
		}
	}
	return near
}

// computing are the command buffers of another device that have run when what a node holds there is there: nothing if
// it is ready.
func (q *batcher) computing(n *Node, dev *metal.Device) []*metal.CommandBuffer {
	if n.now() != Scheduled {
		return nil
	}
	from := q.far
	if n.runs != q.s {
		if b, _ := n.runs.handedOver(n); b != nil {
			n.runs.mu.Lock()
			from = slices.Concat(b.runs, b.far)
			n.runs.mu.Unlock()
		}
	}
	return slices.DeleteFunc(slices.Clone(from), func(cb *metal.CommandBuffer) bool { return cb.Device() != dev })
}

// arrival is a copy from another device, which nodes need that a batch computes.
type arrival struct {
	transfer *metal.Transfer
	nodes    []*Node
}

// arrive has what is recorded next come after a copy from another device, which the unit that is being recorded reads.
func (q *batcher) arrive(t *metal.Transfer) {
	of := func(a arrival) bool { return a.transfer == t }
	known := q.batch != nil && slices.ContainsFunc(q.batch.arrivals, of)
	if !known && q.atomicGroup == 0 {
		q.room()
	}
	a := arrival{transfer: t}
	for _, slot := range q.members {
		a.nodes = append(a.nodes, q.tasks[slot].node)
	}
	q.encoder("") // there is a command buffer, also where the host alone reads the copy
	q.batch.arrivals = append(q.batch.arrivals, a)
	if err := q.batch.cb.AfterTransfer(t); err != nil {
		panic("BUG: " + err.Error())
	}
}

// room hands over what is recorded: it need not wait for what comes next.
func (q *batcher) room() {
	if q.commands() > 0 {
		q.commit(false)
	}
}

// has reports whether a node is of the segment.
func (seg *segment) has(n *Node) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.seg == seg
}

// running drops command buffers that have ended from a list.
func running(cbs []*metal.CommandBuffer) []*metal.CommandBuffer {
	return slices.DeleteFunc(cbs, func(cb *metal.CommandBuffer) bool { return cb.Status() > metal.StatusCommitted })
}

// followOlder has what is recorded next come after what views of older segments may be of.
func (q *batcher) followOlder() {
	q.older = running(q.older)
	missing := func(cb *metal.CommandBuffer) bool { return q.batch == nil || !slices.Contains(q.batch.ahead, cb) }
	if slices.ContainsFunc(q.older, missing) {
		q.room()
		q.open().comeAfter(q.older)
	}
}

// beginSegment keeps what readers of the last segment's values come after.
func (q *batcher) beginSegment() {
	q.older, q.ahead = running(append(q.older, q.ahead...)), nil
	q.far = running(q.far)
}

// comeAfter has a batch's commands, of which there are none yet, come after command buffers of other streams.
func (b *batch) comeAfter(others []*metal.CommandBuffer) {
	for _, cb := range others {
		if slices.Contains(b.ahead, cb) {
			continue
		}
		b.ahead = append(b.ahead, cb)
		if b.cb != nil {
			comeAfter(b.cb, cb)
		}
	}
}

// comeAfter is After for what is known to be committed.
func comeAfter(cb, other *metal.CommandBuffer) {
	if err := cb.After(other); err != nil {
		panic("BUG: " + err.Error())
	}
}

// handedOver notes that a batch is committed, so that others may follow it.
func (b *batch) handedOver(s *Stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b.handed = true
	s.tellNews()
}

// computedBy are the command buffers that have run when what a batch's nodes hold is there: its own, or if it has none
// those of what its views are of. Called with mu held, before the batch is among those pending.
func (s *Stream) computedBy(b *batch) []*metal.CommandBuffer {
	if b.cb != nil {
		return []*metal.CommandBuffer{b.cb}
	}
	runs := b.ahead
	if n := len(s.pending); n > 0 {
		runs = append(runs[:len(runs):len(runs)], s.pending[n-1].runs...)
	}
	return runs
}

// turn reports whether a batch may be settled once it is the oldest: it has ended, and so have those of other streams
// that it comes after. One that was stopped before it began need not wait for these, which may go on for others. Called
// with mu and settling held.
func (b *batch) turn() bool {
	for b.done && len(b.after) > 0 {
		select {
		case <-b.after[0].ended:
			b.after = b.after[1:]
		default:
			stop, _ := interruption(b.err)
			return b.job.stopped.Load() && (b.cb == nil || stop != nil && !slices.Contains(stop.Ran, true))
		}
	}
	return b.done
}
