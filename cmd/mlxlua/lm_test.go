package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/mlxlua/mlxlua/hub/hubtest"
	"github.com/mlxlua/mlxlua/internal/brief"
	"github.com/stretchr/testify/require"
)

// tinyModel is a model directory with random weights and a small tokenizer.
func tinyModel(t *testing.T) string {
	t.Helper()
	folder, err := filepath.Abs("../../luabind/testdata/lm")
	require.NoError(t, err)
	dir := filepath.Join(t.TempDir(), "tiny")
	_, stderr, status := command(t, nil, filepath.Join(folder, "tiny.lua"), folder, dir,
		"../../text/tokenizer/testdata/llama3.json")
	require.Zero(t, status, stderr)
	return dir
}

// command runs the program on arguments with a text as standard input.
func command(t *testing.T, input *string, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	in, err := os.CreateTemp(t.TempDir(), "in")
	require.NoError(t, err)
	defer in.Close()
	if input != nil {
		_, err = in.WriteString(*input)
		require.NoError(t, err)
		_, err = in.Seek(0, io.SeekStart)
		require.NoError(t, err)
	}
	var out, errs bytes.Buffer
	status = run(append([]string{"mlxlua"}, args...), in, &out, &errs)
	return out.String(), errs.String(), status
}

func TestModelCommands(t *testing.T) {
	dir := tinyModel(t)
	answer := func(args ...string) string {
		out, errs, status := command(t, nil, append([]string{"lm", "generate", "--model", dir, "-m", "12",
			"--verbose", "false"}, args...)...)
		require.Zero(t, status, errs)
		require.Empty(t, errs)
		return out
	}
	greedy := answer("-p", "hello there")
	require.Greater(t, len(greedy), 12)
	require.Equal(t, greedy, answer("--prompt=hello there", "--seed", "3"))
	drawn := answer("-p", "hello there", "--temp", "1", "--seed", "3")
	require.NotEqual(t, greedy, drawn)
	require.Equal(t, drawn, answer("-p", "hello there", "--temp", "1", "--seed", "3"))
	require.NotEqual(t, drawn, answer("-p", "hello there", "--temp", "1", "--seed", "4"))

	// A prompt from a file and from standard input, in pieces, from a file of what was made of it.
	file := filepath.Join(t.TempDir(), "prompt")
	require.NoError(t, os.WriteFile(file, []byte("hello there"), 0o644))
	require.Equal(t, greedy, answer("--prompt-file", file, "--prefill-step-size", "1"))
	text := "hello there"
	out, _, status := command(t, &text, "lm", "generate", "--model", dir, "-m", "12", "--verbose", "false", "-p", "-")
	require.Zero(t, status)
	require.Equal(t, greedy, out)
	cached := filepath.Join(t.TempDir(), "prompt.safetensors")
	for range 2 {
		require.Equal(t, greedy, answer("-p", "hello there", "--prompt-cache-file", cached))
	}
	require.Equal(t, answer("-p", "other"), answer("-p", "other", "--prompt-cache-file", cached))

	// A text that ends the answer is not part of it.
	stop := strings.TrimSpace(greedy)[3:6]
	require.Equal(t, greedy[:strings.Index(greedy, stop)]+"\n", answer("-p", "hello there", "--stop", stop))

	// Figures.
	out, _, _ = command(t, nil, "lm", "generate", "--model", dir, "-m", "12", "-p", "hello there")
	require.Contains(t, out, "==========\n"+greedy+"==========\nPrompt: ")
	require.Contains(t, out, "Generation: 12 tokens, ")
	require.Contains(t, out, "Peak memory: ")

	// Packed, and back.
	packed := filepath.Join(t.TempDir(), "packed")
	out, errs, status := command(t, nil, "lm", "quantize", "--model", dir, "--mlx-path", packed, "--q-group-size", "32",
		"--q-bits", "8")
	require.Zero(t, status, errs)
	require.Contains(t, out, "bits per weight")
	require.FileExists(t, filepath.Join(packed, "tokenizer.json"))
	out, _, _ = command(t, nil, "lm", "show", "--model", packed, "--tensors")
	require.Contains(t, out, "packed: 8 bits in groups of 32, affine")
	require.Contains(t, out, "model.layers.1.mlp.down_proj.scales")
	_, errs, status = command(t, nil, "lm", "convert", "--model", dir, "--mlx-path", packed)
	require.Equal(t, 1, status)
	require.Contains(t, errs, "is there already")
	out, errs, status = command(t, nil, "lm", "convert", "-q", "--model", dir, "--mlx-path", packed+"2")
	require.Zero(t, status, errs)
	require.Contains(t, out+errs, "down_proj", "what stays whole, since its rows are no multiple of a group, is named")
	require.FileExists(t, filepath.Join(packed+"2", "config.json"))

	out, errs, status = command(t, nil, "lm", "bench", "--model", dir, "-p", "8", "-g", "3", "-n", "1", "-b", "1", "-b",
		"3")
	require.Zero(t, status, errs)
	require.Regexp(t, `(?s)^prompt 8: [\d.]+ tokens a second\nanswers 1 x 3: [\d.]+ .*\nanswers 3 x 3: [\d.]+ `, out)

	// What is wrong is said in a line.
	for text, args := range map[string][]string{
		"there is no command nope":             {"nope"},
		"--batch-size 0: want at least 1":      {"bench", "--model", dir, "--batch-size", "0"},
		"--tls-cert and --tls-key need each":   {"server", "--model", dir, "--tls-cert", "x"},
		"--tokenizer is for one model":         {"server", "--model", dir, "--model", dir, "--tokenizer", dir},
		"names are not empty, and no two are":  {"server", "--model", dir, "--model", dir},
		"cannot be loaded: lm: [hub] there":    {"server", "--model", "a/b"},
		"unrecognized argument --foo":          {"generate", "--foo"},
		"--temp warm: want a number":           {"generate", "--temp", "warm"},
		"--model is needed":                    {"generate", "-p", "x"},
		"there is no model a/b: looked for":    {"generate", "--model", "a/b", "-p", "x"},
		"--data-path is needed":                {"perplexity", "--model", dir},
		"temp = -1, want a number from 0":      {"generate", "--model", dir, "-p", "x", "--temp", "-1"},
		"want float16, bfloat16 or float32":    {"convert", "--model", dir, "--dtype", "int8"},
		"--quantize and --dequantize exclude ": {"convert", "--model", dir, "-q", "-d"},

		"--q-bits is of no use without --quantize":       {"convert", "--model", dir, "--q-bits", "4"},
		"--q-group-size is of no use without --quantize": {"convert", "--model", dir, "--q-group-size", "32"},
		"--q-mode is of no use without --quantize":       {"convert", "--model", dir, "--q-mode", "mxfp4"},
		"--quant-predicate is of no use without":         {"convert", "--model", dir, "--quant-predicate", "mixed_4_6"},

		"--q-bits and --quant-predicate, which says": {"quantize", "--model", dir, "--q-bits", "4", "--quant-predicate",
			"mixed_4_6"},
		"--q-mode mxfp4 and --quant-predicate, which": {"quantize", "--model", dir, "--q-mode", "mxfp4",
			"--quant-predicate", "mixed_4_6"},
	} {
		_, errs, status := command(t, nil, append([]string{"lm"}, args...)...)
		require.Equal(t, 1, status, text)
		require.Contains(t, errs, text)
		require.Equal(t, 1, strings.Count(errs, "\n"), errs)
	}
}

// The perplexity of a text is that of its tokens' log-probabilities, which the logits of one pass give.
func TestModelPerplexity(t *testing.T) {
	dir := tinyModel(t)
	text := strings.Repeat("hello there, how are you? ", 20)
	file := filepath.Join(t.TempDir(), "text")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	out, errs, status := command(t, nil, "lm", "perplexity", "--model", dir, "--data-path", file, "--sequence-length",
		"16", "--batch-size", "3")
	require.Zero(t, status, errs)
	script := filepath.Join(t.TempDir(), "perplexity.lua")
	require.NoError(t, os.WriteFile(script, []byte(`
local mx, lm = require("mx"), require("lm")
local dir, text = ...
local s = lm.open(dir)
local ids, sum, n = s:tokens(text), 0, 0
for from = 0, math.floor(#ids / 16) - 1 do
  local row = {unpack(ids, from * 16 + 1, from * 16 + 16)}
  local p = mx.softmax(s.model(mx.array({row}, mx.int32), lm.caches(s.model))[0], -1):tolist()
  for i = 1, 15 do sum, n = sum - math.log(p[i][row[i + 1] + 1]), n + 1 end
end
print(("%.17g %d"):format(math.exp(sum / n), n))`), 0o644))
	want, errs, status := command(t, nil, script, dir, text)
	require.Zero(t, status, errs)
	var wantValue, value, slack float64
	var wantTokens, tokens int
	_, err := fmt.Sscan(want, &wantValue, &wantTokens)
	require.NoError(t, err)
	_, err = fmt.Sscanf(out, "Perplexity: %f +- %f\nTokens: %d,", &value, &slack, &tokens)
	require.NoError(t, err)
	require.InEpsilon(t, wantValue, value, 1e-5)
	require.Equal(t, wantTokens, tokens)
}

// A chat remembers what was said: three lines are three answers, r begins anew, q ends it.
func TestModelChat(t *testing.T) {
	dir := tinyModel(t)
	lines := "hello\nhow are you\nr\nhello\nq\nnever said\n"
	out, errs, status := command(t, &lines, "lm", "chat", "--model", dir, "-m", "6")
	require.Zero(t, status, errs)
	answers := strings.Split(strings.TrimRight(out, "\n"), "\n")
	require.GreaterOrEqual(t, len(answers), 3)
	require.Equal(t, answers[0], answers[len(answers)-1])
}

// interrupting is a writer that sends the process Ctrl-C at its n-th write.
type interrupting struct {
	text bytes.Buffer
	left int
}

func (w *interrupting) Write(p []byte) (int, error) {
	if w.left--; w.left == 0 {
		if err := interruptSelf(); err != nil {
			return 0, err
		}
	}
	return w.text.Write(p)
}

// Ctrl-C ends an answer, not the program: what was said and the figures are there.
func TestModelInterrupt(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no signals to oneself")
	}
	dir := tinyModel(t)
	out, errs := &interrupting{left: 4}, &bytes.Buffer{}
	in, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer in.Close()
	status := run([]string{"mlxlua", "lm", "generate", "--model", dir, "-p", "hello", "-m", "100000"}, in, out, errs)
	require.Equal(t, 130, status, errs.String())
	require.Contains(t, out.text.String(), "Generation: ")
	require.NotContains(t, out.text.String(), "Generation: 100000")
}

// tinyHub is a hub that has a model directory as org/name, and an empty cache, which the environment names.
func tinyHub(t *testing.T, dir string) (s *hubtest.Server, cache string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var files []hubtest.File
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		require.NoError(t, err)
		files = append(files, hubtest.File{Path: e.Name(), Text: text, LFS: len(text) > 10_000})
	}
	s, cache = hubtest.New(t, "org/name", files...), t.TempDir()
	for name, value := range map[string]string{"HF_ENDPOINT": s.URL, "HF_HUB_CACHE": cache, "HF_HOME": t.TempDir(),
		"HF_TOKEN": "", "HF_HUB_OFFLINE": "", "HF_HUB_DISABLE_SYMLINKS": ""} {
		t.Setenv(name, value)
	}
	return s, cache
}

// A model that is in no cache is not downloaded unless it is asked for; then its name stands for it.
func TestModelPull(t *testing.T) {
	dir := tinyModel(t)
	s, cache := tinyHub(t, dir)
	generate := []string{"lm", "generate", "--model", "org/name", "-p", "hello there", "-m", "5", "--verbose", "false"}
	_, errs, status := command(t, nil, generate...)
	require.Equal(t, 1, status)
	require.Contains(t, errs, `"mlxlua lm pull org/name" downloads it`)
	require.Empty(t, s.Asked())

	out, errs, status := command(t, nil, "lm", "pull", "org/name")
	require.Zero(t, status, errs)
	snapshot := filepath.Join(cache, "models--org--name", "snapshots", hubtest.Commit)
	require.Equal(t, snapshot+"\n", out)
	require.Contains(t, errs, "model.safetensors, ")
	require.NotContains(t, errs, "\x1b", "no terminal")
	want, _, _ := command(t, nil, "lm", "generate", "--model", dir, "-p", "hello there", "-m", "5", "--verbose", "false")
	before := len(s.Asked())
	out, errs, status = command(t, nil, generate...)
	require.Zero(t, status, errs)
	require.Equal(t, want, out)
	require.Len(t, s.Asked(), before)
	for text, args := range map[string][]string{
		"the name of a repository is needed": {}, "unrecognized argument org/other": {"org/name", "org/other"},
		"unrecognized argument --name": {"--name", "org/name"}, "no name of a repository": {"../name"},
		"has no such model, or it is a private one": {"org/other"},
		"the model has no such revision":            {"org/name", "--revision", "v2"},
		`no .gguf file has "Q4"`:                    {"--gguf", "Q4", "org/name"},
	} {
		_, errs, status := command(t, nil, append([]string{"lm", "pull"}, args...)...)
		require.Equal(t, 1, status, text)
		require.Contains(t, errs, text)
	}

	// A terminal has a bar, which makes room for lines and is gone in the end.
	script := filepath.Join(t.TempDir(), "bar.lua")
	require.NoError(t, os.WriteFile(script, []byte(`
		local function pull(request, progress, note)
			assert(request.name == "org/name" and request.revision == "v2" and request.gguf == nil)
			progress(5e6, 10e6) note("a line") progress(10e6, 10e6)
			return "path"
		end
		local arguments = {"pull", "org/name", "--revision", "v2"}
		assert(require("lm.cli").run(arguments, {terminal = true, pull = pull, write = io.write, note = io.write}) == 0)
		assert(require("lm.cli").run(arguments, {write = io.write, note = io.write}) == 1)`), 0o644))
	out, errs, status = command(t, nil, script)
	require.Zero(t, status, errs)
	require.Equal(t, "\rpulling [###############               ] 5/10 MB\r\x1b[Ka line\n\r\x1b[K\r\x1b[Kpath\n"+
		"mlxlua lm: this program downloads nothing\n", out)
}

// Ctrl-C ends a pull; the next one goes on from what has come.
func TestModelPullInterrupt(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no signals to oneself")
	}
	s, cache := tinyHub(t, tinyModel(t))
	s.Before = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Host != strings.TrimPrefix(s.Store, "http://") {
			return false
		}
		_ = interruptSelf()
		<-r.Context().Done()
		return true
	}
	_, errs, status := command(t, nil, "lm", "pull", "org/name")
	require.Equal(t, 130, status, errs)
	require.Contains(t, errs, "interrupted: what has come is kept, and the same command goes on from there\n")
	require.NoDirExists(t, filepath.Join(cache, "models--org--name", "snapshots"))
	s.Answer()
	_, errs, status = command(t, nil, "lm", "pull", "org/name")
	require.Zero(t, status, errs)
}

// The commands and scripts of docs/lm.md run as they stand, with a tiny model as DIR and Llama's script as my_model.
func TestModelPage(t *testing.T) {
	brief.OnlyValues(t)
	page, err := os.ReadFile("../../docs/lm.md")
	require.NoError(t, err)
	dir, work := tinyModel(t), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tokenizer_config.json"), []byte(
		`{"chat_template": "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"}`), 0o644))
	text := filepath.Join(work, "text.txt")
	require.NoError(t, os.WriteFile(text, []byte(strings.Repeat("hello there, how are you? ", 200)), 0o644))
	llama, err := os.ReadFile("../../scripts/lm/models/llama.lua")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(work, "my_model.lua"), llama, 0o644))
	config, err := os.ReadFile(filepath.Join(dir, "config.json"))
	require.NoError(t, err)
	mine := filepath.Join(work, "MINE")
	require.NoError(t, os.CopyFS(mine, os.DirFS(dir)))
	// What a family of somebody's own leaves out has no default.
	config = bytes.ReplaceAll(config, []byte(`"llama"`), []byte(`"mine", "hidden_act": "silu"`))
	require.NoError(t, os.WriteFile(filepath.Join(mine, "config.json"), config, 0o644))
	tinyHub(t, dir)
	places := strings.NewReplacer("DIR", dir, "text.txt", text, "MINE", mine)
	said, commands, scripts, script := "hello\nq\n", 0, 0, ""
	for line := range strings.Lines(string(page)) {
		if args, ok := strings.CutPrefix(line, "    mlxlua "); ok {
			commands++
			fields := []string{}
			for i, part := range strings.Split(strings.TrimSpace(places.Replace(args)), `"`) {
				if i%2 == 1 {
					fields = append(fields, part)
				} else {
					fields = append(fields, strings.Fields(part)...)
				}
			}
			_, errs, status := command(t, &said, fields...)
			require.Zero(t, status, line+errs)
		}
		switch {
		case line == "```lua\n":
			script = fmt.Sprintf("package.path = %q .. package.path\n", work+"/?.lua;")
		case line == "```\n" && script != "":
			scripts++
			file := filepath.Join(work, "block.lua")
			require.NoError(t, os.WriteFile(file, []byte(script), 0o644))
			_, errs, status := command(t, nil, file)
			require.Zero(t, status, script+errs)
			script = ""
		case script != "":
			script += places.Replace(line)
		}
	}
	require.Equal(t, []int{8, 3}, []int{commands, scripts})
}
