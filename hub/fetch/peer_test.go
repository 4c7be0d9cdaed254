package fetch

import (
	"bytes"
	"crypto/sha256"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mlxlua/mlxlua/hub"
	"github.com/mlxlua/mlxlua/hub/hubtest"
	"github.com/stretchr/testify/require"
)

var python = flag.String("python", "", "a Python with huggingface_hub: compare the caches, too")

// model are files of a repository: those that a model needs, in two shards, and others.
func model() []hubtest.File {
	return []hubtest.File{
		{Path: ".gitattributes", Text: []byte("*.safetensors filter=lfs\n")},
		{Path: "README.md", Text: []byte("# A model\n")},
		{Path: "additional_chat_templates/tools.jinja", Text: []byte("{{ tools }}")},
		{Path: "config.json", Text: []byte(`{"model_type": "llama"}`)},
		{Path: "consolidated.safetensors", Text: []byte("the same weights again"), LFS: true},
		{Path: "generation_config.json", Text: []byte(`{"eos_token_id": 2}`)},
		{Path: "model-00001-of-00002.safetensors", Text: bytesOf(700_000, 1), LFS: true},
		{Path: "model-00002-of-00002.safetensors", Text: bytesOf(300_001, 2), LFS: true},
		{Path: "model.safetensors.index.json", Text: []byte(`{"metadata": {}, "weight_map": {` +
			`"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}}`)},
		{Path: "onnx/model.onnx", Text: bytesOf(1000, 3), LFS: true},
		{Path: "pytorch_model.bin", Text: bytesOf(1000, 4), LFS: true},
		{Path: "tokenizer.json", Text: bytesOf(50_000, 5), LFS: true},
		{Path: "tokenizer_config.json", Text: []byte(`{"bos_token": "<s>"}`)},
		{Path: "vocab.json", Text: []byte(`{"bos_token": "<s>"}`)}, // the same bytes: one blob
		{Path: "日本 \u007f<&>\U0001f600.txt", Text: []byte("a name beyond ASCII")},
	}
}

// needed are those that a model needs.
var needed = []string{"additional_chat_templates/tools.jinja", "config.json", "generation_config.json",
	"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors", "model.safetensors.index.json",
	"tokenizer.json", "tokenizer_config.json", "vocab.json"}

// bytesOf are bytes without a pattern.
func bytesOf(n int, seed uint64) []byte {
	out := make([]byte, n)
	for i := range out {
		seed = seed*6364136223846793005 + 1442695040888963407
		out[i] = byte(seed >> 56)
	}
	return out
}

// contents are the entries of a folder: path, and where a link leads or what a file's bytes are. mode is what is told
// of their permissions.
func contents(t *testing.T, dir string, mode fs.FileMode) string {
	t.Helper()
	var out strings.Builder
	require.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		require.NoError(t, err)
		info, err := e.Info()
		require.NoError(t, err)
		name, err := filepath.Rel(dir, path)
		require.NoError(t, err)
		what := ""
		switch {
		case info.Mode().IsRegular():
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			if name == "CACHEDIR.TAG" { // the standard says its first line only
				text, _, _ = bytes.Cut(text, []byte("\n"))
			}
			what = fmt.Sprintf(" %d %x", len(text), sha256.Sum256(text))
		case info.Mode()&fs.ModeSymlink != 0:
			what, err = os.Readlink(path)
			require.NoError(t, err)
			what = " -> " + what
		}
		told := info.Mode() & (mode | fs.ModeType)
		if filepath.Base(filepath.Dir(path)) == "trees" {
			told |= 0o044 & mode // huggingface_hub leaves this file to its owner alone
		}
		fmt.Fprintf(&out, "%v %s%s\n", told, filepath.ToSlash(name), what)
		return nil
	}))
	return out.String()
}

// TestPeer compares the cache with the one that huggingface_hub makes of the same hub, byte for byte and link for link,
// and has each go on with the other's:
//
//	go test ./hub/fetch -run TestPeer -python python3
//
// testdata/cache.txt is what huggingface_hub 2.4.0 made.
func TestPeer(t *testing.T) {
	s := hubtest.New(t, "org/model", model()...)
	ours := filepath.Join(t.TempDir(), "ours")
	path, err := Pull(t.Context(), request(s, ours))
	require.NoError(t, err)
	revised := request(s, ours)
	revised.Revision = "refs/pr/1"
	same, err := Pull(t.Context(), revised)
	require.NoError(t, err)
	require.Equal(t, path, same)
	golden, err := os.ReadFile("testdata/cache.txt")
	require.NoError(t, err)
	require.Equal(t, string(golden), contents(t, ours, 0))
	t.Run("beside huggingface_hub", func(t *testing.T) {
		if *python == "" {
			t.Skip("it wants -python")
		}
		asPeer(t, s, ours)
	})
}

// asPeer compares ours, a cache of main and refs/pr/1, with the one that huggingface_hub makes of the same hub.
func asPeer(t *testing.T, s *hubtest.Server, ours string) {
	theirs := filepath.Join(t.TempDir(), "theirs")
	peer := func(cache, revision string) string {
		cmd := exec.Command(*python, append([]string{"testdata/peer.py", cache, "org/model", revision}, needed...)...)
		cmd.Env = append(os.Environ(), "HF_ENDPOINT="+s.URL, "HF_HOME="+t.TempDir(), "HF_HUB_DISABLE_XET=1",
			"HF_HUB_DISABLE_TELEMETRY=1", "HF_HUB_DISABLE_PROGRESS_BARS=1", "HF_TOKEN=")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		return string(out)
	}
	peer(theirs, "main")
	said := peer(theirs, "refs/pr/1")
	require.Equal(t, contents(t, theirs, fs.ModePerm), contents(t, ours, fs.ModePerm))

	// Ours goes on with theirs, theirs with ours, and neither asks for a file.
	before := len(s.Asked())
	require.Equal(t, strings.ReplaceAll(said, theirs, ours), peer(ours, "refs/pr/1"))
	again, err := Pull(t.Context(), request(s, theirs))
	require.NoError(t, err)
	require.Equal(t, filepath.Join(theirs, "models--org--model", "snapshots", hubtest.Commit), again)
	for _, a := range s.Asked()[before:] {
		require.NotContains(t, a.Path, "resolve")
	}
	require.Equal(t, contents(t, theirs, fs.ModePerm), contents(t, ours, fs.ModePerm))
}

// request asks a server for its model.
func request(s *hubtest.Server, cache string) Request {
	return Request{Name: s.Name, Hub: Hub{Endpoint: s.URL}, Cache: hub.Cache{Dir: cache}}
}
