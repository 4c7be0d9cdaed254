package luabind

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkOpen opens and closes a Lua state, whose modules written in Lua are loaded when a script first uses them.
func BenchmarkOpen(b *testing.B) {
	for _, c := range []struct{ name, script string }{
		{"alone", ""}, {"utils", "local f = mx.utils.tree_map"}, {"optimizers", "local f = mx.optimizers.SGD"},
		{"nn", "local f = mx.nn.Linear"},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s := New(Options{Libraries: true})
				_, err := s.Run(context.Background(), strings.NewReader(c.script), "script")
				require.NoError(b, err)
				s.Close()
			}
		})
	}
}
