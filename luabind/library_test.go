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
			fn, ok := module.RawGetString(name).(*lua.LFunction)
			require.True(t, ok, name)
			require.NotNil(t, s.mx.help[fn], name)
			require.NotEmpty(t, s.mx.help[fn].help, name)
		}
		require.Contains(t, s.mx.helpText(module), "mx."+m.name+".")
	}
	require.Equal(t, "mx.nn.leaky_relu(x, negative_slope=0.01)\nmax(negative_slope * x, x), element by element.",
		s.mx.helpText(lua.LString("nn.leaky_relu")))
}
