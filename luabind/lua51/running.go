package lua51

import (
	lua "github.com/yuin/gopher-lua"
)

// Lua 5.1 bounds how deep C and Lua functions call each other, by LUAI_MAXCCALLS. So do these, for Go and Lua: each
// level takes Go stack, which the limit on Lua's own calls does not see, and Go ends a process whose stack is full.
const (
	// maxNested bounds how many Go functions may be under way in each other, pcall and coroutine.resume among them. An
	// error passes each of them by a panic of its own.
	maxNested = 200
	// maxWaiting bounds the frames of all threads that wait for others. Metamethods and iterators take Go stack without
	// a Go function, as many levels as a thread has frames: all of these threads together may not have as many each.
	maxWaiting = 5 * maxCalls
)

// tooDeep is Lua 5.1's error past these bounds.
const tooDeep = "C stack overflow"

// threads are those of a state of gopher-lua.
type threads struct {
	L *lua.LState // the thread that runs: the main one, that of a protected call, or a coroutine's

	running []activation   // the threads under way but the main one, outermost first
	spares  []*lua.LState  // threads for the next protected calls
	bottom  *lua.LFunction // of the thread of every protected call
	nested  int            // Go functions under way, in each other
	hooked  bool           // the function of a hook runs, within an instruction
	exact   bool           // the error that is being raised has the value that it was given
}

// activation is a thread under way: a coroutine, or the thread of a protected call.
type activation struct {
	thread    *lua.LState
	caller    *lua.LState // the thread that waits for it
	coroutine bool
	message   lua.LValue // the message handler of a protected call; nil: none
	waiting   int        // frames of the caller and of all that wait for it
}

// enter has a thread run, if it may: the threads under way must not be too deep in each other.
func (s *threads) enter(a activation) bool {
	a.caller = s.L
	a.waiting = frameCount(s.L)
	if n := len(s.running); n > 0 {
		a.waiting += s.running[n-1].waiting
	}
	if s.nested >= maxNested || len(s.running) >= maxNested || a.waiting > maxWaiting {
		return false
	}
	ctx := s.L.Context()
	if a.coroutine || len(s.running) == 0 {
		ctx = withoutHook(ctx) // which is of another coroutine, or of an earlier call
	}
	SetContext(a.thread, ctx)
	s.running = append(s.running, a)
	s.L = a.thread
	return true
}

// leave has the caller of the running thread go on.
func (s *threads) leave() {
	last := len(s.running) - 1
	s.L = s.running[last].caller
	s.running[last] = activation{}
	s.running = s.running[:last]
}

// Idle reports whether no call of a Lua function is under way.
func (s *threads) Idle() bool { return len(s.running) == 0 }

// Threads appends the threads under way: the one that runs, and those that wait for it, in order.
func (s *threads) Threads(out []*lua.LState) []*lua.LState {
	out = append(out, s.L)
	for i := len(s.running) - 1; i >= 0; i-- {
		out = append(out, s.running[i].caller)
	}
	return out
}

// coroutine is the coroutine that runs, or nil in the main thread. A protected call in it has another thread.
func (s *threads) coroutine() *lua.LState {
	for i := len(s.running) - 1; i >= 0; i-- {
		if s.running[i].coroutine {
			return s.running[i].thread
		}
	}
	return nil
}

// spare is a thread without frames.
func (s *threads) spare() *lua.LState {
	if n := len(s.spares); n > 0 {
		th := s.spares[n-1]
		s.spares = s.spares[:n-1]
		return th
	}
	return s.newThread()
}

// newThread makes a thread that is no child of the running context, which would keep it.
func (s *threads) newThread() *lua.LState {
	ctx := s.L.Context()
	SetContext(s.L, nil)
	th, _ := s.L.NewThread()
	SetContext(s.L, ctx)
	return th
}
