package lua51

import (
	"math"

	lua "github.com/yuin/gopher-lua"
)

// arithmetic are the operations that Lua does on strings that are numbers, by the names of their metamethods.
var arithmetic = map[string]func(a, b float64) float64{
	"__add": func(a, b float64) float64 { return a + b },
	"__sub": func(a, b float64) float64 { return a - b },
	"__mul": func(a, b float64) float64 { return a * b },
	"__div": func(a, b float64) float64 { return a / b },
	"__mod": modulo,
	"__pow": math.Pow,
	"__unm": func(a, _ float64) float64 { return -a },
}

// openStringArithmetic gives strings a metatable of their own, with metamethods: gopher-lua looks for these before it
// reads a string as a number by Go's rules, by which "010" is 8. Arithmetic on numbers does not come here.
func (s *State) openStringArithmetic() {
	mt := s.NewTable(0, 1)
	library := s.library(lua.StringLibName)
	library.RawSetString("__index", lua.LNil) // it was the metatable
	mt.RawSetString("__index", library)
	for event, op := range arithmetic {
		mt.RawSetString(event, s.Func(func(L *lua.LState) int {
			a, b := L.Get(1), L.Get(2)
			if event == "__unm" {
				b = a
			}
			x, ok := operandNumber(a)
			y, alike := operandNumber(b)
			if ok && alike {
				L.Push(lua.LNumber(op(x, y)))
				return 1
			}
			for _, v := range []lua.LValue{a, b} { // what is no string may have a metamethod
				if v.Type() == lua.LTString {
					continue
				}
				if f, ok := L.GetMetaField(v, event).(*lua.LFunction); ok {
					L.Push(f)
					L.Push(a)
					L.Push(b)
					L.Call(2, 1)
					return 1
				}
			}
			s.throw(L, lua.LString(arithmeticError(s, L, a, b)))
			return 0
		}))
	}
	s.setBasicMetatable(lua.LString(""), mt)
}

// operandNumber is a number, or a string as a number.
func operandNumber(v lua.LValue) (float64, bool) {
	switch v := v.(type) {
	case lua.LNumber:
		return float64(v), true
	case lua.LString:
		n, ok := readNumber(string(v), 10)
		return float64(n), ok
	}
	return 0, false
}

// modulo is % as Lua 5.1's manual has it. The product is rounded before it is taken away, on any processor.
func modulo(a, b float64) float64 { return a - float64(math.Floor(a/b)*b) }
