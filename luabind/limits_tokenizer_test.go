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

// TestTokenizersCountForTheState: a tokenizer's vocabulary is the script's memory, once for all its functions, and as
// long as one of these is reached.
func TestTokenizersCountForTheState(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../text/tokenizer/testdata/gpt2.json")
	require.NoError(t, err)
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "tokenizer.json"), raw, 0o600))
	const limit = 8 << 20
	s := New(Options{Libraries: true, Limits: Limits{Limits: lua51.Limits{Memory: limit}}})
	defer s.Close()
	s.L.SetGlobal("folder", lua.LString(folder))
	_, err = s.Run(t.Context(), strings.NewReader(`host, n = require("lm.host"), 0
		for i = 1, 300 do local tok = host.tokenizer(folder) n = n + tok.size end`), "dropped")
	require.NoError(t, err, "what is dropped does not count")
	_, err = s.Run(t.Context(), strings.NewReader(`kept, n = {}, 0
		for i = 1, 300 do kept[i] = host.tokenizer(folder).id n = i end`), "kept")
	require.ErrorContains(t, err, "the script's memory is full")
	n := float64(s.L.GetGlobal("n").(lua.LNumber))
	require.InDelta(t, 100, n, 50, "80 KB each")
}
