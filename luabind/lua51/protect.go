package lua51

import (
	"errors"
	"fmt"

	lua "github.com/yuin/gopher-lua"
)

// Protect calls a Lua function and catches its errors: the error value, or nil. It runs on a thread of its own,
// because gopher-lua closes the upvalues of every frame of a thread when an error is raised, also of frames that go
// on: variables that closures share with the function around a pcall would come apart. A spare thread has no frames
// but those that end.
//
// message is the message handler, nil for none. It is called while the frames of the failed call are still there, and
// for an error of its own again, as in Lua 5.1.
func (s *State) Protect(message lua.LValue, fn lua.LValue, args ...lua.LValue) (out []lua.LValue, failure error) {
	th := s.spare()
	if !s.enter(activation{thread: th, message: message}) {
		s.spares = append(s.spares, th)
		return nil, &lua.ApiError{Type: lua.ApiErrorRun, Object: lua.LString(tooDeep)}
	}
	defer func() {
		s.leave()
		th.SetTop(0)
		s.spares = append(s.spares, th)
	}()
	th.Push(s.bottom)
	th.Push(fn)
	for _, a := range args {
		th.Push(a)
	}
	if err := th.PCall(1+len(args), lua.MultRet, nil); err != nil {
		return nil, &lua.ApiError{Type: lua.ApiErrorRun, Object: errorValue(err)}
	}
	for i := 1; i <= th.GetTop(); i++ {
		out = append(out, th.Get(i))
	}
	return out, nil
}

// protectedCall is the bottom of each protected call: it calls its first argument with the others. It catches errors
// before gopher-lua's PCall, which takes the frames of the failed call away.
func (s *State) protectedCall(L *lua.LState) int {
	failure := s.attempt(L)
	if failure == nil {
		return L.GetTop()
	}
	over := L.Context() != nil && L.Context().Err() != nil // a handler would fail at once, and its traceback takes long
	_, exits := ExitStatus(failure)
	if message := s.running[len(s.running)-1].message; message != nil && !over && !exits {
		L.Push(failure) // where a look can see it
		out, err := s.Protect(message, message, failure)
		switch {
		case err != nil && errorValue(err) == lua.LString(tooDeep):
			failure = lua.LString("error in error handling")
		case err != nil:
			failure = errorValue(err)
		case len(out) == 0:
			failure = lua.LNil
		default:
			failure = out[0]
		}
	}
	panic(&lua.ApiError{Type: lua.ApiErrorRun, Object: failure, StackTrace: noTrace})
}

// noTrace stands for the traceback that PCall would make of each error that has none.
const noTrace = "(none)"

// attempt calls the function on the stack. Where it fails, its frames are left, and the error's value is returned.
func (s *State) attempt(L *lua.LState) (failure lua.LValue) {
	defer func() {
		if p := recover(); p != nil {
			failure = s.failure(L, p)
		}
	}()
	L.Call(L.GetTop()-1, lua.MultRet)
	return nil
}

// failure is the error value of a panic on a thread whose frames are still there.
func (s *State) failure(L *lua.LState, p any) lua.LValue {
	var v lua.LValue
	exact := s.exact
	s.exact = false
	if err, ok := p.(*lua.ApiError); ok {
		v = err.Object
		if text, ok := v.(lua.LString); ok && !exact {
			v = lua.LString(worded(s, L, string(text)))
		}
	} else {
		closeUpvalues(L) // as errors of Lua's have done
		v = lua.LString(place(L) + panicText(p))
	}
	if s.opt.Explain != nil {
		v = s.opt.Explain(L, v)
	}
	return v
}

// panicText says what a panic of gopher-lua's own means.
func panicText(p any) string {
	text := fmt.Sprint(p)
	if text == "lua callstack overflow" {
		return "stack overflow"
	}
	return "BUG: " + text
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

// Raised is the Lua value that an error of Protect's carries; nil: none.
func Raised(err error) lua.LValue {
	var api *lua.ApiError
	if errors.As(err, &api) {
		return api.Object
	}
	return nil
}

// errorValue is the Lua value of an error that Protect gave.
func errorValue(err error) lua.LValue {
	if v := Raised(err); v != nil {
		return v
	}
	return lua.LString(err.Error())
}

// assert is Lua's assert: gopher-lua's takes no number as the message, and needs no value.
func assert(s *State, L *lua.LState) int {
	L.CheckAny(1)
	if lua.LVAsBool(L.Get(1)) {
		return L.GetTop()
	}
	message := "assertion failed!"
	if L.Get(2) != lua.LNil {
		message = textArg(L, 2)
	}
	s.throw(L, lua.LString(placeOfCaller(L)+message))
	return 0
}

// openProtected replaces pcall, xpcall, error and assert.
func (s *State) openProtected() {
	L := s.L
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
	L.SetGlobal("error", s.Func(func(L *lua.LState) int { return raiseError(s, L) }))
	L.SetGlobal("assert", L.NewFunction(func(L *lua.LState) int { return assert(s, L) }))
}
