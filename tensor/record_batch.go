package tensor

import (
	"context"
	"strings"

	"github.com/mlxlua/mlxlua/metal"
)

// The size of a command buffer: it is handed over when it is as large, so that memory comes back during long
// evaluations and the device has work while the rest is encoded.
const (
	batchCommands = 64
	firstCommands = 16 // of an evaluation's first, when the device is idle
	idleCommands  = 32 // of later ones: a device that is idle again is faster than its encoder
	batchBytes    = 64 << 20
	maxPending    = 16
)

// open is the batch that is being filled.
func (e *recorder) open() *batch {
	if e.batch == nil {
		e.batch = &batch{job: e.job, ended: make(chan struct{}), nodes: e.s.spare.get()}
	}
	return e.batch
}

// encoder is the command buffer's, for a command of that label.
func (e *recorder) encoder(label string) *metal.Encoder {
	b := e.open()
	if b.cb == nil {
		b.cb = e.dev.NewCommandBuffer(e.s.index, "")
	}
	enc := b.cb.Encoder()
	if b.cb.Validating() && e.place != (Place{}) {
		label = strings.TrimSpace(label + " " + e.place.String())
	}
	enc.Label(label)
	return enc
}

// commands counts the commands of the batch so far.
func (e *recorder) commands() int {
	if e.batch == nil || e.batch.cb == nil {
		return 0
	}
	return e.batch.cb.Encoder().Len()
}

func (e *recorder) full() bool {
	if e.batch == nil || e.batch.cb == nil {
		return e.batch != nil && len(e.batch.nodes) >= 4*batchCommands
	}
	n := e.commands()
	least := idleCommands
	if e.begins {
		least = firstCommands
	}
	if n >= least && n < batchCommands {
		e.s.mu.Lock()
		idle := len(e.s.pending) == 0
		e.s.mu.Unlock()
		if idle {
			return true
		}
	}
	return n >= batchCommands || e.batch.bytes >= batchBytes
}

// commit hands the batch over; last says that it ends the segment.
func (e *recorder) commit(last bool) {
	b := e.batch
	if b == nil {
		if !last {
			return
		}
		b = e.open()
	}
	e.batch, e.begins = nil, false
	b.last = last
	if n := len(e.members); n > 0 && b.cb != nil && b.cb.Encoder().Len() > e.first {
		e.split(b)
	}
	e.first = 0
	s := e.s
	s.mu.Lock()
	s.pending = append(s.pending, b)
	s.mu.Unlock()
	cb := b.cb
	if cb == nil {
		s.complete(b, nil)
		return
	}
	j := b.job
	b.commands = cb.Encoder().Len()
	cb.OnComplete(func(err error) {
		j.forget(cb)
		s.ran(b)
		s.complete(b, err)
	})
	j.watch(cb)
	if err := cb.Commit(); err != nil {
		return // it has ended, and its nodes with it
	}
	e.throttle(maxPending)
}

// split notes that a batch holds the first commands of the unit that is being encoded.
func (e *recorder) split(b *batch) {
	if e.early == nil {
		e.early = new(error)
	}
	for _, slot := range e.members {
		t := &e.seg.tasks[slot]
		b.nodes = append(b.nodes, settling{node: t.node, in: t.reads(), first: e.first, last: b.cb.Encoder().Len(),
			early: e.early, more: true})
	}
}

// throttle waits until the stream has fewer than n batches pending.
func (e *recorder) throttle(n int) {
	for {
		e.s.mu.Lock()
		var ended chan struct{}
		if len(e.s.pending) >= n {
			ended = e.s.pending[0].ended
		}
		e.s.mu.Unlock()
		if ended == nil {
			return
		}
		<-ended
	}
}

// drain hands over what is encoded and waits until all of the stream's commands have run, or the evaluation is
// cancelled.
func (e *recorder) drain() error {
	if e.batch != nil {
		e.commit(false)
	}
	e.throttle(1)
	if e.job.ctx.Err() != nil {
		return context.Cause(e.job.ctx)
	}
	return nil
}
