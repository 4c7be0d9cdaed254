package metal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Status says how far a command buffer has come.
type Status uint8

// The states of a command buffer, in order.
const (
	StatusOpen      Status = iota // commands may be encoded
	StatusCommitted               // the driver has it
	StatusCompleted               // all commands have run
	StatusFailed                  // it has ended with an error, or was cancelled
)

// String is the state's name.
func (s Status) String() string {
	if names := [...]string{"open", "committed", "completed", "failed"}; int(s) < len(names) {
		return names[s]
	}
	return fmt.Sprintf("status %d", uint8(s))
}

// CommandBuffer is a list of commands that a driver runs in order, as if one after another. It retains every buffer,
// temporary and pipeline that it uses once, from binding until it has completed. Its methods may be called from any
// goroutine; encoding is for one. A command buffer ends by Commit or by Cancel: one of them must be called.
type CommandBuffer struct {
	dev      *Device
	id       uint64
	queue    int
	label    string
	validate bool
	done     chan struct{}
	enc      Encoder
	chain    *Chain
	alone    Chain            // chain, where it was begun without one
	gate     []Range          // words that keep it from being handed over: see Encoder.Gate
	behind   []*CommandBuffer // of other queues: see After
	arrivals []*Transfer      // from other devices: see AfterTransfer
	meeting  meeting
	tag      any // the driver's

	mu     sync.Mutex
	status Status
	err    error
	rec    *records // nil after the end
	began  []func()
	begun  bool
	timed  bool // each command is measured
	took   []CommandTime
	after  []func(error)
	timing Timing
}

// NewCommandBuffer begins a command buffer for a queue; those of one queue run in the order of their commits.
func (d *Device) NewCommandBuffer(queue int, label string) *CommandBuffer {
	cb := &CommandBuffer{
		dev: d, id: d.ids.Add(1), queue: queue, label: label, validate: d.validate.Load(), done: make(chan struct{}),
		rec: spareRecords.Get().(*records),
	}
	cb.chain = &cb.alone
	cb.enc.begin(cb)
	return cb
}

// Encoder records the commands; there is one to a command buffer.
func (cb *CommandBuffer) Encoder() *Encoder { return &cb.enc }

// Device is whose queue it is for.
func (cb *CommandBuffer) Device() *Device { return cb.dev }

// ID numbers the command buffers of a device from 1.
func (cb *CommandBuffer) ID() uint64 { return cb.id }

// Label is the name that it was given.
func (cb *CommandBuffer) Label() string { return cb.label }

// Validating reports whether it was begun under the validation layer. For drivers.
func (cb *CommandBuffer) Validating() bool { return cb.validate }

// Commands are the commands so far; after Commit they do not change any more. Read only. They, and what they refer to,
// are valid until the command buffer has ended; after that there are none.
func (cb *CommandBuffer) Commands() []Command {
	cb.mu.Lock()
	defer cb.mu.Unlock()
	return cb.commands()
}

// commands is Commands. Called with mu held, or by a driver's call while the command buffer runs.
func (cb *CommandBuffer) commands() []Command {
	if cb.rec == nil {
		return nil
	}
	return cb.rec.cmds[:len(cb.rec.cmds):len(cb.rec.cmds)]
}

// Status says how far it has come.
func (cb *CommandBuffer) Status() Status {
	cb.mu.Lock()
	defer cb.mu.Unlock()
	return cb.status
}

// Err is the error that it ended with; nil before the end, and after a good one.
func (cb *CommandBuffer) Err() error {
	cb.mu.Lock()
	defer cb.mu.Unlock()
	return cb.err
}

// Done is closed when the command buffer has ended and the functions given to OnComplete have run.
func (cb *CommandBuffer) Done() <-chan struct{} { return cb.done }

// Timing is when it ran: from when the driver began it, or else from when it was the first of its queue, to its end. It
// is right once Done is closed.
func (cb *CommandBuffer) Timing() Timing {
	cb.mu.Lock()
	defer cb.mu.Unlock()
	return cb.timing
}

// begin notes that the command buffer is the first of its queue that has not ended.
func (cb *CommandBuffer) begin() {
	cb.mu.Lock()
	if cb.begun || cb.status > StatusCommitted {
		cb.mu.Unlock()
		return
	}
	cb.begun = true
	cb.timing.Start = time.Now()
	began := cb.began
	cb.mu.Unlock()
	for _, f := range began {
		f()
	}
}

// CommandTime is how long a command ran.
type CommandTime struct {
	Kernel string // or the routine; "" of what is no dispatch and no call
	Took   time.Duration
}

// Measure has the driver measure each command. It is for open command buffers.
func (cb *CommandBuffer) Measure() {
	cb.mu.Lock()
	cb.timed = true
	cb.mu.Unlock()
}

// Measures reports whether commands are measured. For drivers.
func (cb *CommandBuffer) Measures() bool {
	cb.mu.Lock()
	defer cb.mu.Unlock()
	return cb.timed
}

// Took is how long each command ran; it is right once the command buffer has ended, and empty where nobody measures.
func (cb *CommandBuffer) Took() []CommandTime {
	cb.mu.Lock()
	defer cb.mu.Unlock()
	return cb.took
}

// OnStart has f called when the command buffer is the first of its queue that has not ended. F must not block. It is
// for open command buffers.
func (cb *CommandBuffer) OnStart(f func()) {
	cb.mu.Lock()
	cb.began = append(cb.began, f)
	cb.mu.Unlock()
}

// open returns an error unless commands may be recorded. Called with mu held.
func (cb *CommandBuffer) open(op string) error {
	if cb.status == StatusOpen {
		return nil
	}
	if cb.err != nil {
		return cb.err
	}
	return fmt.Errorf("[%s] command buffer %s is %s", op, cb, cb.status)
}

// String names the command buffer in messages.
func (cb *CommandBuffer) String() string {
	if cb.label == "" {
		return fmt.Sprintf("#%d", cb.id)
	}
	return fmt.Sprintf("%s (#%d)", cb.label, cb.id)
}

// use returns the record of a buffer. Called with mu held, before the end.
func (cb *CommandBuffer) use(b *Buffer) *bufferUse { return cb.rec.uses.of(b) }

// add records a command. Called with mu held.
func (cb *CommandBuffer) add(c *Command) {
	cb.rec.cmds = append(cb.rec.cmds, *c)
	cb.enc.n = len(cb.rec.cmds)
}

// usePipeline retains a pipeline and pins its library, once. Called with mu held.
func (cb *CommandBuffer) usePipeline(p *Pipeline) {
	r := cb.rec
	if p.used.Swap(cb.id) == cb.id || slices.Contains(r.pipes, p) {
		return
	}
	r.pipes = append(r.pipes, p)
	if !slices.Contains(r.libs, p.lib) {
		r.libs = append(r.libs, p.lib)
		cb.dev.libs.pin(p.lib)
	}
}

// OnComplete has f called once with the command buffer's error, after its end and after everything that it retained
// was released; at once if it has ended. F must not block, nor wait for the command buffer.
func (cb *CommandBuffer) OnComplete(f func(error)) {
	cb.mu.Lock()
	if cb.status <= StatusCommitted {
		cb.after = append(cb.after, f)
		cb.mu.Unlock()
		return
	}
	err := cb.err
	cb.mu.Unlock()
	f(err)
}

// Commit hands the command buffer to the driver and returns. It is an error if that was done before, if the command
// buffer was cancelled, or if the device is closed. What goes wrong while it runs is Wait's to tell.
func (cb *CommandBuffer) Commit() error {
	cb.mu.Lock()
	if err := cb.open("commit"); err != nil {
		cb.mu.Unlock()
		return err
	}
	cb.enc.end()
	if !cb.dev.pool.submitted() {
		cb.status = StatusCommitted
		cb.mu.Unlock()
		err := errClosed("commit")
		cb.end(err, false)
		return err
	}
	cb.status = StatusCommitted
	cb.timing.Start = time.Now()
	looked := cb.enc.looked
	cb.meeting.skippable = cb.dev.info.Skips && cb.enc.unless.Buf != nil // nobody can follow it yet
	cb.mu.Unlock()
	if looked.Buf != nil {
		cb.chain.mu.Lock()
		cb.chain.seen = looked
		cb.chain.mu.Unlock()
	}
	if err := cb.validateAll(); err != nil {
		cb.end(err, true)
		return nil
	}
	cb.dev.submissions(cb.queue).submit(cb)
	return nil
}

// outcome is the error that a command buffer ends with, whose driver says how it went.
func (cb *CommandBuffer) outcome(r *Result) error {
	cb.mu.Lock()
	if cb.status > StatusCommitted {
		cb.mu.Unlock()
		panic(fmt.Sprintf("BUG: command buffer %s completed twice", cb))
	}
	if !r.Start.IsZero() {
		cb.timing.Start = r.Start
	} else if !cb.begun {
		cb.timing.Start = time.Now() // it has waited, and not run
	}
	for i, d := range r.Took {
		t := CommandTime{Took: d}
		if c := &cb.rec.cmds[i]; c.Pipeline != nil {
			t.Kernel = c.Pipeline.Name()
		} else if c.Call != nil {
			t.Kernel = c.Call.Routine.Routine()
		}
		cb.took = append(cb.took, t)
	}
	cb.mu.Unlock()
	if r.Err != nil {
		return r.Err
	}
	var failed []error
	for _, e := range r.Failed {
		failed = append(failed, cb.explained(e))
	}
	err, midway := errors.Join(failed...), -1
	if r.Ran != nil {
		midway = r.Midway
	}
	if cb.dev.info.Skips {
		cb.skipped(&r.Ran)
	}
	cb.trackAll(r.Ran)
	if r.Ran != nil {
		return cb.interrupted(r.Ran, midway, err, ErrSkipped)
	}
	if err == nil && cb.validate {
		err = cb.checkReferences()
	}
	return err
}

// end completes the command buffer: it releases, then tells. Only once.
func (cb *CommandBuffer) end(err error, submitted bool) {
	cb.mu.Lock()
	if cb.status > StatusCommitted {
		cb.mu.Unlock()
		panic(fmt.Sprintf("BUG: command buffer %s completed twice", cb))
	}
	cb.status, cb.err = StatusCompleted, err
	if err != nil {
		cb.status = StatusFailed
	}
	cb.timing.End = time.Now()
	rec, after := cb.rec, cb.after
	cb.rec, cb.after, cb.behind, cb.arrivals, cb.tag = nil, nil, nil, nil, nil
	cb.mu.Unlock()
	cb.noteEnd(err)
	for i := range rec.uses.n {
		if u := rec.uses.use(i); u.retained {
			u.buf.Release()
		}
	}
	cb.dev.libs.unpin(rec.libs)
	for _, k := range rec.kept {
		k.release()
	}
	rec.done()
	for _, f := range after {
		f(err)
	}
	cb.alone.finish()
	if submitted {
		cb.dev.pool.finished()
	}
	close(cb.done)
}

// Wait returns the command buffer's error when it has ended, or the context's when that is done first; the command
// buffer then goes on. Waiting for one that is neither committed nor cancelled is an error.
func (cb *CommandBuffer) Wait(ctx context.Context) error {
	if cb.Status() == StatusOpen {
		return fmt.Errorf("[wait] command buffer %s is not committed", cb)
	}
	if ctx == nil {
		ctx = context.Background()
	}
	select {
	case <-cb.done:
		return cb.Err()
	default:
	}
	select {
	case <-cb.done:
		return cb.Err()
	case <-ctx.Done():
		return cause(ctx)
	}
}

// Cancel ends a command buffer that is not committed with err, and interrupts the chain of one that is, which then ends
// with an Interrupted that wraps err unless it completes first. A nil err stands for context.Canceled. On one that has
// ended it does nothing.
func (cb *CommandBuffer) Cancel(err error) {
	if err == nil {
		err = context.Canceled
	}
	cb.mu.Lock()
	open := cb.status == StatusOpen
	if open {
		cb.status = StatusCommitted // nobody can encode or commit it from here on
	}
	ended := cb.status > StatusCommitted
	cb.mu.Unlock()
	switch {
	case open:
		cb.end(err, false)
	case !ended:
		cb.chain.Interrupt(err)
	}
}
