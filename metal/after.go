package metal

import (
	"errors"
	"fmt"
	"sync"
)

// Queues of one device meet by command buffers that come after others: one runs when those of other queues that it
// names have run, which the device sees to. That a command buffer has ended is the event, and each has one: on Metal a
// value of its queue's MTLSharedEvent, on CUDA an event that is recorded behind it. Only what is committed can be
// named, so there are no cycles.
//
// What has not run to its end is of no use to what comes after it. So where a command buffer was stopped, or skipped by
// a gate, those that come after it do not begin: they end with an Interrupted of the same cause, and interrupt their
// chain. Where commands have failed, or the device is lost, the others run, as in one queue.
//
// Queues of two devices meet by a Transfer (transfer.go), which has an end, too.

// meeting is what others know of a command buffer that they come after.
type meeting struct {
	mu        sync.Mutex
	given     bool       // the driver has it, or never will
	ended     bool       // it has ended
	cause     error      // why not all of it has run; nil: it has
	skippable bool       // its commands may be skipped, of which its driver does not tell those of other queues
	followers []follower // those who come after it, until the end
}

// follower has something that comes after what others do: a queue that may hand a command buffer over, or a Transfer.
type follower interface{ look() }

// After has the command buffer run when another one of its device has run, which is committed. A command buffer of its
// own queue comes after those before it anyway.
func (cb *CommandBuffer) After(other *CommandBuffer) error {
	switch {
	case other == nil || other.dev != cb.dev:
		return fmt.Errorf("[after] command buffer %s of another device", other)
	case other == cb || other.Status() == StatusOpen:
		return fmt.Errorf("[after] command buffer %s is not committed", other)
	}
	cb.mu.Lock()
	defer cb.mu.Unlock()
	if err := cb.open("after"); err != nil {
		return err
	}
	if other.queue != cb.queue && !other.meeting.over() {
		cb.behind = append(cb.behind, other)
	}
	return nil
}

// Behind are the command buffers of other queues that this one comes after, until it has ended; the driver has those of
// them that have not ended. Read only. For drivers.
func (cb *CommandBuffer) Behind() []*CommandBuffer {
	cb.mu.Lock()
	defer cb.mu.Unlock()
	return cb.behind
}

// SetTag keeps something of the driver's with the command buffer, which Tag returns. The driver calls it before Submit
// returns. For drivers.
func (cb *CommandBuffer) SetTag(tag any) {
	cb.mu.Lock()
	cb.tag = tag
	cb.mu.Unlock()
}

// Tag is what SetTag was given. For drivers.
func (cb *CommandBuffer) Tag() any {
	cb.mu.Lock()
	defer cb.mu.Unlock()
	return cb.tag
}

// over reports whether nothing need wait for it.
func (m *meeting) over() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ended && m.cause == nil
}

// end says whether it has ended, and why not all of it has run then.
func (m *meeting) end() (ended bool, cause error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ended, m.cause
}

// follow has somebody look again when the command buffer is given to the driver, and when it has ended.
func (m *meeting) follow(f follower) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.ended {
		m.followers = append(m.followers, f)
	}
}

// holds reports whether what comes after it has to be kept from the driver.
func (m *meeting) holds() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.ended && (!m.given || m.skippable)
}

// change notes something, and has those look who come after it.
func (m *meeting) change(note func()) {
	m.mu.Lock()
	note()
	followers := m.followers
	if m.ended {
		m.followers = nil
	}
	m.mu.Unlock()
	for _, f := range followers {
		f.look()
	}
}

// noteEnd notes how the command buffer has ended.
func (cb *CommandBuffer) noteEnd(err error) {
	var stop *Interrupted
	cb.meeting.change(func() {
		cb.meeting.given, cb.meeting.ended = true, true
		if errors.As(err, &stop) {
			cb.meeting.cause = stop.Cause
		}
	})
}

// awaited are the ends that the command buffer comes after, until its own.
func (cb *CommandBuffer) awaited(yield func(*meeting) bool) {
	cb.mu.Lock()
	behind, arrivals := cb.behind, cb.arrivals
	cb.mu.Unlock()
	for _, o := range behind {
		if !yield(&o.meeting) {
			return
		}
	}
	for _, t := range arrivals {
		if !yield(&t.meeting) {
			return
		}
	}
}

// held reports whether the command buffer is kept from the driver by what it comes after.
func (cb *CommandBuffer) held() bool {
	for m := range cb.awaited {
		if m.holds() {
			return true
		}
	}
	return false
}

// waits reports whether something that it comes after has not ended.
func (cb *CommandBuffer) waits() bool {
	for m := range cb.awaited {
		if ended, _ := m.end(); !ended {
			return true
		}
	}
	return false
}

// Missed is why a command buffer cannot run: something that it comes after has ended, and not all of that has run. It
// is nil where all have run so far. For drivers whose command buffers end early: when those that it comes after have
// ended.
func (cb *CommandBuffer) Missed() error {
	for m := range cb.awaited {
		if _, cause := m.end(); cause != nil {
			return cause
		}
	}
	return nil
}

// missAll interrupts the chain of a command buffer that cannot run: see Missed.
func (cb *CommandBuffer) missAll() {
	if cause := cb.Missed(); cause != nil {
		cb.chain.Interrupt(cause)
	}
}
