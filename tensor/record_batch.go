package tensor

import (
	"context"
	"slices"
	"strings"

	"github.com/mlxlua/mlxlua/metal"
)

// batcher collects what a recorder records into batches and hands these to the device.
type batcher struct {
	s    *Stream
	dev  *metal.Device
	pace metal.Pace

	job   *job
	tasks []task // of the segment that is being recorded
	batch *batch // that is being filled, if there is one
	begun bool   // a batch of the segment was handed over

	// Of other streams, what later commands come after, which may read views that lie in batches without commands: those
	// of the segment that is being recorded, and those that read values of older ones.
	ahead, older []*metal.CommandBuffer
	far          []*metal.CommandBuffer // of other devices, what views that are recorded may be of

	checks []*check // that no gate has seen

	// The unit that is being recorded:
	members      []int32 // its slots
	op           *Op     // that the last of them calls
	place        Place   // and the line
	account      *metal.Account
	owner        metal.Owner
	first        int    // its first command in the batch
	early        *error // of its commands in earlier batches
	atomicGroup  int    // the Unit of its commands, all or none of which run
	dry          bool   // it is for a take: nothing is to run
	spoils       bool   // its last command writes over what it reads, and may be stopped midway
	atomicGroups int    // so far
	update       *updateMoves
}

// open is the batch that is being filled.
func (q *batcher) open() *batch {
	if q.batch == nil {
		q.batch = &batch{job: q.job, ended: make(chan struct{}), nodes: q.s.spare.get(), ahead: q.ahead}
	}
	return q.batch
}

// encoder is the command buffer's, for a command of that label.
func (q *batcher) encoder(label string) *metal.Encoder {
	b := q.open()
	if b.cb == nil {
		b.cb = q.job.chain(q.s).NewCommandBuffer(q.dev, q.s.index, "")
		for _, other := range b.ahead {
			comeAfter(b.cb, other)
		}
		if word := q.job.chainOn(q.s).fault; word != nil {
			_ = b.cb.Encoder().Fault(word.All()) // the job keeps it
		}
		if profile.Load() != nil {
			b.cb.Measure()
		}
	}
	enc := b.cb.Encoder()
	if b.cb.Validating() && q.place != (Place{}) && !q.dry {
		label = strings.TrimSpace(label + " " + q.place.String())
	}
	enc.Label(label)
	enc.Unit(q.atomicGroup)
	return enc
}

// updates is what the unit that is being recorded moves to change inputs in place.
func (q *batcher) updates() *updateMoves {
	if q.update == nil {
		q.update = &updateMoves{}
	}
	return q.update
}

// indivisible says that the commands of the unit that is being recorded overwrite what it reads: all of them run, or
// none.
func (q *batcher) indivisible() {
	if q.atomicGroup == 0 {
		q.atomicGroups++
		q.atomicGroup = q.atomicGroups
	}
}

// commands counts the commands of the batch so far.
func (q *batcher) commands() int {
	if q.batch == nil || q.batch.cb == nil {
		return 0
	}
	return q.batch.cb.Encoder().Len()
}

// full reports whether the batch should be handed over.
func (q *batcher) full() bool {
	if q.batch == nil || q.batch.cb == nil {
		return q.batch != nil && len(q.batch.nodes) >= 4*q.pace.Commands
	}
	n, pace := q.commands(), &q.pace
	least := pace.First
	if q.begun {
		least = pace.Idle // a device that is idle again is faster than its recorder
	}
	if n < pace.Commands && (n >= least || q.batch.bytes >= pace.IdleBytes) && !q.s.busy() {
		return true
	}
	return n >= pace.Commands || q.batch.bytes >= pace.Bytes
}

// commit hands the batch over; last says that it ends the segment.
func (q *batcher) commit(last bool) {
	b := q.batch
	if b == nil {
		if !last {
			return
		}
		b = q.open()
	}
	q.batch, q.begun, q.ahead = nil, true, nil
	if b.cb == nil { // what is recorded later may read its views
		q.ahead = slices.Clip(b.ahead)
	}
	q.checks = slices.DeleteFunc(q.checks, (*check).over)
	b.last = last
	if len(q.members) > 0 && b.cb != nil && b.cb.Encoder().Len() > q.first {
		q.split(b)
	}
	q.first = 0
	s := q.s
	s.mu.Lock()
	b.runs, b.far = s.computedBy(b), slices.Clone(q.far)
	s.pending = append(s.pending, b)
	s.mu.Unlock()
	cb := b.cb
	if cb == nil {
		b.handedOver(s)
		s.complete(b, nil)
		return
	}
	j := b.job
	b.commands = cb.Encoder().Len()
	j.bytes.Add(b.bytes)
	j.commands.Add(int64(b.commands))
	b.timed()
	cb.OnComplete(func(err error) {
		s.addRun(b)
		s.complete(b, err)
	})
	if err := cb.Commit(); err != nil {
		return // it has ended, and its nodes with it
	}
	b.handedOver(s)
	q.throttle(q.pace.Pending, q.pace.Least)
}

// split notes that a batch holds the first commands of the unit that is being recorded.
func (q *batcher) split(b *batch) {
	if q.early == nil {
		q.early = new(error)
	}
	for _, slot := range q.members {
		t := &q.tasks[slot]
		b.nodes = append(b.nodes, settling{task: *t, first: q.first, last: b.cb.Encoder().Len(), early: q.early,
			kind: unfinished})
	}
}

// throttle waits until the stream has fewer than most batches pending, and fewer than large ones if these have much
// memory of their own.
func (q *batcher) throttle(most, large int) {
	for {
		q.s.mu.Lock()
		var ended chan struct{}
		if n := len(q.s.pending); n >= most || n >= large && q.s.pendingFresh() > q.pace.PendingBytes {
			ended = q.s.pending[0].ended
		}
		q.s.mu.Unlock()
		if ended == nil {
			return
		}
		<-ended
	}
}

// drain hands over what is recorded and waits until all of the stream's commands have run, or the evaluation is
// cancelled.
func (q *batcher) drain() error {
	if q.batch != nil {
		q.commit(false)
	}
	q.throttle(1, 1)
	if q.job.ctx.Err() != nil {
		return context.Cause(q.job.ctx)
	}
	return nil
}
