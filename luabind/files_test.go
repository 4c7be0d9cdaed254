package luabind

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal/testdevice"
)

// A state without Lua's io library, or in a sandbox, reads and writes no files by way of mx either.
func TestNoFilesWithoutLibraries(t *testing.T) {
	t.Parallel()
	plain := New(Options{Stdout: &strings.Builder{}})
	t.Cleanup(plain.Close)
	sandbox := New(Options{Stdout: &strings.Builder{}, Libraries: true, Sandbox: true})
	t.Cleanup(sandbox.Close)
	for name, call := range map[string]string{
		"load": `mx.load("../tensor/format/testdata/int16.npy")`, "save": `mx.save("a", mx.ones(1))`,
		"savez": `mx.savez("a", mx.ones(1))`, "savez_compressed": `mx.savez_compressed("a", mx.ones(1))`,
		"save_safetensors": `mx.save_safetensors("a", {a = mx.ones(1)})`, "save_gguf": `mx.save_gguf("a", {a = mx.ones(1)})`,
		"data.load_csv":   `mx.data.load_csv("../tensor/format/testdata/table.csv")`,
		"data.load_idx":   `mx.data.load_idx("../tensor/format/testdata/digits.idx")`,
		"data.load_image": `mx.data.load_image("../internal/picture/testdata/rgb.png")`,
		"plot.line":       `mx.plot.line({1, 2}, {file = "a.png"})`,
		"plot.image":      `mx.plot.image(mx.ones({2, 2}), {file = "a.png"})`,
		"data.save_image": `mx.data.save_image("a", mx.ones({1, 1}))`,
	} {
		for _, s := range []*State{plain, sandbox} {
			_, err := s.Run(context.Background(), strings.NewReader(call), "files")
			require.ErrorContains(t, err, "["+name+"] this state has no access to files")
		}
	}
}

// A kernel that reads a file's pages after somebody cut them off fails, and the program goes on.
func TestShortenedFile(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("the file is cut short as Linux does it")
	}
	testdevice.NeedsCPU(t, "kernels read the file's pages where they lie")
	path := filepath.Join(t.TempDir(), "a.safetensors")
	s := New(Options{Stdout: &strings.Builder{}, Libraries: true})
	t.Cleanup(s.Close)
	run := func(script string) error {
		_, err := s.Run(context.Background(), strings.NewReader(script), "files")
		return err
	}
	require.NoError(t, run(`mx.save_safetensors("`+path+`", {a = mx.ones({512, 512}), b = mx.zeros({512, 512})})`))
	require.NoError(t, run(`x = mx.load("`+path+`")`))
	require.NoError(t, os.Truncate(path, 8192))
	require.ErrorContains(t, run(`mx.eval(x.a + 1)`), "kernel fault at address")
	require.ErrorContains(t, run(`print(x.b)`), "was the file changed while it was in use?")
	require.ErrorContains(t, run(`x.b:tolist()`), "was the file changed while it was in use?")
	require.NoError(t, run(`assert((mx.ones(4) + 1):sum():item() == 8)`))
}
