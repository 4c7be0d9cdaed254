package lua51

import (
	"fmt"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// level is one of a coroutine's calls under way, or a trace of one that has ended in a tail call.
type level struct {
	L     *lua.LState // the thread that has the frame: a protected call has one of its own
	frame frame
	no    int  // the frame's number for GetStack
	tail  bool // the function is gone
	yield bool // the function is coroutine.yield, which the frame has called and whose frame is gone
}

// levels visits the levels of a coroutine, innermost first, until visit says no; nil: of the one that runs, of which
// level 0 is the running function. A protected call is a level, that of pcall; below it are those of the thread that
// waits for it.
func (s *threads) levels(co *lua.LState, visit func(l level) bool) {
	last := len(s.running) - 1 // of the coroutine's activations
	if co != nil && co != s.coroutine() {
		for last >= 0 && s.running[last].thread != co {
			last--
		}
		if last < 0 {
			threadLevels(co, false, true, visit)
			return
		}
		for last+1 < len(s.running) && !s.running[last+1].coroutine {
			last++
		}
	}
	L := s.L
	if last+1 < len(s.running) {
		L = s.running[last+1].caller
	}
	for ; ; last-- {
		bottom := last >= 0 && !s.running[last].coroutine
		if !threadLevels(L, bottom, false, visit) || !bottom {
			return
		}
		L = s.running[last].caller
	}
}

// threadLevels visits the levels of a thread, without the bottom of a protected call where it has one. It reports
// whether visit has always said yes. A coroutine that waits has called coroutine.yield, if it has begun.
func threadLevels(L *lua.LState, bottom, waits bool, visit func(l level) bool) bool {
	no := 0
	for f, ok := frameIn(current(L)); ok && !(bottom && f.depth() == 0); f, ok = f.parent() {
		if waits && no == 0 && !L.Dead && !f.isGo() && !visit(level{L: L, frame: f, yield: true}) {
			return false
		}
		if !visit(level{L: L, frame: f, no: no}) {
			return false
		}
		no++
		if f.isGo() {
			continue
		}
		for range f.tailCalls() {
			if !visit(level{L: L, frame: f, no: no, tail: true}) {
				return false
			}
			no++
		}
	}
	return true
}

// level is a level of a coroutine; false: there are fewer.
func (s *threads) level(co *lua.LState, n int) (found level, ok bool) {
	if n < 0 { // as in Lua 5.1
		return level{tail: true}, true
	}
	s.levels(co, func(l level) bool {
		found, ok = l, n == 0
		n--
		return !ok
	})
	return found, ok
}

// where is how an error message begins that tells where a level is: "" for a function of Go's, or one that is gone.
func (s *threads) where(n int) string {
	if l, ok := s.level(nil, n); ok && !l.tail {
		return l.frame.place()
	}
	return ""
}

// function is the level's function, where it has a frame; nil: it has none.
func (l level) function() *lua.LFunction {
	if l.tail || l.yield {
		return nil
	}
	return functionAt(l.L, l.no)
}

// isGo reports whether the level's function is Go's.
func (l level) isGo() bool { return l.yield || !l.tail && l.frame.isGo() }

// line is the line that the level runs; -1: none is known.
func (l level) line() int {
	if l.tail || l.isGo() {
		return -1
	}
	if line := l.frame.lineIn(l.frame.proto()); line > 0 {
		return line
	}
	return -1
}

// calledAs is what the level's function was called.
func (l level) calledAs() variable {
	switch {
	case l.tail || !l.yield && !l.frame.isGo() && l.frame.tailCalls() > 0:
		return variable{}
	case l.yield:
		return calledBy(l.L, l.frame)
	}
	if caller, ok := l.frame.parent(); ok {
		return calledBy(l.L, caller)
	}
	return variable{}
}

// traceLine is a level's line in a traceback.
func (l level) traceLine() string {
	if l.tail {
		return "(tail call): ?"
	}
	as, name := l.calledAs(), "[C]:"
	source, defined := "", -1
	if !l.isGo() {
		p := l.frame.proto()
		source, defined = sourceOf(p), int(p.Field(frameFields.defined).Int())
		name = source + ":"
		if line := l.line(); line > 0 {
			name = fmt.Sprintf("%s:%d:", source, line)
		}
	}
	switch {
	case as.kind != "":
		return fmt.Sprintf("%s in function '%s'", name, as.name)
	case l.isGo():
		return name + " ?"
	case defined == 0:
		return name + " in main chunk"
	}
	return fmt.Sprintf("%s in function <%s:%d>", name, source, defined)
}

// traceback is Lua's traceback of a coroutine, nil for the one that runs, from a level on. Of many levels it shows the
// first 12, which count from level 0, and the last 10.
func (s *threads) traceback(co *lua.LState, from int) string {
	const first, last = 12, 10
	var lines []string
	s.levels(co, func(l level) bool {
		lines = append(lines, "\n\t"+l.traceLine())
		return true
	})
	from = min(max(from, 0), len(lines))
	cut := max(from, first)
	if cut+1+last >= len(lines) {
		return "stack traceback:" + strings.Join(lines[from:], "")
	}
	return "stack traceback:" + strings.Join(lines[from:cut], "") + "\n\t..." + strings.Join(lines[len(lines)-last:], "")
}

// raiseError is Lua's error.
func raiseError(s *State, L *lua.LState) int {
	v, n := L.Get(1), optional(L, 2, integerArg, 1)
	if n > 0 {
		if message, ok := asText(v); ok {
			v = lua.LString(s.where(n) + message)
		}
	}
	s.throw(L, v)
	return 0
}

// throw raises an error with a value that stays as it is.
func (s *threads) throw(L *lua.LState, v lua.LValue) {
	s.exact = true
	L.Error(v, 0)
}
