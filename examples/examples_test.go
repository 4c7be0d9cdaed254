// Package examples is the examples' test.
package examples

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua"
	"github.com/mlxlua/mlxlua/tensor"
)

// TestMain has arrays poisoned that a look misses: a script that uses one fails.
func TestMain(m *testing.M) {
	tensor.Poison(true)
	os.Exit(m.Run())
}

// arguments make scripts that take long by themselves short.
var arguments = map[string][]any{
	"hybrid_moe.lua":  {"--layers", "4", "--steps", "2", "--batches", "1,3"},
	"digits.lua":      {"--samples", "600", "--epochs", "1"},
	"gpt.lua":         {"--text", "4000", "--epochs", "1", "--size", "8"},
	"lora.lua":        {"--text", "3000", "--epochs", "1"},
	"nbody.lua":       {"--bodies", "256", "--steps", "6"},
	"grid_sample.lua": {"--steps", "10"},
	"life.lua":        {"40"},
}

// Every script runs to its end: a failed check of its own is an error, an exit with a status too.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("*.lua")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(file, func(t *testing.T) {
			var out bytes.Buffer
			s, err := mlxlua.Open(mlxlua.Options{Libraries: true, Stdout: &out, Stderr: io.Discard})
			require.NoError(t, err)
			defer s.Close()
			_, err = s.RunFile(t.Context(), file, arguments[file]...)
			require.NoError(t, err, out.String())
			require.NotEmpty(t, out.String())
			require.NotRegexp(t, `\bnan\b`, out.String()) // texts that a model writes may have it in words
		})
	}
}

// Most of the digits that the example draws are read right after its six epochs.
func TestDigits(t *testing.T) {
	if testing.Short() {
		t.Skip("some seconds")
	}
	var out bytes.Buffer
	s, err := mlxlua.Open(mlxlua.Options{Libraries: true, Stdout: &out, Stderr: io.Discard})
	require.NoError(t, err)
	defer s.Close()
	_, err = s.RunFile(t.Context(), "digits.lua")
	require.NoError(t, err, out.String())
	result := regexp.MustCompile(`([0-9.]+) % of the test's digits are read right, after ([0-9.]+) s`).
		FindStringSubmatch(out.String())
	require.NotNil(t, result, out.String())
	t.Log(result[0])
	right, err := strconv.ParseFloat(result[1], 64)
	require.NoError(t, err)
	require.GreaterOrEqual(t, right, 97.0)
}

// The digits example reads MNIST's files, plain and compressed: here of 40 pictures, of which 20 are all black and of
// label 0, 20 white and of label 1.
func TestDigitsOfMNIST(t *testing.T) {
	dir := t.TempDir()
	images, labels := []byte{0, 0, 8, 3, 0, 0, 0, 40, 0, 0, 0, 28, 0, 0, 0, 28}, []byte{0, 0, 8, 1, 0, 0, 0, 40}
	for i := range 40 {
		labels = append(labels, byte(i%2))
		images = append(images, bytes.Repeat([]byte{byte(255 * (i % 2))}, 784)...)
	}
	for _, set := range []string{"train", "t10k"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, set+"-images-idx3-ubyte"), images, 0o600))
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, err := w.Write(labels)
		require.NoError(t, err)
		require.NoError(t, w.Close())
		require.NoError(t, os.WriteFile(filepath.Join(dir, set+"-labels-idx1-ubyte.gz"), b.Bytes(), 0o600))
	}
	var out bytes.Buffer
	s, err := mlxlua.Open(mlxlua.Options{Libraries: true, Stdout: &out, Stderr: io.Discard})
	require.NoError(t, err)
	defer s.Close()
	_, err = s.RunFile(t.Context(), "digits.lua", "--mnist", dir)
	require.NoError(t, err, out.String())
	require.Contains(t, out.String(), "100.00 % of the test's digits are read right")
}

// The hybrid model's step is the same eager and compiled: of both the largest difference from plain operations is
// printed, and more than 1e-4 is an exit with status 1.
func TestHybridEager(t *testing.T) {
	var out bytes.Buffer
	s, err := mlxlua.Open(mlxlua.Options{Libraries: true, Stdout: &out, Stderr: io.Discard})
	require.NoError(t, err)
	defer s.Close()
	_, err = s.RunFile(t.Context(), "hybrid_moe.lua", "--eager", "--layers", "4", "--steps", "2", "--batches", "2")
	require.NoError(t, err, out.String())
	require.Contains(t, out.String(), "4 layers, eager\nbatch  2: 2 steps, ")
	_, err = s.RunFile(t.Context(), "hybrid_moe.lua", "--layer", "4")
	require.ErrorContains(t, err, "unknown option --layer")
}

// The embedding program prints what softmax of [[1, 2, 3], [4, 5, 6]] times [[1, 0], [0, 1], [1, -1]] is.
func TestEmbed(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "run", "./embed").CombinedOutput()
	require.NoError(t, err, string(out))
	// x w = [[4, -1], [10, -1]]; exp(-5) = 0.0067, exp(-11) = 1.7e-5
	require.Equal(t, "scored 2 rows\n  0.9933  0.0067\n  1.0000  0.0000\n", string(out))
}

// The program with a language model prints an answer of 20 tokens.
func TestLMEmbed(t *testing.T) {
	folder, err := filepath.Abs("../luabind/testdata/lm")
	require.NoError(t, err)
	dir := filepath.Join(t.TempDir(), "tiny")
	s, err := mlxlua.Open(mlxlua.Options{Libraries: true, Stdout: &bytes.Buffer{}})
	require.NoError(t, err)
	defer s.Close()
	_, err = s.RunFile(t.Context(), filepath.Join(folder, "tiny.lua"), folder, dir,
		"../text/tokenizer/testdata/llama3.json")
	require.NoError(t, err)
	out, err := exec.CommandContext(t.Context(), "go", "run", "./lm_embed", dir, "hello there").CombinedOutput()
	require.NoError(t, err, string(out))
	require.Regexp(t, "(?s)^.{12,}\n20 tokens\n$", string(out))

	// it serves until it is interrupted
	program := filepath.Join(t.TempDir(), "lm_embed.exe")
	out, err = exec.CommandContext(t.Context(), "go", "build", "-o", program, "./lm_embed").CombinedOutput()
	require.NoError(t, err, string(out))
	server := exec.CommandContext(t.Context(), program, "-serve", "127.0.0.1:0", dir)
	said, err := server.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, server.Start())
	line, err := bufio.NewReader(said).ReadString('\n')
	require.NoError(t, err)
	url := strings.TrimSpace(line)
	for path, want := range map[string]string{"/hello": "hello", "/v1/models": `"id":"mine"`} {
		resp, err := http.Get(url + path)
		require.NoError(t, err)
		b, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		require.NoError(t, err)
		require.Contains(t, string(b), want)
	}
	resp, err := http.Post(url+"/v1/completions", "application/json",
		strings.NewReader(`{"prompt": "x", "max_tokens": 3}`))
	require.NoError(t, err)
	resp.Body.Close()
	require.Equal(t, 200, resp.StatusCode)
	http.DefaultClient.CloseIdleConnections()
	if runtime.GOOS == "windows" { // which has no interrupts for other programs
		require.NoError(t, server.Process.Kill())
		_ = server.Wait() // it says that it was killed
		return
	}
	require.NoError(t, server.Process.Signal(os.Interrupt))
	require.NoError(t, server.Wait())
}
