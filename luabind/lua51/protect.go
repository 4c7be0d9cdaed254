package lua51

import (
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

// Protect calls a Lua function and catches its errors: the error value, or nil. It runs on a thread of its own,
// because gopher-lua closes the upvalues of every frame of a thread when an error is raised, also of frames that go
// on: variables that closures share with the function around a pcall would come apart. A spare thread has no frames
// but those that end.
func (s *State) Protect(message lua.LValue, fn lua.LValue, args ...lua.LValue) (out []lua.LValue, failure error) {
	caller := s.L
	if len(s.protected) == maxProtected {
		s.raise(errTooDeep)
	}
	th := s.spare()
	SetContext(th, caller.Context())
	s.protected = append(s.protected, protection{th, caller, message})
	s.L = th
	defer func() {
		s.L = caller
		last := len(s.protected) - 1
		s.protected[last] = protection{}
		s.protected = s.protected[:last]
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
	SetContext(s.L, nil)
	th, _ := s.L.NewThread()
	SetContext(s.L, ctx)
	return th
}

// handle is the message handler of every protected call. It runs while the frames of the failed call are still there.
// It asks the script's handler, and then closes the upvalues of those frames, so that closures which outlive them keep
// their variables: gopher-lua does not do that where there is a handler.
func (s *State) handle(L *lua.LState) int {
	v := L.Get(1)
	if s.opt.Explain != nil {
		v = s.opt.Explain(L, v)
	}
	over := L.Context() != nil && L.Context().Err() != nil // a handler would fail at once, and its traceback takes long
	if n := len(s.protected); !over && n > 0 && s.protected[n-1].thread == L && s.protected[n-1].message != nil {
		if _, exits := ExitStatus(v); !exits {
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

// errorValue is the Lua value of an error that Protect gave.
func errorValue(err error) lua.LValue {
	var api *lua.ApiError
	if errors.As(err, &api) && api.Object != nil {
		return api.Object
	}
	return lua.LString(err.Error())
}

// assert is Lua's assert: gopher-lua's takes no number as the message, and needs no value.
func assert(L *lua.LState) int {
	L.CheckAny(1)
	if lua.LVAsBool(L.Get(1)) {
		return L.GetTop()
	}
	message := "assertion failed!"
	if L.Get(2) != lua.LNil {
		message = L.CheckString(2)
	}
	L.RaiseError("%s", message)
	return 0
}

// openProtected replaces pcall, xpcall, error, assert and debug.traceback.
func (s *State) openProtected() {
	L := s.L
	s.handler = s.Func(s.handle)
	finish := func(L *lua.LState, out []lua.LValue, err error) int {
		if err != nil {
			v := errorValue(err)
			if _, exits := ExitStatus(v); exits {
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
	L.SetGlobal("pcall", s.Through(func(L *lua.LState) int {
		L.CheckAny(1)
		args := Args(L)
		out, err := s.Protect(nil, args[0], args[1:]...)
		return finish(L, out, err)
	}))
	L.SetGlobal("xpcall", s.Through(func(L *lua.LState) int {
		L.CheckAny(2)
		args := Args(L)
		out, err := s.Protect(args[1], args[0], args[2:]...)
		return finish(L, out, err)
	}))
	L.SetGlobal("error", s.Func(func(L *lua.LState) int {
		L.Error(L.Get(1), L.OptInt(2, 1))
		return 0
	}))
	L.SetGlobal("assert", L.NewFunction(assert))
	s.Method(s.library(lua.DebugLibName), "traceback", func(L *lua.LState) int {
		text := s.Traceback()
		if L.GetTop() > 0 && L.Get(1) != lua.LNil {
			text = Text(L, L.Get(1)) + "\n" + text
		}
		L.Push(lua.LString(text))
		return 1
	})
}
