package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/luabind"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

func TestMain(m *testing.M) {
	if err := os.Chdir("../../.."); err != nil { // the module's root
		panic(err)
	}
	os.Exit(m.Run())
}

// Every exported Go function of the rooms that builds a graph is a function of mx, or says in its comment why not:
//
//	//sig:none x["1:3"] does that
func TestFunctionsAreDeclared(t *testing.T) {
	r, err := readRooms("tensor/ops")
	require.NoError(t, err)
	require.Greater(t, len(r.lua), 100)
	for name, builds := range r.builds {
		if builds && r.lua[name] == "" {
			require.NotEmpty(t, r.none[name], "no sig.Def declares %s, and no //sig:none says why", name)
		}
	}
	for name := range r.none {
		require.Empty(t, r.lua[name], "%s is a function of mx", name)
	}
}

// What help says is Lua: it begins with the function's name, and names no function, type or notion of Go's.
func TestHelpSpeaksLua(t *testing.T) {
	r, err := readRooms("tensor/ops")
	require.NoError(t, err)
	camel := regexp.MustCompile(`\b[A-Z]?[a-z0-9]+[A-Z]\w*|\b[A-Z][a-z]+[A-Z]\w*`)
	goWords := regexp.MustCompile(`\[\]\w|\*\w+\.|\bnil (slice|pointer|map|func)|` +
		`\b(ctx|struct|goroutine|pointer|slice of|tensor\.\w+|ops\.\w+|[Ss]hapeArg|zero value)\b`)
	var goNames []string
	for name := range r.comments {
		goNames = append(goNames, name[strings.IndexByte(name, '.')+1:])
	}
	require.Contains(t, goNames, "LogicalNot")
	manual := luabind.NewManual().Functions
	goNames = slices.DeleteFunc(goNames, func(name string) bool { // layers of mx.nn may be named
		return slices.ContainsFunc(manual, func(f luabind.ManualEntry) bool { return f.Name == "nn."+name })
	})
	for _, f := range manual {
		text := f.Help
		if op := sig.Lookup(f.Name); op != nil {
			text, err = r.text(op)
			require.NoError(t, err, f.Name)
			if slices.ContainsFunc(op.Params, noneIsFalse) {
				require.NotRegexp(t, `\bnil\b`, text, "help of %s: nil is the default", f.Name)
			}
			first, _, _ := strings.Cut(text, " ")
			require.Equal(t, f.Name, first)
		}
		require.NotEmpty(t, text, f.Name)
		for _, word := range camel.FindAllString(text, -1) {
			require.NotContains(t, goNames, word, "help of %s", f.Name)
		}
		require.Empty(t, goWords.FindString(text), "help of %s", f.Name)
		require.NotRegexp(t, `\b[a-z]+[A-Z]\w*`, text, "help of %s names no parameter of Lua's so", f.Name)
		require.NotRegexp(t, `\[[A-Z]\w+\]`, text, "help of %s has a link that names no function of its room", f.Name)
		sentences := regexp.MustCompile(`[.:;]\s+`).Split(strings.Join(strings.Fields(text), " "), -1)
		for _, s := range sentences {
			for i, word := range strings.Fields(s) {
				word = strings.Trim(word, ".,:;()'\"")
				if i > 0 && word != "" && word[0] >= 'A' && word[0] <= 'Z' {
					require.False(t, slices.Contains(goNames, word), "help of %s names Go's %s: %q", f.Name, word, s)
				}
			}
		}
	}
}
