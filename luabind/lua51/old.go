package lua51

import (
	"math"

	lua "github.com/yuin/gopher-lua"
)

// openOld makes the functions of Lua 5.0 that 5.1 still has and gopher-lua lacks.
func (s *State) openOld() {
	lib := s.library(lua.TabLibName)
	lib.RawSetString("foreach", s.Through(func(L *lua.LState) int {
		t, f := L.CheckTable(1), L.CheckFunction(2)
		s.Unfold(t)
		for k, v := t.Next(lua.LNil); k != lua.LNil; k, v = t.Next(k) {
			if found(L, f, k, v) {
				return 1
			}
			L.SetTop(2)
		}
		return 0
	}))
	lib.RawSetString("foreachi", s.Through(func(L *lua.LState) int {
		t, f := L.CheckTable(1), L.CheckFunction(2)
		n := t.Len()
		for i := 1; i <= n; i++ {
			if found(L, f, lua.LNumber(i), t.RawGetInt(i)) {
				return 1
			}
			L.SetTop(2)
		}
		return 0
	}))
	SetCollector(s, s.L.GetGlobal("collectgarbage").(*lua.LFunction).GFunction)
}

// found calls a function with a key and a value, and reports whether its result, which is on top then, is not nil.
func found(L *lua.LState, f *lua.LFunction, k, v lua.LValue) bool {
	L.Push(f)
	L.Push(k)
	L.Push(v)
	L.Call(2, 1)
	return L.Get(-1) != lua.LNil
}

// SetCollector sets collectgarbage, and gcinfo, which gives the whole KiB that it counts.
func SetCollector(s *State, collect lua.LGFunction) {
	counting := s.Func(collect)
	s.L.SetGlobal("collectgarbage", counting)
	s.L.SetGlobal("gcinfo", s.Func(func(L *lua.LState) int {
		L.Push(L.Get(lua.UpvalueIndex(1)))
		L.Push(lua.LString("count"))
		L.Call(1, 1)
		n, _ := L.Get(-1).(lua.LNumber)
		L.Push(lua.LNumber(math.Floor(float64(n))))
		return 1
	}, counting))
}
