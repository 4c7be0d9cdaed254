package metal

import (
	"fmt"
	"slices"
	"sync/atomic"
)

// Queues of two devices meet by transfers. A Transfer copies bytes of one device's memory to another's when the command
// buffers that compute them have run. That it has ended is the event which command buffers of the other device wait
// for: they are kept from their driver until then. Nobody else waits, neither who records nor the devices.

// Transfer is a copy that goes on by itself. Its methods may be called from any goroutine.
type Transfer struct {
	to      *Buffer
	offset  int64
	from    Range
	behind  []*CommandBuffer
	begun   atomic.Bool
	meeting meeting
	failed  error // guarded by meeting.mu
}

// CopyBehind is CopyFrom of what command buffers of the source's device compute, which are committed: it is done when
// they have ended, by a goroutine of its own. Where all of them have it is done at once, and the Transfer is nil. Both
// buffers are kept until the Transfer has ended, and their devices do not close before that.
func (b *Buffer) CopyBehind(offset int64, src Range, behind []*CommandBuffer) (*Transfer, error) {
	t := &Transfer{to: b, offset: offset, from: src}
	for _, cb := range behind {
		if !cb.meeting.over() {
			t.behind = append(t.behind, cb)
		}
	}
	if len(t.behind) == 0 {
		err := b.CopyFrom(offset, src)
		if err == nil {
			b.Settle()
		}
		return nil, err
	}
	if err := src.Buf.transferable("copy", src.Offset, src.Bytes); err != nil {
		return nil, err
	}
	if err := b.transferable("copy", offset, src.Bytes); err != nil {
		return nil, err
	}
	if !src.Buf.pool.submitted() {
		return nil, errClosed("copy")
	}
	if !b.pool.submitted() {
		src.Buf.pool.finished()
		return nil, errClosed("copy")
	}
	b.Retain()
	src.Buf.Retain()
	for _, cb := range t.behind {
		cb.meeting.follow(t)
	}
	t.look()
	return t, nil
}

// Status is StatusCommitted until the Transfer has ended, StatusCompleted when all bytes are there, and StatusFailed
// when they will never be.
func (t *Transfer) Status() Status {
	switch ended, cause := t.meeting.end(); {
	case !ended:
		return StatusCommitted
	case cause != nil:
		return StatusFailed
	}
	return StatusCompleted
}

// Err is why the copy failed. It is nil where what the Transfer waited for has not run.
func (t *Transfer) Err() error {
	t.meeting.mu.Lock()
	defer t.meeting.mu.Unlock()
	return t.failed
}

// look begins the copy when all that it waits for has ended.
func (t *Transfer) look() {
	for _, cb := range t.behind {
		if ended, _ := cb.meeting.end(); !ended {
			return
		}
	}
	if !t.begun.Swap(true) {
		go t.run()
	}
}

// run copies, unless what the Transfer waited for has not run, and ends it.
func (t *Transfer) run() {
	var failed, cause error
	for _, cb := range t.behind {
		if _, why := cb.meeting.end(); cause == nil {
			cause = why
		}
	}
	if cause == nil {
		failed = t.to.CopyFrom(t.offset, t.from)
		cause = failed
	}
	if cause == nil {
		t.to.Settle()
	}
	to, from := t.to.pool, t.from.Buf.pool
	t.to.Release()
	t.from.Buf.Release()
	t.meeting.change(func() {
		t.failed = failed
		t.meeting.given, t.meeting.ended, t.meeting.cause = true, true, cause
	})
	from.finished()
	to.finished()
}

// AfterTransfer has the command buffer run when a Transfer to its device has ended. Where that has not brought its
// bytes the command buffer does not begin, as if what it comes after had been stopped: see After.
func (cb *CommandBuffer) AfterTransfer(t *Transfer) error {
	cb.mu.Lock()
	defer cb.mu.Unlock()
	if err := cb.open("after"); err != nil {
		return err
	}
	if t.to.pool != cb.dev.pool {
		return fmt.Errorf("[after] a transfer to another device than that of command buffer %s", cb)
	}
	if !t.meeting.over() && !slices.Contains(cb.arrivals, t) {
		cb.arrivals = append(cb.arrivals, t)
	}
	return nil
}
