package lua51

import (
	"runtime"

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
	SetCollector(s, runtime.GC, func() int64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	})
}

// found calls a function with a key and a value, and reports whether its result, which is on top then, is not nil.
func found(L *lua.LState, f *lua.LFunction, k, v lua.LValue) bool {
	L.Push(f)
	L.Push(k)
	L.Push(v)
	L.Call(2, 1)
	return L.Get(-1) != lua.LNil
}

// SetCollector sets collectgarbage, by what collects and what tells the bytes in use, and gcinfo, which gives the whole
// KiB. The options that are about the steps of a collector of Lua's are kept, and change nothing.
func SetCollector(s *State, collect func(), bytes func() int64) {
	kept := map[string]int{"setpause": 200, "setstepmul": 200} // percent
	option := optionArg("stop", "restart", "collect", "count", "step", "setpause", "setstepmul")
	s.L.SetGlobal("collectgarbage", s.Func(func(L *lua.LState) int {
		result := lua.LValue(lua.LNumber(0))
		n := optional(L, 2, integerArg, 0)
		switch what := optional(L, 1, option, "collect"); what {
		case "collect":
			collect()
		case "step": // which ends a cycle
			collect()
			result = lua.LTrue
		case "count":
			result = lua.LNumber(float64(bytes()) / 1024)
		case "setpause", "setstepmul":
			result = lua.LNumber(kept[what])
			kept[what] = n
		}
		L.Push(result)
		return 1
	}))
	s.L.SetGlobal("gcinfo", s.Func(func(L *lua.LState) int {
		L.Push(lua.LNumber(bytes() / 1024))
		return 1
	}))
}
