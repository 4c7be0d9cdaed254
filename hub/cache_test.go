package hub_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mlxlua/mlxlua/hub"
	"github.com/stretchr/testify/require"
)

// The cache is where the hub's own tools have it: their documentation, and huggingface_hub/constants.py.
func TestDefaultCache(t *testing.T) {
	for _, name := range []string{"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME"} {
		t.Setenv(name, "")
	}
	t.Setenv("HOME", "/u")
	t.Setenv("USERPROFILE", "/u") // HOME's name on Windows
	t.Setenv("SCRATCH", "/scratch")
	for _, step := range []struct{ name, value, want string }{
		{"HOME", "/u", "/u/.cache/huggingface/hub"},
		{"XDG_CACHE_HOME", "/cache", "/cache/huggingface/hub"},
		{"HF_HOME", "~/hf", "/u/hf/hub"},
		{"HUGGINGFACE_HUB_CACHE", "/older", "/older"},
		{"HF_HUB_CACHE", "$SCRATCH/hub", "/scratch/hub"},
		{"HF_HUB_CACHE", "/a/${NO_SUCH_NAME}", "/a/${NO_SUCH_NAME}"},
	} {
		t.Setenv(step.name, step.value)
		c, err := hub.DefaultCache()
		require.NoError(t, err)
		require.Equal(t, step.want, filepath.ToSlash(c.Dir))
	}
}

func TestCheckName(t *testing.T) {
	for _, name := range []string{"gpt2", "org/model", "Qwen/Qwen3-0.6B", "a/b", "1/2", "_/_", strings.Repeat("a", 96)} {
		require.NoError(t, hub.CheckName(name), name)
	}
	for _, name := range []string{"", "/", "a/", "/a", "a/b/c", "../a", "a/..", "a--b", "a/b--c", "a..b", ".a", "-a", "a-",
		"a.", "a b", "a\\b", "a/b.git", "ä", strings.Repeat("a", 97), "a\n"} {
		require.Error(t, hub.CheckName(name), name)
	}
}

// A model is found by the commit that main stands for; of what is not there the error says how to get it.
func TestFind(t *testing.T) {
	c := hub.Cache{Dir: t.TempDir()}
	missing := func(name, want string) {
		t.Helper()
		_, err := c.Find(name)
		require.ErrorContains(t, err, want)
	}
	missing("org/model", "[hub] there is no model org/model: looked for the directories org/model and "+
		filepath.Join(c.Dir, "models--org--model", "snapshots")+`; "mlxlua lm pull org/model" downloads it`)
	missing("a/b/c", "[hub] there is no model a/b/c: no such directory, and no name of a repository")
	missing("../x", "no name of a repository")
	at := filepath.Join(c.Dir, "models--org--model")
	require.NoError(t, os.MkdirAll(filepath.Join(at, "refs"), 0o777))
	require.NoError(t, os.MkdirAll(filepath.Join(at, "snapshots"), 0o777))
	require.NoError(t, os.WriteFile(filepath.Join(at, "refs", "main"), nil, 0o666))
	missing("org/model", "downloads it")
	require.NoError(t, os.WriteFile(filepath.Join(at, "refs", "main"), []byte("abc"), 0o666))
	missing("org/model", "downloads it") // a snapshot of which nothing has come
	snapshot := filepath.Join(at, "snapshots", "abc")
	require.NoError(t, os.MkdirAll(snapshot, 0o777))
	found := func(want string) {
		t.Helper()
		path, err := c.Find("org/model")
		require.NoError(t, err)
		require.Equal(t, want, path)
	}
	found(snapshot)
	one := filepath.Join(snapshot, "one.gguf")
	require.NoError(t, os.WriteFile(one, nil, 0o666))
	found(one)
	require.NoError(t, os.WriteFile(filepath.Join(snapshot, "two.gguf"), nil, 0o666))
	missing("org/model", "which file of 2? Give its path: "+one)
	require.NoError(t, os.WriteFile(filepath.Join(snapshot, "config.json"), nil, 0o666))
	found(snapshot)
}
