package luabind

import (
	"runtime"

	lua "github.com/yuin/gopher-lua"
)

// openCollector replaces collectgarbage, of which gopher-lua knows no option: "collect" collects, "count" gives the
// KiB that Go's heap holds (arrays' bytes are mx.get_active_memory's), "step" collects too and says that a cycle ended.
// The others belong to a collector that is not here, and are accepted.
func (s *State) openCollector() {
	s.L.SetGlobal("collectgarbage", s.Func(func(L *lua.LState) int {
		result := lua.LValue(lua.LNumber(0))
		switch option := L.OptString(1, "collect"); option {
		case "collect":
			runtime.GC()
		case "step":
			runtime.GC()
			result = lua.LTrue
		case "count":
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			result = lua.LNumber(float64(m.HeapAlloc) / 1024)
		case "stop", "restart", "setpause", "setstepmul":
		default:
			L.ArgError(1, "invalid option '"+option+"'")
		}
		L.Push(result)
		return 1
	}))
}
