package luabind

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/internal/brief"
)

// What config.json leaves out means what transformers means by it, or is an error: see defaults.lua.
func TestModelDefaults(t *testing.T) {
	t.Parallel()
	brief.OnlyValues(t)
	names := goldenModels(t, "")
	if testing.Short() {
		names = []string{"deepseek_v3", "gemma3", "gpt_oss", "llama", "qwen2_moe", "qwen3_5_moe"}
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			out := runModel(t, "defaults.lua", name, t.TempDir())
			require.Contains(t, out, name)
			t.Log(out)
		})
	}
}

// A model of text and pictures as it is published, in floats and packed as mlx-lm does: see published.lua.
func TestPublishedModel(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"published", "partly"} {
		require.Contains(t, runModel(t, "published.lua", name, t.TempDir()), name)
	}
}

// The table of defaults is transformers': see classes.lua.
func TestModelDefaultsAreThoseOfTransformers(t *testing.T) {
	t.Parallel()
	folder, err := filepath.Abs("testdata/lm")
	require.NoError(t, err)
	var out strings.Builder
	s := New(Options{Libraries: true, Stdout: &out})
	defer s.Close()
	_, err = s.RunFile(t.Context(), filepath.Join(folder, "classes.lua"), lua.LString(folder))
	require.NoError(t, err)
	require.Contains(t, out.String(), "families")
}

// Texts beyond the length that a model was made for are one text however they are read: see lengths.lua.
func TestModelLengths(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"llama_longrope", "phi3", "llama_dynamic"} {
		t.Run(name, func(t *testing.T) {
			require.Contains(t, runModel(t, "lengths.lua", name, filepath.Join(t.TempDir(), "model")), name)
		})
	}
}
