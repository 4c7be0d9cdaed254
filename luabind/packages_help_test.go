package luabind

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/docs"
	"github.com/mlxlua/mlxlua/luabind/lua51"
)

// TestPackagesHaveHelp: the manual describes each function of the package lm and of its objects, and help finds what it
// says by the function, by the name and by the object.
func TestPackagesHaveHelp(t *testing.T) {
	t.Parallel()
	s := newTestState(t)
	out, err := s.Run(t.Context(), strings.NewReader(`
		lm, host = require("lm"), require("lm.host")
		session = setmetatable({}, require("lm.text"))
		return lm, require("lm.text"), host, host.tokenizer(...)`), "packages", lua.LString(tokenizerDirectory(t)))
	require.NoError(t, err)
	for i, name := range []string{"lm", "lm.Session", "lm.host", "lm.tokenizer"} {
		t.Run(name, func(t *testing.T) {
			table, ok := out[i].(*lua.LTable)
			require.True(t, ok, out[i])
			found := 0
			for key, v := table.Next(lua.LNil); key != lua.LNil; key, v = table.Next(key) {
				if _, ok := v.(*lua.LFunction); !ok {
					continue
				}
				found++
				full := name + "." + key.String()
				text := docs.Usage(full) + "\n" + docs.Help(full)
				require.NotEmpty(t, docs.Help(full), full)
				require.Equal(t, text, s.mx.helpText(v), full)
				require.Equal(t, text, s.mx.helpText(lua.LString(full)), full)
			}
			require.Equal(t, len(docs.Package(name, ""))-deeper(name), found)
		})
	}
	require.Contains(t, s.mx.helpText(s.Global("session")), "session:answer(prompt, options)")
	require.Contains(t, s.mx.helpText(s.Global("lm")), "lm.load(name, options)\n")
	require.NotContains(t, s.mx.helpText(s.Global("lm")), "session:answer")
	require.Contains(t, s.mx.helpText(lua.LString("perplex")), "lm.perplexity(model, tokens, options)")
	require.Contains(t, s.mx.helpText(s.mx.LTable), `Packages: help("lm")`)
	_, err = s.Run(t.Context(), strings.NewReader(`package.loaded = 1 package = nil`), "packages")
	require.NoError(t, err)
	require.Equal(t, "a function of the script", s.mx.helpText(s.Func(func(*lua.LState) int { return 0 })))
}

// tokenizerDirectory is a directory with a tokenizer and nothing else.
func tokenizerDirectory(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	text, err := os.ReadFile("../text/tokenizer/testdata/llama3.json")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tokenizer.json"), text, 0o600))
	return dir
}

// deeper counts the entries of a package's objects.
func deeper(name string) (n int) {
	for _, full := range docs.Package(name, "") {
		if strings.Contains(strings.TrimPrefix(full, name+"."), ".") {
			n++
		}
	}
	return n
}

// TestPackageTypes: the annotations of packages are Lua that compiles, and declare each function once.
func TestPackageTypes(t *testing.T) {
	t.Parallel()
	all := ""
	for name, text := range TypeFiles() {
		require.True(t, strings.HasPrefix(text, "---@meta\n"), name)
		_, err := lua51.Compile(strings.NewReader(text), name)
		require.NoError(t, err)
		if name != "mx.lua" {
			all += text
		}
	}
	require.Equal(t, len(docs.Package("lm", "")), strings.Count(all, "\nfunction "))
	for _, want := range []string{
		"---@param name any\n---@param options? any\n---@return any ...\nfunction lm.load(name, options) end\n",
		"---@return lm.Session\nfunction lm.open(model, directory) end\n",
		"---@param prompt any\n---@param options? any\n---@return any ...\nfunction Session:answer(prompt, options) end\n",
		"---@return lm.tokenizer\nfunction host.tokenizer(path) end\n",
		"---@param skip_special? any\n---@return any ...\nfunction tokenizer.stream(skip_special) end\n",
	} {
		require.Contains(t, all, want)
	}
}
