package luabind

import (
	"context"
	"errors"

	lua "github.com/yuin/gopher-lua"
)

// maxProtected bounds how deep Go and Lua may call each other, as Lua 5.1's LUAI_MAXCCALLS does: each level takes Go
// stack, which the limit on Lua's own calls does not see.
const maxProtected = 190

// maxNested bounds how many Go functions may be under way in each other, as where string.gsub calls a function that
// calls string.gsub. An error passes each of them by a panic of its own, on top of those before it: the time that takes
// grows with the square of their number.
const maxNested = 200

// errTooDeep is the error past these bounds.
var errTooDeep = errors.New("stack overflow: Go and Lua functions call each other too deeply")

// protection is one protected call under way.
type protection struct {
	thread  *lua.LState
	caller  *lua.LState
	message lua.LValue // the message handler: nil for none
}

// protect calls a Lua function and catches its errors: the error value, or nil. It runs on a thread of its own,
// because gopher-lua closes the upvalues of every frame of a thread when an error is raised, also of frames that go
// on: variables that closures share with the function around a pcall would come apart. A spare thread has no frames
// but those that end.
func (s *State) protect(message lua.LValue, fn lua.LValue, args ...lua.LValue) (out []lua.LValue, failure error) {
	caller := s.L
	if len(s.protected) == maxProtected {
		s.raise(errTooDeep)
	}
	th := s.spare()
	setContext(th, caller.Context())
	s.protected = append(s.protected, protection{th, caller, message})
	s.L = th
	defer func() {
		s.L = caller
		s.protected = s.protected[:len(s.protected)-1]
		th.SetTop(0)
		s.spares = append(s.spares, th)
	}()
	th.Push(fn)
	for _, a := range args {
		th.Push(a)
	}
	if err := th.PCall(len(args), lua.MultRet, s.handler); err != nil {
		return nil, err
	}
	for i := 1; i <= th.GetTop(); i++ {
		out = append(out, th.Get(i))
	}
	return out, nil
}

// spare is a thread without frames.
func (s *State) spare() *lua.LState {
	if n := len(s.spares); n > 0 {
		th := s.spares[n-1]
		s.spares = s.spares[:n-1]
		return th
	}
	return s.newThread()
}

// newThread makes a thread that is no child of the running context, which would keep it.
func (s *State) newThread() *lua.LState {
	ctx := s.L.Context()
	setContext(s.L, nil)
	th, _ := s.L.NewThread()
	setContext(s.L, ctx)
	return th
}

func setContext(L *lua.LState, ctx context.Context) {
	if ctx == nil {
		L.RemoveContext()
	} else {
		L.SetContext(ctx)
	}
}

// handle is the message handler of every protected call. It runs while the frames of the failed call are still there:
// it asks the script's handler, and then makes closures that outlive those frames keep the values of their variables,
// which gopher-lua does not do where a handler is given.
func (s *State) handle(L *lua.LState) int {
	v := explain(L, L.Get(1))
	if n := len(s.protected); n > 0 && s.protected[n-1].thread == L && s.protected[n-1].message != nil {
		if _, exits := unwrap[*exitRequest](v); !exits {
			L.Push(s.protected[n-1].message)
			L.Push(v)
			L.Call(1, 1)
			v = L.Get(-1)
			L.Pop(1)
		}
	}
	closeUpvalues(L)
	L.Push(v)
	return 1
}

// closeUpvalues closes the upvalues of all frames of a thread: that is what raising an error does.
func closeUpvalues(L *lua.LState) {
	top := L.GetTop()
	defer func() {
		if _, ok := recover().(*lua.ApiError); ok {
			L.SetTop(top)
		}
	}()
	L.Error(lua.LNil, 0)
}

// errorValue is the Lua value of an error that protect gave.
func errorValue(err error) lua.LValue {
	var api *lua.ApiError
	if errors.As(err, &api) && api.Object != nil {
		return api.Object
	}
	return lua.LString(err.Error())
}

// openProtected replaces pcall, xpcall and the functions of coroutines.
func (s *State) openProtected() {
	L := s.L
	s.handler = s.fn(s.handle)
	finish := func(L *lua.LState, out []lua.LValue, err error) int {
		if err != nil {
			v := errorValue(err)
			if _, exits := unwrap[*exitRequest](v); exits {
				L.Error(v, 0)
			}
			L.Push(lua.LFalse)
			L.Push(v)
			return 2
		}
		L.Push(lua.LTrue)
		for _, v := range out {
			L.Push(v)
		}
		return 1 + len(out)
	}
	L.SetGlobal("pcall", s.fn(func(L *lua.LState) int {
		L.CheckAny(1)
		args := stackArgs(L)
		out, err := s.protect(nil, args[0], args[1:]...)
		return finish(L, out, err)
	}))
	L.SetGlobal("xpcall", s.fn(func(L *lua.LState) int {
		L.CheckAny(2)
		args := stackArgs(L)
		out, err := s.protect(args[1], args[0], args[2:]...)
		return finish(L, out, err)
	}))
	L.SetGlobal("error", s.fn(func(L *lua.LState) int {
		L.Error(L.Get(1), L.OptInt(2, 1))
		return 0
	}))
	if lib, ok := L.GetGlobal(lua.DebugLibName).(*lua.LTable); ok {
		s.method(lib, "traceback", func(L *lua.LState) int {
			text := s.stack()
			if L.GetTop() > 0 && L.Get(1) != lua.LNil {
				text = textOf(L, L.Get(1)) + "\n" + text
			}
			L.Push(lua.LString(text))
			return 1
		})
	}
	lib, ok := L.GetGlobal(lua.CoroutineLibName).(*lua.LTable)
	if !ok {
		return
	}
	s.openCoroutines(lib)
}

// openCoroutines makes coroutines live across calls from the host: a coroutine runs under the context of the call that
// resumes it, not under that of the call that made it.
func (s *State) openCoroutines(lib *lua.LTable) {
	resume, yield := lib.RawGetString("resume"), lib.RawGetString("yield")
	create := lib.RawGetString("create")
	newCoroutine := func(L *lua.LState) *lua.LState {
		fn := L.CheckFunction(1)
		ctx := L.Context()
		setContext(L, nil)
		defer setContext(L, ctx)
		L.Push(create)
		L.Push(fn)
		L.Call(1, 1)
		th := L.CheckThread(-1)
		L.Pop(1)
		return th
	}
	resumed := func(L *lua.LState, th *lua.LState, args []lua.LValue) []lua.LValue {
		if len(s.protected) >= maxProtected || s.resumes >= maxProtected {
			s.raise(errors.New("stack overflow: coroutines resume each other too deeply"))
		}
		s.resumes++
		defer func() { s.resumes-- }()
		setContext(th, L.Context())
		top := L.GetTop()
		L.Push(resume)
		L.Push(th)
		for _, a := range args {
			L.Push(a)
		}
		L.Call(1+len(args), lua.MultRet)
		var out []lua.LValue
		for i := top + 1; i <= L.GetTop(); i++ {
			out = append(out, L.Get(i))
		}
		L.SetTop(top)
		if len(out) == 2 && out[0] == lua.LFalse {
			if _, exits := unwrap[*exitRequest](out[1]); exits {
				L.Error(out[1], 0)
			}
		}
		return out
	}
	push := func(L *lua.LState, vs []lua.LValue) int {
		for _, v := range vs {
			L.Push(v)
		}
		return len(vs)
	}
	s.method(lib, "create", func(L *lua.LState) int {
		L.Push(newCoroutine(L))
		return 1
	})
	s.method(lib, "resume", func(L *lua.LState) int {
		th := L.CheckThread(1)
		return push(L, resumed(L, th, stackArgs(L)[1:]))
	})
	s.method(lib, "wrap", func(L *lua.LState) int {
		th := newCoroutine(L)
		L.Push(s.fn(func(L *lua.LState) int {
			out := resumed(L, th, stackArgs(L))
			if out[0] == lua.LFalse {
				L.Error(out[1], 0)
			}
			return push(L, out[1:])
		}))
		return 1
	})
	// A yield below a Go function would return into the middle of it: an error, as in Lua 5.1.
	plain := yield.(*lua.LFunction).GFunction
	lib.RawSetString("yield", s.L.NewFunction(func(L *lua.LState) int {
		for level := 1; ; level++ {
			dbg, ok := L.GetStack(level)
			if !ok {
				return plain(L)
			}
			if _, err := L.GetInfo("S", dbg, lua.LNil); err == nil && dbg.What == "G" {
				L.RaiseError("attempt to yield across a function that is not Lua's")
			}
		}
	}))
}
