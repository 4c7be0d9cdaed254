package luabind

import (
	"context"
	"errors"
	"sync"

	"github.com/mlxlua/mlxlua/internal/goroutine"
)

// ErrClosed is the error of whatever is asked of a state after Close.
var ErrClosed = errors.New("the state is closed")

// ErrBusy is the error of whatever is asked of a state while another goroutine uses it.
var ErrBusy = errors.New("the State is in use by another goroutine: use a Pool, or a State for each goroutine")

// life is whether a state is open, and who uses it. A call under way keeps it: Close may come from a function that a
// script calls, or from another goroutine, and what runs needs its stack until it ends.
//
// One goroutine uses a state at a time. What it calls may call the state again: Go functions that a script calls, a
// writer that print writes to. A Go function may also hand the state on, to who has the context that it was given.
type life struct {
	end func() // ends the state

	mu     sync.Mutex
	users  []uintptr // the goroutines of the calls under way, outermost first
	lent   int       // how many of those were there when the last Go function began; 0: none is under way
	back   sync.Cond // waits for who has the state from a Go function
	closed bool
	ended  bool
}

// enter begins a call: ErrClosed if there may be none, ErrBusy where another goroutine uses the state.
func (l *life) enter(ctx context.Context) error { return l.begin(ctx, false) }

// hold is enter for what may be done with a closed state too.
func (l *life) hold(ctx context.Context) error { return l.begin(ctx, true) }

func (l *life) begin(ctx context.Context, evenClosed bool) error {
	me := goroutine.ID()
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.users); n > 0 && l.users[n-1] != me && (l.lent != n || !handed(ctx, l)) {
		return ErrBusy
	}
	if l.closed && !evenClosed {
		return ErrClosed
	}
	l.users = append(l.users, me)
	return nil
}

// leave ends a call, and the state with it if that is what close waits for.
func (l *life) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.users = l.users[:len(l.users)-1]
	l.lent = min(l.lent, len(l.users)) // a Go function may end its goroutine
	if l.lent > 0 {
		l.back.Broadcast()
	}
	l.over()
}

// over ends a closed state that nobody uses. Called with mu held.
func (l *life) over() {
	if l.closed && !l.ended && len(l.users) == 0 {
		l.ended = true
		l.end()
	}
}

// close ends the state once no call is under way.
func (l *life) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.over()
}

// lend says that a Go function runs now, and is its context. Who has that may use the state too until the function
// ends, which takeBack waits for.
func (l *life) lend(ctx context.Context) (inner context.Context, takeBack func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before, mine := l.lent, len(l.users)
	l.lent = mine
	return &handedOn{ctx, l}, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		for len(l.users) > mine {
			l.back.Wait()
		}
		l.lent = before
	}
}

// handedOn is the context of a Go function that a script has called.
type handedOn struct {
	context.Context
	l *life
}

// lifeKey is what handedOn answers to; the value is a state's life.
type lifeKey struct{ l *life }

// Value says of which states the function's context is.
func (c *handedOn) Value(key any) any {
	if key == (lifeKey{c.l}) {
		return c
	}
	return c.Context.Value(key)
}

// handed reports whether ctx is of a Go function that a script of the state has called.
func handed(ctx context.Context, l *life) bool { return ctx != nil && ctx.Value(lifeKey{l}) != nil }

// Close ends the state. Calls under way run to their end; later ones are ErrClosed. Closing again does nothing.
func (s *State) Close() { s.life.close() }

// Closed reports whether Close was called.
func (s *State) Closed() bool {
	s.life.mu.Lock()
	defer s.life.mu.Unlock()
	return s.life.closed
}

// Enter begins a use of the state that consists of several calls, between which no other goroutine gets it, and Leave
// ends it. It is ErrClosed after Close, and ErrBusy where another goroutine uses the state.
func Enter(ctx context.Context, s *State) error { return s.life.enter(ctx) }

// Leave ends what Enter began.
func Leave(s *State) { s.life.leave() }
