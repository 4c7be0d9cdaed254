package luabind

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/luabind/lua51"
)

// host.read gives all of a file, which counts as the script's memory, or nil and why.
func TestModelHostReads(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"some": "a\r\n\x00b", "none": "", "much": strings.Repeat("x", 9<<20)} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	s := New(Options{Libraries: true, Limits: Limits{Limits: lua51.Limits{Memory: 8 << 20}}})
	defer s.Close()
	_, err := s.Run(t.Context(), strings.NewReader(`
		read, dir = require("lm.host").read, ...
		assert(read(dir .. "/some") == "a\r\n\0b" and read(dir .. "/none") == "")
		for _, path in ipairs{dir .. "/nowhere", dir} do
			local text, why = read(path)
			assert(text == nil and why:find(path, 1, true), why)
		end`), "read.lua", lua.LString(dir))
	require.NoError(t, err)
	_, err = s.Run(t.Context(), strings.NewReader(`return read(dir .. "/much")`), "read.lua")
	require.ErrorIs(t, err, ErrLimit)
}
