package luabind

import (
	"context"
	"io"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/docs"
	"github.com/mlxlua/mlxlua/internal/brief"
	"github.com/mlxlua/mlxlua/metal/testdevice"
)

// TestExamples: the help of each function ends with an example of its use, and each of its entries gives what the help
// says. Entries with values of MLX's were compared with MLX: see docs/examples/README.md.
func TestExamples(t *testing.T) {
	brief.OnlyValues(t)
	t.Setenv("COLUMNS", "80") // mx.plot prints to a terminal that is so wide
	s := New(Options{Libraries: true, Stderr: io.Discard})
	defer s.Close()
	loadLibrary(s)
	folder, err := filepath.Abs("testdata/lm")
	require.NoError(t, err)
	t.Chdir(t.TempDir())
	names := slices.Collect(maps.Keys(s.mx.funcs))
	for _, f := range plain {
		names = append(names, f.name)
	}
	slices.Sort(names)
	tinyModel(t, s, folder)
	names = append(names, docs.Package("lm", "")...)
	for _, name := range names {
		help := s.mx.helpText(lua.LString(name))
		_, example, found := strings.Cut(help, "\n\n> ")
		if !found {
			if docs.Full(name) != name { // of packages some need no example, or a large model
				t.Errorf("mx.%s has no example in docs/examples", name)
			}
			continue
		}
		require.Contains(t, docs.Help(name), example)
		runExample(t, s, name, "> "+example)
	}
}

// tinyModel makes tiny, a model directory, and has the global lm.
func tinyModel(t *testing.T, s *State, folder string) {
	t.Helper()
	out, err := s.RunFile(t.Context(), filepath.Join(folder, "tiny.lua"), lua.LString(folder), lua.LString("tiny"),
		lua.LString(filepath.Join(folder, "../../../text/tokenizer/testdata/llama3.json")))
	require.NoError(t, err, out)
	require.NoError(t, s.Require(t.Context(), "lm"))
}

// assigned are the globals that an entry sets.
var assigned = regexp.MustCompile(`(?m)^>>? (\w+(?:, \w+)*) = `)

// runExample runs an example's entries, and forgets the globals that they made.
func runExample(t *testing.T, s *State, name, example string) {
	t.Helper()
	globals := s.L.G.Global
	s.Unfold(globals)
	before := keysOf(globals)
	for _, m := range assigned.FindAllStringSubmatch(example, -1) {
		for _, k := range strings.Split(m[1], ", ") {
			require.NotContains(t, before, k, "%s: the example takes a global of Lua's", docs.Full(name))
		}
	}
	for _, entry := range strings.Split("\n"+example, "\n> ")[1:] {
		code, want, _ := strings.Cut(entry, "\n")
		for strings.HasPrefix(want, ">> ") {
			var line string
			line, want, _ = strings.Cut(want, "\n")
			code += "\n" + line[3:]
		}
		got := enter(t, s, code)
		if testdevice.Name() != "cpu" { // the manual shows what a program prints that has opened no other device
			got = strings.ReplaceAll(got, "Device(gpu, 0)", "Device(cpu, 0)")
		}
		require.Equal(t, want, got, "%s: %s", docs.Full(name), code)
	}
	for _, k := range keysOf(globals) {
		if !slices.Contains(before, k) {
			globals.RawSetString(k, lua.LNil)
		}
	}
}

// enter is what a REPL would show after an entry.
func enter(t *testing.T, s *State, code string) string {
	t.Helper()
	ctx := context.Background()
	var printed strings.Builder
	SetOutput(s, &printed)
	values, _, err := s.Eval(ctx, code)
	require.NoError(t, err, code)
	var texts []string
	for _, v := range values {
		text, err := s.Show(ctx, v)
		require.NoError(t, err, code)
		texts = append(texts, text)
	}
	return strings.TrimRight(printed.String()+strings.Join(texts, "\t"), "\n")
}
