package lua51

import lua "github.com/yuin/gopher-lua"

// level is one of a coroutine's calls under way, or a trace of one that has ended in a tail call.
type level struct {
	L     *lua.LState // the thread that has the frame: a protected call has one of its own
	frame frame
	tail  bool // the function is gone
}

// levels visits the levels of the running coroutine, innermost first, until visit says no. Level 0 is the running
// function. A protected call is a level, that of pcall; below it are those of the thread that waits for it.
func (s *threads) levels(visit func(l level) bool) {
	L := s.L
	for i := len(s.running) - 1; ; i-- {
		bottom := i >= 0 && !s.running[i].coroutine
		if !threadLevels(L, bottom, visit) || !bottom {
			return
		}
		L = s.running[i].caller
	}
}

// threadLevels visits the levels of a thread, without the bottom of a protected call where it has one. It reports
// whether visit has always said yes.
func threadLevels(L *lua.LState, bottom bool, visit func(l level) bool) bool {
	for f, ok := frameIn(current(L)); ok && !(bottom && f.depth() == 0); f, ok = f.parent() {
		if !visit(level{L: L, frame: f}) {
			return false
		}
		if f.isGo() {
			continue
		}
		for range f.tailCalls() {
			if !visit(level{L: L, frame: f, tail: true}) {
				return false
			}
		}
	}
	return true
}

// level is a level of the running coroutine; false: there are fewer.
func (s *threads) level(n int) (found level, ok bool) {
	s.levels(func(l level) bool {
		found, ok = l, n == 0
		n--
		return !ok
	})
	return found, ok
}

// where is how an error message begins that tells where a level is: "" for a function of Go's, or one that is gone.
func (s *threads) where(n int) string {
	if l, ok := s.level(n); ok && !l.tail {
		return l.frame.place()
	}
	return ""
}

// errorFunction is Lua's error.
func (s *State) errorFunction(L *lua.LState) int {
	v, n := L.Get(1), L.OptInt(2, 1)
	if n > 0 {
		switch v.(type) {
		case lua.LString, lua.LNumber:
			v = lua.LString(s.where(n) + v.String())
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
