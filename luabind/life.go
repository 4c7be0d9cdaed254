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
	mu     sync.Mutex
	calls  int // under way
	closed bool
}

// enter begins a call: ErrClosed if there may be none.
func (s *State) enter() error {
	s.life.mu.Lock()
	defer s.life.mu.Unlock()
	if s.life.closed {
		return ErrClosed
	}
	s.life.calls++
	return nil
}

// leave ends a call, and the state with it if that is what Close waits for.
func (s *State) leave() {
	s.life.mu.Lock()
	defer s.life.mu.Unlock()
	s.life.calls--
	if s.life.closed && s.life.calls == 0 {
		s.L.Close()
	}
}

// Close ends the state. Calls under way run to their end; later ones are ErrClosed. Closing again does nothing.
func (s *State) Close() {
	s.life.mu.Lock()
	defer s.life.mu.Unlock()
	if s.life.closed {
		return
	}
	s.life.closed = true
	if s.life.calls == 0 {
		s.L.Close()
	}
}

// Closed says whether Close was called.
func (s *State) Closed() bool {
	s.life.mu.Lock()
	defer s.life.mu.Unlock()
	return s.life.closed
}
