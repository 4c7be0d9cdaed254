package luabind

import (
	"runtime"

	"github.com/mlxlua/mlxlua/luabind/lua51"
	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/tensor"
)

// openCollector has collectgarbage collect what arrays hold too, and count it. In a sandbox it is about the script's
// own values and arrays, and no work for Go's collector, which would be all states'.
func (s *State) openCollector() {
	if s.opt.Sandbox {
		lua51.SetCollector(s.State, func() { s.looks.now() }, func() int64 {
			s.looks.now()
			return s.InUse() + s.looks.holder.Account().Used()
		})
		return
	}
	lua51.SetCollector(s.State, s.looks.collect, func() int64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		bytes := int64(m.HeapAlloc)
		if dev := defaultDevice(); dev != nil {
			bytes += dev.Memory().Active
		}
		return bytes
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
