package luabind

import (
	"testing"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"
)

// Every function of the modules that are written in Lua comes from a description: it has parameters and help.
func TestLibraryHelp(t *testing.T) {
	s := newTestState(t)
	for _, m := range library() {
		module := s.mx.inner[m.name]
		s.Unfold(module)
		names := keysOf(module)
		require.NotEmpty(t, names)
		for _, name := range names {
			var f *function
			switch v := module.RawGetString(name).(type) {
			case *lua.LFunction:
				f = s.mx.help[v]
			case *lua.LTable:
				if s.mx.inner[m.name+"."+name] == v {
					require.Contains(t, s.mx.helpText(v), "mx."+m.name+"."+name+".")
					continue
				}
				f = s.mx.classes[v]
			}
			require.NotNil(t, f, name)
			require.NotEmpty(t, f.help, name)
			require.Contains(t, s.mx.helpText(module.RawGetString(name)), f.usage())
		}
		require.Contains(t, s.mx.helpText(module), "mx."+m.name+".")
	}
	require.Equal(t, "mx.nn.leaky_relu(x, negative_slope=0.01)\nmax(negative_slope * x, x), element by element.",
		s.mx.helpText(lua.LString("nn.leaky_relu")))
}
