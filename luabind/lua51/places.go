package lua51

import (
	"fmt"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// Frames visits the Lua functions under way, innermost first, until visit says no: those of the running thread from a
// level on (0 is the function that runs: in Go's code, the Go function itself), and those of the threads that wait
// for it. what is GetInfo's: "S" for the source, "l" for the line, "n" for the name.
func (s *State) Frames(level int, what string, visit func(dbg *lua.Debug) bool) {
	outer := len(s.protected)
	for L := s.L; L != nil; level = 0 {
		for ; ; level++ {
			dbg, ok := L.GetStack(level)
			if !ok {
				break
			}
			if _, err := L.GetInfo(what, dbg, lua.LNil); err == nil && dbg.CurrentLine > 0 && !visit(dbg) {
				return
			}
		}
		if L.Parent != nil {
			L = L.Parent
			continue
		}
		for outer--; outer >= 0 && s.protected[outer].thread != L; outer-- {
			continue
		}
		if outer < 0 {
			return
		}
		L = s.protected[outer].caller
	}
}

// Traceback is Lua's traceback of the running call.
func (s *State) Traceback() string {
	const most = 40 // lines: the rest of a runaway recursion says nothing
	var b strings.Builder
	b.WriteString("stack traceback:")
	lines := 0
	s.Frames(0, "Sln", func(dbg *lua.Debug) bool {
		if lines++; lines > most {
			b.WriteString("\n\t...")
			return false
		}
		fmt.Fprintf(&b, "\n\t%s:%d: in ", dbg.Source, dbg.CurrentLine)
		switch {
		case dbg.LineDefined == 0:
			b.WriteString("main chunk")
		case dbg.Name != "" && dbg.Name != "main chunk": // which is what the first frame of any thread is called
			b.WriteString("function '" + dbg.Name + "'")
		default:
			b.WriteString("a function")
		}
		return true
	})
	return b.String()
}
