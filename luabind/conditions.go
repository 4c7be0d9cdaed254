package luabind

import (
	"fmt"

	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/tensor"
)

// condition tells of a condition that is an array, which Lua takes for true whatever it holds: once for each line, or
// as an error if the state is strict. The array that a name or field holds is told of only if it is a bool of no
// dimensions, because `if mask then` and `b = b or mx.zeros(n)` ask whether there is one.
func condition(s *State, v lua.LValue, call bool) {
	x, ok := array(v)
	truth := ok && x.NDim() == 0 && x.DType() == tensor.Bool
	if !ok || !call && !truth {
		return
	}
	at := s.where()
	if s.told[at] && !s.opt.Strict {
		return
	}
	hint := "mx.any(x):item() and mx.all(x):item() are conditions, and so is x ~= nil"
	if truth {
		hint = "its value is x:item()"
	}
	text := fmt.Sprintf("the condition is %s, and Lua takes any array for true; %s", describe(v), hint)
	if s.opt.Strict {
		s.raise(s.call().Errorf("condition", "%s", text))
	}
	if s.told == nil {
		s.told = map[tensor.Place]bool{}
	}
	s.told[at] = true
	s.warn(text)
}
