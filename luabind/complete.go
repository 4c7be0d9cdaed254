package luabind

import (
	"errors"
	"io"
	"slices"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/luabind/lua51"
)

func newReader(text string) io.Reader { return strings.NewReader(text) }

// isIncomplete reports whether a compile error is that of a text which ends too early.
func isIncomplete(err error) bool {
	var se *lua51.SyntaxError
	return errors.As(err, &se) && se.AtEnd()
}

// complete lists the completions of the beginning of an expression that starts with a global, sorted.
func (m *module) complete(s *lua51.State, prefix string) []string {
	cut := strings.LastIndexAny(prefix, ".:")
	scope, last := lua.LValue(s.L.G.Global), prefix
	if cut >= 0 {
		last = prefix[cut+1:]
		for _, name := range strings.FieldsFunc(prefix[:cut], func(r rune) bool { return r == '.' || r == ':' }) {
			t, ok := scope.(*lua.LTable)
			if !ok {
				return nil
			}
			scope = s.Entry(t, name)
		}
	}
	if _, ok := array(scope); ok {
		scope = m.methods
	}
	t, ok := scope.(*lua.LTable)
	if !ok {
		return nil
	}
	s.Unfold(t)
	var out []string
	t.ForEach(func(k, _ lua.LValue) {
		if name, ok := k.(lua.LString); ok && strings.HasPrefix(string(name), last) {
			out = append(out, prefix[:cut+1]+string(name))
		}
	})
	slices.Sort(out)
	return out
}
