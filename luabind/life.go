package luabind

import (
	"errors"
	"sync"
)

// ErrClosed is the error of whatever is asked of a state after Close.
var ErrClosed = errors.New("the state is closed")

// life is whether a state is open. A call under way keeps it: Close may come from a function that a script calls, or
// from another goroutine, and what runs needs its stack until it ends.
type life struct {
	end func() // ends the state

	mu     sync.Mutex
	calls  int // under way
	closed bool
}

// enter begins a call: ErrClosed if there may be none.
func (l *life) enter() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return ErrClosed
	}
	l.calls++
	return nil
}

// hold keeps close from ending the state until release is called, for what may be done with a closed state too.
func (l *life) hold() (release func()) {
	if l.enter() != nil {
		return func() {}
	}
	return l.leave
}

// leave ends a call, and the state with it if that is what close waits for.
func (l *life) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls--
	if l.closed && l.calls == 0 {
		l.end()
	}
}

// close ends the state once no call is under way.
func (l *life) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	l.closed = true
	if l.calls == 0 {
		l.end()
	}
}

// Close ends the state. Calls under way run to their end; later ones are ErrClosed. Closing again does nothing.
func (s *State) Close() { s.life.close() }

// Closed reports whether Close was called.
func (s *State) Closed() bool {
	s.life.mu.Lock()
	defer s.life.mu.Unlock()
	return s.life.closed
}
