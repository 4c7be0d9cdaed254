package luabind

import (
	"runtime"

	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/luabind/lua51"
	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/tensor"
)

// openCollector replaces collectgarbage, of which gopher-lua knows no option: "collect" collects, what arrays hold too;
// "count" gives the KiB that Go's heap and arrays hold; "step" collects and says that a cycle ended. The others belong
// to a collector that is not here, and are accepted.
func (s *State) openCollector() {
	lua51.SetCollector(s.State, func(L *lua.LState) int {
		result := lua.LValue(lua.LNumber(0))
		switch option := L.OptString(1, "collect"); option {
		case "collect":
			s.looks.collect()
		case "step":
			s.looks.collect()
			result = lua.LTrue
		case "count":
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			bytes := int64(m.HeapAlloc)
			if dev := defaultDevice(); dev != nil {
				bytes += dev.Memory().Active
			}
			result = lua.LNumber(float64(bytes) / 1024)
		case "stop", "restart", "setpause", "setstepmul":
		default:
			L.ArgError(1, "invalid option '"+option+"'")
		}
		L.Push(result)
		return 1
	})
}

// defaultDevice is the default device, or nil if none is open.
func defaultDevice() *metal.Device {
	dev, _ := tensor.MetalDevice(tensor.DefaultDevice())
	return dev
}

// collect gives back what nothing reaches: what a look finds, and what Go's collector does.
func (l *looks) collect() {
	l.now()
	if dev := defaultDevice(); dev != nil {
		dev.Collect(l.s.Context())
	} else {
		runtime.GC()
	}
}
