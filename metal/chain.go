package metal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
)

// Chain is some command buffers of one queue that are interrupted together: those that one evaluation needs, each of
// which may read what those before it wrote. Where one ends early the later ones do not begin, so that what has run is
// always a beginning of all their commands. The zero Chain has none yet.
type Chain struct {
	stop atomic.Bool // the word that drivers look at

	mu    sync.Mutex
	gated bool                    // a gate was recorded
	word  Range                   // what the next command is skipped for, on devices that skip
	seen  Range                   // the last such word that the host looks at
	shut  bool                    // a gate is shut that the host has looked at
	cause error                   // of the interruption
	kept  []*submissions          // queues that keep command buffers of the chain from the driver
	ctx   context.Context         // nil until somebody asks for it: few do
	end   context.CancelCauseFunc // of ctx
	over  bool                    // ctx is done, or would be
}

// NewCommandBuffer is Device.NewCommandBuffer for the next of a chain.
func (ch *Chain) NewCommandBuffer(d *Device, queue int, label string) *CommandBuffer {
	cb := d.NewCommandBuffer(queue, label)
	cb.chain = ch
	ch.mu.Lock()
	word, seen := ch.word, ch.seen
	ch.mu.Unlock()
	if word.Buf != nil {
		cb.mu.Lock()
		cb.enc.unless, cb.enc.looked = word, seen
		_ = cb.enc.hold(word.Buf) // the chain's user keeps it
		cb.mu.Unlock()
	}
	return cb
}

// Interrupt asks the driver to end the command buffers early, as Info.Stops says: those that run then are stopped at a
// command that can be repeated, or within one; those that come later do not begin. A nil cause stands for
// context.Canceled; only the first call counts.
func (ch *Chain) Interrupt(cause error) {
	if cause == nil {
		cause = context.Canceled
	}
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if ch.cause != nil {
		return
	}
	ch.cause = cause
	ch.stop.Store(true)
	ch.endHeld()
	for _, q := range ch.kept { // what they keep ends now, and whoever hears of that may need a lock of our caller's
		go q.look()
	}
	ch.kept = nil
}

// wake has a queue looked at when the chain is interrupted, since it keeps a command buffer of the chain from the
// driver. It reports whether that has happened before.
func (ch *Chain) wake(q *submissions) bool {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if ch.cause == nil && !slices.Contains(ch.kept, q) {
		ch.kept = append(ch.kept, q)
	}
	return ch.cause != nil
}

// finish lets go of the context, if there is one.
func (ch *Chain) finish() {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	ch.endHeld()
}

// endHeld is finish with mu held.
func (ch *Chain) endHeld() {
	if ch.over = true; ch.end != nil {
		ch.end(ch.cause)
	}
}

// Context is done when the command buffer's chain is interrupted, or when it has ended without one.
func (cb *CommandBuffer) Context() context.Context {
	ch := cb.chain
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if ch.ctx == nil {
		ch.ctx, ch.end = context.WithCancelCause(context.Background())
		if ch.over {
			ch.end(ch.cause)
		}
	}
	return ch.ctx
}

// Stop is the word that is true from when the command buffer is to end early, for drivers to look at before each
// command and while one runs.
func (cb *CommandBuffer) Stop() *atomic.Bool { return &cb.chain.stop }

// ErrSkipped is the cause of an Interrupted whose missing commands are behind a gate that is shut.
var ErrSkipped = errors.New("what it depends on has failed")

// Interrupted is the error of a command buffer of which not all commands have run: its chain was interrupted, or a gate
// is shut. It wraps the cause.
type Interrupted struct {
	Ran    []bool // the commands that ran to their end, by their index; barriers count as others do
	Midway int    // the command that was stopped while it ran, or -1
	Failed error  // the errors of commands that ran, as of a command buffer that was not interrupted
	Cause  error
}

// Error is the cause's.
func (e *Interrupted) Error() string { return fmt.Sprintf("interrupted: %v", e.Cause) }

// Unwrap is the cause.
func (e *Interrupted) Unwrap() error { return e.Cause }

// interrupted is the error of a command buffer of whose commands those have run, for cause or what the chain was
// interrupted for.
func (cb *CommandBuffer) interrupted(ran []bool, midway int, failed, cause error) *Interrupted {
	ch := cb.chain
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if ch.cause != nil {
		cause = ch.cause
	}
	return &Interrupted{Ran: ran, Midway: midway, Failed: failed, Cause: cause}
}
