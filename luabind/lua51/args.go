package lua51

import (
	"math"
	"slices"

	lua "github.com/yuin/gopher-lua"
)

// What library functions read their arguments by. gopher-lua's own take no text for a whole number, read texts as Go
// does, and count nil as given.

// optional is an argument, or what stands for it where it is nil or left out.
func optional[T any](L *lua.LState, n int, read func(L *lua.LState, n int) T, otherwise T) T {
	if L.Get(n) == lua.LNil {
		return otherwise
	}
	return read(L, n)
}

// numberArg is an argument that is a number, or a text that is one.
func numberArg(L *lua.LState, n int) float64 {
	v, ok := operandNumber(L.Get(n))
	if !ok {
		L.TypeError(n, lua.LTNumber)
	}
	return v
}

// integerArg is a number without its fraction.
func integerArg(L *lua.LState, n int) int { return integer(numberArg(L, n)) }

// integer is a number without its fraction, on all processors the same: what no int holds is the least one.
func integer(v float64) int {
	if v >= math.MinInt64 && v < 1<<63 {
		return int(v)
	}
	return math.MinInt64
}

// textArg is an argument that is a text, or a number as one.
func textArg(L *lua.LState, n int) string {
	switch v := L.Get(n).(type) {
	case lua.LString:
		return string(v)
	case lua.LNumber:
		return numberText(v)
	}
	L.TypeError(n, lua.LTString)
	return ""
}

// optionArg reads an argument that is one of some words.
func optionArg(words ...string) func(L *lua.LState, n int) string {
	return func(L *lua.LState, n int) string {
		word := textArg(L, n)
		if !slices.Contains(words, word) {
			L.ArgError(n, "invalid option '"+word+"'")
		}
		return word
	}
}

// with is a function of a library on a state.
func with(s *State, f func(s *State, L *lua.LState) int) lua.LGFunction {
	return func(L *lua.LState) int { return f(s, L) }
}

// functionArg is an argument that is a function.
func functionArg(L *lua.LState, n int) *lua.LFunction { return L.CheckFunction(n) }
