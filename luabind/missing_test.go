package luabind

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"
)

// What MLX has and mx has not: its names are errors that say so, help lists them, and the manual does.
func TestMissing(t *testing.T) {
	t.Parallel()
	s := newTestState(t)
	fails := func(script, want string) {
		t.Helper()
		_, err := s.Run(context.Background(), strings.NewReader("local mx = require('mx') "+script), "missing")
		require.ErrorContains(t, err, want)
	}
	missing := s.mx.missing(s.mx.LTable)
	reference, err := os.ReadFile("../docs/manual/missing.md")
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
		"return mx.nn.Lineer":              "no mx.nn.Lineer; did you mean Linear?",
		"return mx.nn.losses.l2_loss":      "no mx.nn.losses.l2_loss; did you mean l1_loss?",
		"return mx.optimizers.Adm":         "no mx.optimizers.Adm; did you mean Adam?",
		"return mx.core":                   "mx itself is MLX's mlx.core",
		"return mx.nn['']":                 "no mx.nn.; help(mx.nn)",
		"return mx.ones({2}):conjugat()":   "; did you mean conjugate?",
		"return mx.cuda":                   "no mx.cuda: kernels are Metal's",
		"return mx.from_dlpack":            "no mx.from_dlpack: Python's protocol",
		"return mx.softmx":                 "no mx.softmx; did you mean softmax?",
		"return mx.ones({2}):unsqueeze()":  "; mx.expand_dims does that",
		"return mx.random.uniform({2, 3})": "low is a table, want an array; a shape goes by name: {shape = {2, 3}}",
		"return mx.null":                   "no mx.null; false stands for None in a list, as in in_axes = {0, false}",
		"return mx.ones({2}).at[{0}]":      "methods are called with a colon: x:at(i), not x.at[i]",
	} {
		fails(script, want)
	}
}
