package lua51

import (
	"errors"

	lua "github.com/yuin/gopher-lua"
)

// openCoroutines makes coroutines outlive the call from the host that made them: a coroutine runs under the context of
// the call that resumes it.
func (s *State) openCoroutines() {
	lib := s.library(lua.CoroutineLibName)
	resume, yield := lib.RawGetString("resume"), lib.RawGetString("yield")
	create := lib.RawGetString("create")
	newCoroutine := func(L *lua.LState) *lua.LState {
		fn := L.CheckFunction(1)
		s.Charge(coroutineBytes)
		ctx := L.Context()
		SetContext(L, nil)
		defer SetContext(L, ctx)
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
		if returned(th) {
			th.Dead = true
			return append([]lua.LValue{lua.LTrue}, args...)
		}
		SetContext(th, L.Context())
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
			if _, exits := ExitStatus(out[1]); exits {
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
	s.Method(lib, "create", func(L *lua.LState) int {
		L.Push(newCoroutine(L))
		return 1
	})
	lib.RawSetString("resume", s.Through(func(L *lua.LState) int {
		th := L.CheckThread(1)
		return push(L, resumed(L, th, Args(L)[1:]))
	}))
	s.Method(lib, "wrap", func(L *lua.LState) int {
		L.Push(s.Through(func(L *lua.LState) int {
			out := resumed(L, L.ToThread(lua.UpvalueIndex(1)), Args(L))
			if out[0] == lua.LFalse {
				L.Error(out[1], 0)
			}
			return push(L, out[1:])
		}, newCoroutine(L)))
		return 1
	})
	plain := yield.(*lua.LFunction).GFunction
	lib.RawSetString("yield", s.L.NewFunction(func(L *lua.LState) int {
		if err := unyielding(s, L); err != nil {
			L.RaiseError("%s", err.Error())
		}
		return plain(L)
	}))
}

// returned reports whether the coroutine's body ended with "return coroutine.yield()", which leaves no frame to go on
// with: what the yield gives is what the body returns.
func returned(th *lua.LState) bool {
	_, runs := th.GetStack(0)
	_, begins := th.GetStack(-1)
	return !th.Dead && !runs && !begins
}
