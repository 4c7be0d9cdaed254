package lua51

import (
	"context"

	lua "github.com/yuin/gopher-lua"
)

// YieldAcross begins the message of yields that cannot be.
const YieldAcross = "attempt to yield across"

// coroutines are the functions of the library. gopher-lua's resume does not look whether a coroutine can be resumed,
// and leaves stale registers where fewer values come back than a call wants; so it is asked only to go on with the
// frames of a coroutine that has yielded.
//
// A coroutine that has not begun has no frame, and its body in its first register. One that has ended is Dead. One that
// has failed is too, and keeps its frames, which debug.traceback shows.
type coroutines struct {
	s    *State
	goOn lua.LGFunction // gopher-lua's resume
}

// openCoroutines replaces the library of coroutines. A coroutine outlives the call from the host that made it: it runs
// under the context of the call that resumes it.
func (s *State) openCoroutines() {
	lib := s.library(lua.CoroutineLibName)
	c := &coroutines{s, lib.RawGetString("resume").(*lua.LFunction).GFunction}
	s.Method(lib, "create", func(L *lua.LState) int {
		L.Push(c.create(L))
		return 1
	})
	s.Method(lib, "wrap", func(L *lua.LState) int {
		L.Push(s.Through(c.wrapped, c.create(L)))
		return 1
	})
	lib.RawSetString("resume", s.Through(func(L *lua.LState) int {
		checkThread(L)
		failure := c.resume(L)
		if failure == nil {
			return L.GetTop() - 1
		}
		L.Push(lua.LFalse)
		L.Push(failure)
		return 2
	}))
	s.Method(lib, "status", func(L *lua.LState) int {
		L.Push(lua.LString(c.status(checkThread(L))))
		return 1
	})
	s.Method(lib, "running", func(L *lua.LState) int {
		if co := s.coroutine(); co != nil {
			L.Push(co)
		} else {
			L.Push(lua.LNil)
		}
		return 1
	})
	lib.RawSetString("yield", s.L.NewFunction(c.yield))
}

// checkThread is the first argument, which has to be a coroutine.
func checkThread(L *lua.LState) *lua.LState {
	th := L.ToThread(1)
	if th == nil {
		L.ArgError(1, "coroutine expected")
	}
	return th
}

// create is a coroutine whose body is the first argument.
func (c *coroutines) create(L *lua.LState) *lua.LState {
	body, ok := L.Get(1).(*lua.LFunction)
	if !ok || body.IsG {
		L.ArgError(1, "Lua function expected")
	}
	c.s.Charge(coroutineBytes)
	th := c.s.newThread()
	th.Push(body)
	return th
}

// wrapped is the function that wrap gives: its upvalue is the coroutine.
func (c *coroutines) wrapped(L *lua.LState) int {
	L.Insert(L.ToThread(lua.UpvalueIndex(1)), 1)
	failure := c.resume(L)
	switch text := failure.(type) {
	case nil:
		return L.GetTop() - 2
	case lua.LString:
		failure = lua.LString(placeOfCaller(L)) + text
	case lua.LNumber:
		failure = lua.LString(placeOfCaller(L) + numberText(text))
	}
	c.s.throw(L, failure)
	return 0
}

// status is what coroutine.status says.
func (c *coroutines) status(th *lua.LState) string {
	if th.Dead {
		return "dead"
	}
	if th == c.s.coroutine() {
		return "running"
	}
	for _, a := range c.s.running {
		if a.thread == th {
			return "normal"
		}
	}
	return "suspended"
}

// resume resumes the coroutine that is the first argument of the running function, with the others. Then true and what
// the coroutine yields or returns stand behind it, or there is a failure. A call of os.exit is none: it passes.
func (c *coroutines) resume(L *lua.LState) (failure lua.LValue) {
	th := L.ToThread(1)
	if status := c.status(th); status != "suspended" {
		return lua.LString("cannot resume " + status + " coroutine")
	}
	hooked := keptHook(th)
	if !c.s.enter(activation{thread: th, coroutine: true}) {
		return lua.LString(tooDeep)
	}
	defer c.s.leave()
	if hooked != nil {
		c.s.setHook(hooked)
	}
	failure = c.run(L, th)
	if hooked = keptHook(th); hooked != nil && !th.Dead {
		th.SetContext(&hook{context.Background(), hooked, th, current(th)})
	} else {
		SetContext(th, nil) // which it would keep
	}
	if failure == nil && !th.Dead {
		return nil
	}
	clearRegisters(th)
	if failure == nil {
		return nil
	}
	th.Dead, th.Parent, L.G.CurrentThread = true, nil, L
	if _, exits := ExitStatus(failure); exits {
		L.Error(failure, 0)
	}
	return failure
}

// run runs a coroutine until it yields, ends or fails.
func (c *coroutines) run(L, th *lua.LState) (failure lua.LValue) {
	defer func() {
		if p := recover(); p != nil {
			failure = c.s.failure(th, p)
		}
	}()
	running, begun := frameIn(current(th))
	switch {
	case begun:
		if n := running.resultsWanted(); n != lua.MultRet {
			L.SetTop(1 + n)
		}
		c.goOn(L)
	case th.GetTop() == 0: // its body has ended with "return coroutine.yield()", and returns what that gives
		L.Insert(lua.LTrue, 2)
		th.Dead = true
	default:
		th.Panic = fail
		th.Parent, L.G.CurrentThread = L, th
		n := L.GetTop() - 1
		L.XMoveTo(th, n)
		th.Call(n, lua.MultRet)
	}
	if L.Get(2) == lua.LFalse { // gopher-lua has caught a panic that is no Lua error
		return c.s.failure(th, L.Get(3).String())
	}
	return nil
}

// fail is how Lua errors leave a coroutine: gopher-lua would catch them, and take the frame on top away, if the
// coroutine had a parent.
func fail(L *lua.LState) {
	L.Parent = nil
	panic(&lua.ApiError{Type: lua.ApiErrorRun, Object: L.Get(-1)})
}

// yield is coroutine.yield.
func (c *coroutines) yield(L *lua.LState) int {
	if !c.yields(L) {
		c.s.throw(L, lua.LString(YieldAcross+" metamethod/C-call boundary"))
	}
	return -1
}

// yields reports whether coroutine.yield, which runs, can suspend its thread.
//
// A yield gives up the frames of Go between itself and the resume; frames of Lua stay, and the next resume goes on with
// them. So a yield is possible if every frame below it is Lua's and has called the next one by a call instruction.
// Metamethods and iterators of generic loops run in a loop of Go's, which the yield leaves: gopher-lua would go on in
// the wrong place.
func (c *coroutines) yields(L *lua.LState) bool {
	n := len(c.s.running)
	if n == 0 || c.s.hooked || c.s.running[n-1].thread != L || !c.s.running[n-1].coroutine {
		return false
	}
	yield := frame{current(L).Elem()}
	for f, ok := yield.parent(); ok; f, ok = f.parent() {
		if f.isGo() {
			return false
		}
		switch op, _, _, _ := f.instruction(); op {
		case lua.OP_CALL, lua.OP_TAILCALL:
		default:
			return false
		}
	}
	return true
}
