package luabind

import (
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// shared are the functions of mx that change what all states of the program share, or tell of what others have in it.
var shared = []string{
	"check_nan", "clear_cache", "clear_streams", "disable_compile", "enable_compile", "memory.live", "metal.clear_cache",
	"metal.reset_peak_memory", "metal.set_cache_limit", "metal.set_memory_limit", "metal.start_capture",
	"metal.stop_capture", "metal.validate", "new_stream", "new_thread_local_stream", "new_thread_unsafe_stream",
	"profile", "reset_peak_memory", "set_cache_limit", "set_memory_limit", "set_wired_limit", "timeline",
}

// refuseShared has the functions that change the process refuse their calls.
func refuseShared(s *State) {
	for _, full := range shared {
		f := s.mx.funcs[full]
		if f == nil {
			panic("BUG: there is no function mx." + full)
		}
		refuse := s.Func(func(L *lua.LState) int {
			L.RaiseError("[%s] a script in a sandbox cannot change or see what all scripts share", full)
			return 0
		})
		last := full[strings.LastIndexByte(full, '.')+1:]
		s.mx.within(full).RawSetString(last, refuse)
	}
}
