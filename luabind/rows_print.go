package luabind

import (
	lua "github.com/yuin/gopher-lua"
)

// shortest is the precision of six significant digits, as few as a number has.
const shortest = -1

// printRows say how arrays are printed.
var printRows = []row{
	{name: "set_printoptions", sig: "precision:int=-1", host: true,
		help: "How many places after the point the numbers of arrays are printed with from now on; -1 stands for six " +
			"significant digits, as few as a number has.",
		call: func(a *args) any {
			a.s.precision = a.precision()
			return nil
		}},
	{name: "get_printoptions", sig: "", host: true,
		help: "A table of the options that mx.set_printoptions set: precision.",
		call: func(a *args) any { return a.s.record(map[string]any{"precision": a.s.precision}) }},
	{name: "printoptions", sig: "precision:int=-1 f:any", through: true,
		help: "Calls f with the options of mx.set_printoptions, gives its results, and puts the old options back, also " +
			"after an error.",
		call: func(a *args) any {
			s, fn := a.s, a.callable(1)
			old := s.precision
			s.precision = a.precision()
			defer func() { s.precision = old }()
			return s.results(fn)
		}},
}

// maxPrecision bounds the digits that are printed: a double has not as many.
const maxPrecision = 1100

// precision is argument 0.
func (a *args) precision() int {
	n := a.Int(0)
	if n < shortest || n > maxPrecision {
		a.fail("precision is %d, want -1 or a number of places up to %d", n, maxPrecision)
	}
	return n
}

// results calls a Lua function without arguments and gives its results.
func (s *State) results(fn lua.LValue) values {
	top := s.L.GetTop()
	s.L.Push(fn)
	s.L.Call(0, lua.MultRet)
	var out values
	for i := top + 1; i <= s.L.GetTop(); i++ {
		out = append(out, s.L.Get(i))
	}
	s.L.SetTop(top)
	return out
}
