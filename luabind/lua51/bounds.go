package lua51

import lua "github.com/yuin/gopher-lua"

// The context is polled between Lua instructions only, so one call of a library function may not take long: what can
// is bounded, or polls by itself.
const (
	maxString  = 1 << 28 // bytes of the longest string that a library function makes
	maxResults = 1 << 20 // values that unpack and string.byte give
	pollEvery  = 1 << 12
)

// limitResults replaces a function by one that refuses calls with too many results. of returns the size of what the
// function reads, for functions that stop at its end and count negative places from there.
func (s *State) limitResults(lib *lua.LTable, field, name string, ends func(L *lua.LState) (int, int),
	of func(L *lua.LState) int) {
	f, ok := lib.RawGetString(field).(*lua.LFunction)
	if !ok {
		return
	}
	plain := f.GFunction
	s.Method(lib, field, func(L *lua.LState) int {
		first, last := ends(L)
		if of != nil {
			n := of(L)
			if first < 0 {
				first = max(first+n+1, 1)
			}
			if last < 0 {
				last += n + 1
			}
			last = min(last, n)
		}
		if last-first >= maxResults {
			s.fail("%s: too many results: from %d to %d", name, first, last)
		}
		return plain(L)
	})
}
