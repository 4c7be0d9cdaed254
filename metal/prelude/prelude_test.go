package prelude_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal/prelude"
)

// TestSources: each text has a name of its own, says what it is, and stands alone: no includes, balanced brackets.
func TestSources(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range slices.Concat(prelude.Standard(), prelude.BFloat(), prelude.Helpers()) {
		require.False(t, seen[s.Name], s.Name)
		seen[s.Name] = true
		require.True(t, strings.HasPrefix(s.Text, "// "), s.Name)
		require.NotContains(t, s.Text, "#include", s.Name)
		for _, pair := range []string{"{}", "()", "[]"} {
			require.Equal(t, strings.Count(s.Text, pair[:1]), strings.Count(s.Text, pair[1:]), "%s: %s", s.Name, pair)
		}
	}
	require.Len(t, seen, 12)
}

// TestMacrosAreOurs: a prelude leaves no macro behind that a kernel's own names could meet by chance.
func TestMacrosAreOurs(t *testing.T) {
	define := regexp.MustCompile(`(?m)^#define (PRELUDE_\w+)`)
	for _, s := range slices.Concat(prelude.Standard(), prelude.BFloat(), prelude.Helpers()) {
		for _, m := range define.FindAllStringSubmatch(s.Text, -1) {
			require.Contains(t, s.Text, "#undef "+m[1]+"\n", "%s: %s", s.Name, m[1])
		}
	}
}
