package luabind

import (
	"context"
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

// TestExamples: each example in the help calls its function, gives what the help says, and help shows it. MLX printed
// the outputs, where its arrays had the same dtypes.
func TestExamples(t *testing.T) {
	s := New(Options{Libraries: true})
	defer s.Close()
	examples := 0
	for _, f := range sig.All() {
		if f.Example == "" {
			continue
		}
		examples++
		last := f.Name[strings.LastIndexByte(f.Name, '.')+1:]
		require.True(t, strings.HasPrefix(f.Example, "mx."+f.Name+"(") || strings.HasPrefix(f.Example, "mx['"+last+"']("),
			f.Example)
		out, err := s.Run(context.Background(), strings.NewReader("return tostring("+f.Example+")"), f.Name)
		require.NoError(t, err, f.Example)
		require.Equal(t, []lua.LValue{lua.LString(f.Output)}, out, f.Example)
		require.Contains(t, s.mx.helpText(lua.LString(f.Name)), "> "+f.Example+"\n"+f.Output)
	}
	require.GreaterOrEqual(t, examples, 130)
}
