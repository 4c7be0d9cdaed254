package lua51

import (
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// Line is the innermost line that is under way in a chunk whose name does not begin with a prefix: of the running
// thread, or of those that wait for it. Without one it is 0. Functions that have ended in a tail call have none.
func (s *State) Line(but string) (source string, line int) { return s.LineAbove(0, but) }

// LineAbove is Line without the innermost functions of Lua's, so many of them.
func (s *State) LineAbove(inner int, but string) (source string, line int) {
	s.luaFrames(func(_ *lua.LState, f frame, _ int) bool {
		if inner--; inner >= 0 {
			return true
		}
		proto := f.proto()
		if source = sourceOf(proto); !strings.HasPrefix(source, but) {
			line = f.lineIn(proto)
		}
		return line == 0
	})
	if line == 0 {
		source = ""
	}
	return source, line
}

// luaFrames visits the frames of Lua functions under way, innermost first, until visit says no: those of the running
// thread, and those of the threads that wait for it. level is the frame's number for GetStack.
func (s *State) luaFrames(visit func(L *lua.LState, f frame, level int) bool) {
	for _, L := range s.Threads(nil) {
		level := 0
		for f, ok := frameIn(current(L)); ok; f, ok = f.parent() {
			if !f.isGo() {
				if !visit(L, f, level) {
					return
				}
				level += f.tailCalls() // GetStack counts those that have ended, too
			}
			level++
		}
	}
}

// Traceback tells the Lua functions under way, innermost first, also those of the coroutines that wait for the running
// one.
func (s *State) Traceback() string {
	const most = 40 // lines: the rest of a runaway recursion says nothing
	var b strings.Builder
	b.WriteString("stack traceback:")
	lines := 0
	s.luaFrames(func(L *lua.LState, f frame, _ int) bool {
		l := level{L: L, frame: f}
		if l.line() < 0 {
			return true
		}
		if lines++; lines > most {
			b.WriteString("\n\t...")
			return false
		}
		b.WriteString("\n\t" + l.traceLine())
		return true
	})
	return b.String()
}
