package metal

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
)

// Chain is some command buffers of one queue that are interrupted together: those that one evaluation needs, each of
// which may read what those before it wrote. Where one ends early the later ones do not begin, so that what has run is
// always a beginning of all their commands. The zero Chain has none yet.
type Chain struct {
	interrupted atomic.Bool
	broken      bool        // a command buffer ended early; of the queue's turn in the driver
	failed      atomic.Bool // a command has, or a command buffer as a whole

	mu    sync.Mutex
	gates []func(failed bool) error
	open  int                     // how many of them are
	cause error                   // of the interruption
	ctx   context.Context         // nil until somebody asks for it: few do
	stop  context.CancelCauseFunc // of ctx
	over  bool                    // ctx is done, or would be
}

// NewCommandBuffer is Device.NewCommandBuffer for the next of a chain.
func (ch *Chain) NewCommandBuffer(d *Device, queue int, label string) *CommandBuffer {
	cb := d.NewCommandBuffer(queue, label)
	cb.chain = ch
	cb.enc.gates = ch.gated()
	return cb
}

// Interrupt asks the driver to end the command buffers early. Those that run then are stopped at a command that can
// be repeated, or within one; those that come later do not begin. A nil cause stands for context.Canceled; only the
// first call counts.
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
	ch.interrupted.Store(true)
	ch.endHeld()
}

// end lets go of the context, if there is one.
func (ch *Chain) end() {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	ch.endHeld()
}

// endHeld is end with mu held.
func (ch *Chain) endHeld() {
	if ch.over = true; ch.stop != nil {
		ch.stop(ch.cause)
	}
}

// Context is done when the command buffer's chain is interrupted, or when it has ended without one.
func (cb *CommandBuffer) Context() context.Context {
	ch := cb.chain
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if ch.ctx == nil {
		ch.ctx, ch.stop = context.WithCancelCause(context.Background())
		if ch.over {
			ch.stop(ch.cause)
		}
	}
	return ch.ctx
}

// Gate has the commands that follow, in this command buffer and in later ones of its chain, run only if pass returns no
// error: it is called once, by whoever runs the commands, when all those before have run, and is told whether one of
// the chain's has failed. Its error interrupts the chain.
func (e *Encoder) Gate(pass func(failed bool) error) error {
	if cmds := e.cb.Commands(); len(cmds) > 0 && cmds[len(cmds)-1].Kind != CmdBarrier {
		if err := e.Barrier(); err != nil {
			return err
		}
	}
	ch := e.cb.chain
	ch.mu.Lock()
	defer ch.mu.Unlock()
	ch.gates = append(ch.gates, pass)
	e.gates = len(ch.gates)
	return nil
}

// openGates opens the first n gates, up to one that does not open.
func (ch *Chain) openGates(n int) {
	for n > 0 && !ch.interrupted.Load() {
		ch.mu.Lock()
		if ch.open >= n {
			ch.mu.Unlock()
			return
		}
		pass := ch.gates[ch.open]
		ch.gates[ch.open] = nil
		ch.open++
		ch.mu.Unlock()
		if err := pass(ch.failed.Load()); err != nil {
			ch.Interrupt(err)
		}
	}
}

// gated is how many gates the next command of the chain is behind.
func (ch *Chain) gated() int {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	return len(ch.gates)
}

// StopBefore reports whether a driver has to end the command buffer without running command i, and notes that the
// command begins where it does not. Barriers are not asked about.
func (cb *CommandBuffer) StopBefore(i int) bool {
	ch, unit := cb.chain, cb.commands()[i].Unit
	ch.openGates(cb.commands()[i].Gates)
	if !ch.broken && (!ch.interrupted.Load() || unit != 0 && unit == cb.unit) {
		cb.unit = unit
		return false
	}
	ch.broken = true
	return true
}

// Interrupt is the flag that stops command i while it runs; nil for a command that must run to its end.
func (cb *CommandBuffer) Interrupt(i int) *atomic.Bool {
	if cb.commands()[i].Unit != 0 {
		return nil
	}
	return &cb.chain.interrupted
}

// Interrupted is the error of a command buffer that ended early because its chain was interrupted. It wraps the
// interruption's cause.
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

// Interrupted is the error to end the command buffer with after an interruption, for drivers: ran and midway are as in
// the error's type, failed has the errors of commands so far.
func (cb *CommandBuffer) Interrupted(ran []bool, midway int, failed error) *Interrupted {
	ch := cb.chain
	ch.broken = true
	ch.mu.Lock()
	defer ch.mu.Unlock()
	return &Interrupted{Ran: ran, Midway: midway, Failed: failed, Cause: ch.cause}
}
