package lua51

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Texts of strangers that gopher-lua's compiler would take long for are refused, and say why; others are not.
func TestWeight(t *testing.T) {
	many := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	for text, want := range map[string]string{
		many(25000, "x = %d "):                            "too many constants",
		many(25000, "f'%d' "):                             "too many constants",
		strings.Repeat("goto a ", 3000) + "::a::":         "gotos and labels",
		many(3000, "::a%d:: "):                            "gotos and labels",
		strings.Repeat("function f() end ", 9000):         "more than 8192 functions",
		many(10000, "x = %d "):                            "",
		strings.Repeat("x = 1 y = 'a' z(2) ", 20000):      "",
		strings.Repeat("function f() end ", 8000):         "",
		"return {" + strings.Repeat("'a', ", 25000) + "}": "",
	} {
		s := New(Options{Limits: Limits{Source: 1 << 20}})
		_, err := s.Compile(t.Context(), strings.NewReader(text), "text")
		s.L.Close()
		if want == "" {
			require.NoError(t, err, text[:20])
			continue
		}
		require.ErrorIs(t, err, ErrLimit, text[:20])
		require.ErrorContains(t, err, want)
	}
}
