package luabind

import lua "github.com/yuin/gopher-lua"

// shared are the functions of mx that change what all states of the program share.
var shared = []struct{ module, name string }{
	{"", "set_memory_limit"}, {"", "set_cache_limit"}, {"", "clear_cache"}, {"", "reset_peak_memory"}, {"", "check_nan"},
	{"", "timeline"}, {"", "disable_compile"}, {"", "enable_compile"}, {"metal", "validate"}, {"metal", "start_capture"},
	{"metal", "stop_capture"},
}

// refuseShared has the functions that change the process refuse their calls.
func refuseShared(s *State) {
	for _, f := range shared {
		t := s.mx.LTable
		if f.module != "" {
			t = s.mx.inner[f.module]
		}
		name := f.name
		t.RawSetString(name, s.Func(func(L *lua.LState) int {
			L.RaiseError("[%s] a script in a sandbox cannot change what all scripts share", name)
			return 0
		}))
	}
}
