package luabind

import (
	"fmt"
	"io"
	"os"

	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/luabind/lua51"
	"github.com/mlxlua/mlxlua/tensor"
)

// sureModule is the module whose functions never give nil.
const sureModule = "mx"

// mostWarnings is how many warnings a state gives: a script may have any number of lines.
const mostWarnings = 100

// warnings are those that a state has given.
type warnings struct {
	s     *State
	count int
	told  map[tensor.Place]bool // lines whose condition the script was told of
}

// to is where warnings go.
func (w *warnings) to() io.Writer {
	switch opt := &w.s.opt; {
	case opt.Stderr != nil:
		return opt.Stderr
	case opt.Sandbox:
		return lua51.Output(w.s.State)
	}
	return os.Stderr
}

// give warns of the line that runs.
func (w *warnings) give(text string) {
	if w.count == mostWarnings {
		return
	}
	w.count++
	fmt.Fprintf(w.to(), "warning: %s: %s\n", w.s.where(), text)
	if w.count == mostWarnings {
		fmt.Fprintf(w.to(), "warning: these were %d warnings; there will be no further ones\n", mostWarnings)
	}
}

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
	if (s.warnings.told[at] || s.warnings.count == mostWarnings) && !s.opt.Strict {
		return
	}
	hint := "mx.any(x):item() and mx.all(x):item() are conditions, and so is x ~= nil"
	if truth {
		hint = "item() gives its value, as in mx.any(x):item()"
	}
	text := fmt.Sprintf("the condition is %s, and Lua takes any array for true; %s", describe(v), hint)
	if s.opt.Strict {
		s.raise(s.call().Errorf("condition", "%s", text))
	}
	if s.warnings.told == nil {
		s.warnings.told = map[tensor.Place]bool{}
	}
	s.warnings.told[at] = true
	s.warnings.give(text)
}
