package luabind

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"
)

// answersOfMLX are what MLX's functions give for the arrays of TestInstead, as it prints them.
var answersOfMLX = map[string]string{}

// What an error says to write for a missing name gives what MLX gives for a and b, or what else stands for them here.
func TestInstead(t *testing.T) {
	s := newTestState(t)
	other := map[string]string{}
	for name, text := range instead {
		if s.mx.funcs[name] != nil { // it is there: nobody is told
			continue
		}
		script := "local mx = require('mx') mx.random.seed(5) a, b, n = mx.array({1, -2, 3.5}), mx.array({4, 1, 3.5}), 2 " +
			other[name] + " result = tostring((select(1, " + text + ")))"
		_, err := s.Run(context.Background(), strings.NewReader(script), name)
		require.NoError(t, err, name)
		require.Equal(t, answersOfMLX[name], s.L.GetGlobal("result").String(), name)
	}
}

// What MLX has and mx has not: its names are errors that say so, help lists them, and the manual does.
func TestMissing(t *testing.T) {
	s := newTestState(t)
	fails := func(script, want string) {
		t.Helper()
		_, err := s.Run(context.Background(), strings.NewReader("local mx = require('mx') "+script), "missing")
		require.ErrorContains(t, err, want)
	}
	missing := s.mx.missing(s.mx.LTable)
	reference, err := os.ReadFile("../docs/reference.md")
	require.NoError(t, err)
	if len(missing) > 0 {
		help := strings.Join(strings.Fields(s.mx.helpText(s.mx.LTable)), " ")
		require.Contains(t, help, "MLX has and mx has not, so far: "+strings.Join(missing, ", "))
	}
	for _, name := range missing {
		require.Contains(t, string(reference), name+"\n")
		require.Nil(t, s.mx.funcs[name], name)
		module, last, qualified := strings.Cut(name, ".")
		switch {
		case module == "array":
			fails("return mx.ones({2})."+last, `no method or property "`+last+`"`)
		case !qualified:
			fails("return mx['"+name+"']", "there is no mx."+name)
		case s.mx.RawGetString(module) == lua.LNil:
			fails("return mx."+name, "there is no mx."+module+" yet; ")
		default:
			fails("return mx."+module+"['"+last+"']", "there is no mx."+name)
		}
	}
	for script, want := range map[string]string{
		"return mx.nn.Linear":             "no mx.nn.Linear yet; mx.nn has functions only",
		"return mx.optimizers":            "no mx.optimizers yet; write the step out",
		"return mx.core":                  "mx itself is MLX's mlx.core",
		"return mx.nn['']":                "no mx.nn.; help(mx.nn)",
		"return mx.ones({2}):conjugat()":  "; did you mean conjugate?",
		"return mx.cuda":                  "no mx.cuda: kernels are Metal's",
		"return mx.from_dlpack":           "no mx.from_dlpack: Python's protocol",
		"return mx.softmx":                "no mx.softmx; did you mean softmax?",
		"return mx.ones({2}):unsqueeze()": "; mx.expand_dims does that",
	} {
		fails(script, want)
	}
}

// A hint says what it says as long as the name is missing.
func TestHints(t *testing.T) {
	s := newTestState(t)
	for name, want := range map[string]string{
		"acos":   "; mx.arccos does that",
		"median": " yet; docs/reference.md lists what MLX has and mx has not", "conj": "; mx.conjugate does that",
	} {
		module, last, qualified := strings.Cut(name, ".")
		if !qualified {
			module, last = "", name
		} else {
			module += "."
		}
		if hint := s.mx.notYet(module, last); s.mx.funcs[name] == nil {
			require.True(t, strings.HasPrefix(hint, want), "%s: %s", name, hint)
		}
	}
}
