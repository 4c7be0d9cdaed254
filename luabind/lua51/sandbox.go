package lua51

import lua "github.com/yuin/gopher-lua"

// openSandbox takes away what scripts of strangers should not have: the debug library, which reads and changes any
// function's variables and the metatables of strings; loadlib, search paths and string.dump, which only say that there
// are files and bytecode; module, which writes globals; and what collectgarbage would do to
// the whole program, and tell of it. Files, processes and the environment come with Libraries only.
func openSandbox(s *State) {
	if !s.opt.Sandbox {
		return
	}
	for _, name := range []string{"debug", "module", "_printregs", "newproxy"} {
		s.L.SetGlobal(name, lua.LNil)
	}
	for lib, names := range map[string][]string{
		"package": {"loadlib", "path", "cpath", "seeall", "config"}, "string": {"dump"},
	} {
		for _, name := range names {
			s.library(lib).RawSetString(name, lua.LNil)
		}
	}
	if loaded, ok := s.library("package").RawGetString("loaded").(*lua.LTable); ok {
		loaded.RawSetString("debug", lua.LNil)
	}
	SetCollector(s, func() {}, func() int64 { return 0 })
}
