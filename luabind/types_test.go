package luabind

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/luabind/lua51"
)

// TestTypes: the annotations are Lua that compiles, each function of mx is declared once with its parameters in order,
// and every type that they name is declared.
func TestTypes(t *testing.T) {
	t.Parallel()
	text := mxTypes()
	_, err := lua51.Compile(strings.NewReader(text), "types.lua")
	require.NoError(t, err)
	annotation := regexp.MustCompile(
		`^---@(meta|alias \S+ \S+|class \S+|field (\[\w+\]|\w+\??) \S.*|operator \w+(\(\S+\))?: \S+|` +
			`param (\w+\??|\.\.\.) \S+|return \S+( \.\.\.)?)$`)
	declared := map[string]bool{"any": true, "number": true, "integer": true, "boolean": true, "string": true,
		"table":    true,
		"function": true, "false": true}
	for _, m := range regexp.MustCompile(`(?m)^---@(?:class|alias) (\S+)`).FindAllStringSubmatch(text, -1) {
		require.False(t, declared[m[1]], "%s is declared twice", m[1])
		declared[m[1]] = true
	}
	var params []string
	found := map[string][]string{}
	for i, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(line, "---@") {
			require.Regexp(t, annotation, line, "line %d", i+1)
		}
		if m := regexp.MustCompile(`^---@(?:param \S+|field \w+\??) ([^ ()]+)$`).FindStringSubmatch(line); m != nil {
			for _, name := range strings.Split(m[1], "|") {
				if name = strings.TrimSuffix(strings.TrimSuffix(name, "[]"), "[]"); !strings.HasPrefix(name, "'") {
					require.True(t, declared[name], "line %d names %s", i+1, name)
				}
			}
		}
		if m := regexp.MustCompile(`^---@param (\w+|\.\.\.)`).FindStringSubmatch(line); m != nil {
			params = append(params, m[1])
		}
		line = regexp.MustCompile(`^mx\["(\w+)"\] = function\(`).ReplaceAllString(line, "function mx.$1(")
		if m := regexp.MustCompile(`^function mx\.(\S+)\((.*)\) end$`).FindStringSubmatch(line); m != nil {
			require.NotContains(t, found, m[1])
			require.Equal(t, strings.Join(params, ", "), m[2], m[1])
			found[m[1]], params = strings.Split(m[2], ", "), nil
		}
	}
	s := New(Options{Libraries: true})
	defer s.Close()
	loadLibrary(s)
	require.Len(t, found, len(s.mx.funcs))
	for name := range s.mx.funcs {
		require.Contains(t, found, name)
	}
	require.Equal(t, []string{"a", "axis", "precise", "..."}, found["softmax"])
	require.Contains(t, text, "---@field precise? boolean\n")
	require.Contains(t, text, "---@class mx.nn\n")
	require.Contains(t, found, "utils.tree_flatten") // of a module that is loaded when it is used
}

// TestTypesKnowTheExamples: whatever the examples and the modules written in Lua call of mx is declared.
func TestTypesKnowTheExamples(t *testing.T) {
	t.Parallel()
	text := mxTypes()
	call := regexp.MustCompile(`\bmx\.([a-zA-Z_0-9.]+)\s*[({"]`)
	calls := 0
	for _, pattern := range []string{"../examples/*.lua", "../docs/*.md"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, files)
		for _, file := range files {
			source, err := os.ReadFile(file)
			require.NoError(t, err)
			for _, m := range call.FindAllStringSubmatch(string(source), -1) {
				if strings.HasSuffix(file, ".md") && !strings.HasSuffix(file, "lua.md") {
					continue
				}
				calls++
				name := m[1]
				last := name[strings.LastIndexByte(name, '.')+1:]
				found := strings.Contains(text, "function mx."+name+"(") ||
					strings.Contains(text, "mx[\""+last+"\"] = function(") ||
					strings.Contains(text, "---@class mx."+name+"\n") || strings.Contains(text, "---@field "+last+" ")
				require.True(t, found, "%s calls mx.%s", file, name)
			}
		}
	}
	require.Greater(t, calls, 100)
}
