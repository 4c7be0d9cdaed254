package luabind

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/internal/brief"
	"github.com/mlxlua/mlxlua/internal/serial"
	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/testdevice"
)

var allModels = flag.Bool("models", false, "run the tests of language models for all families and in full: minutes")

// The scripts of scripts/lm answer as transformers does: check.lua compares logits in float32.
func TestModelsAnswerAsTransformers(t *testing.T) {
	t.Parallel()
	brief.OnlyValues(t)
	names, more := goldenModels(t, ""), []string(nil)
	if testing.Short() {
		names, more = []string{"cohere", "deepseek_v3", "gemma2", "gpt_oss", "llama", "qwen3_next"}, []string{"short"}
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			out := runModel(t, "check.lua", name, filepath.Join(t.TempDir(), "model"), more...)
			require.Contains(t, out, name)
			t.Log(out)
		})
	}
}

// goldenModels are the names of the golden files of a folder of testdata/lm.
func goldenModels(t *testing.T, folder string) (names []string) {
	files, err := filepath.Glob(filepath.Join("testdata/lm", folder, "*.json"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(file), ".json"))
	}
	return names
}

// runModel runs a script of testdata/lm on the folder's path, a golden file's name, the directory of a model and more
// arguments. It gives what the script prints.
func runModel(t *testing.T, script, name, dir string, more ...string) string {
	folder, err := filepath.Abs("testdata/lm")
	require.NoError(t, err)
	args := []lua.LValue{lua.LString(folder), lua.LString(name), lua.LString(dir)}
	for _, a := range more {
		args = append(args, lua.LString(a))
	}
	var out strings.Builder
	s := New(Options{Libraries: true, Stdout: &out})
	defer s.Close()
	_, err = s.RunFile(t.Context(), filepath.Join(folder, script), args...)
	require.NoError(t, err)
	return out.String()
}

// Models say what mlx-lm says, in floats and packed, and answer packed as their unpacked weights do: see said.lua. In
// full that is 200 tokens of every family: -models.
func TestModelsSayWhatMLXSays(t *testing.T) {
	t.Parallel()
	names, count := []string{"llama", "qwen3_next", "deepseek_v3"}, "4"
	switch {
	case *allModels:
		names, count = goldenModels(t, "peer"), "200"
	case testing.Short():
		t.Skip("it shows no kernel that other short tests do not")
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			require.Contains(t, runModel(t, "said.lua", name, filepath.Join(t.TempDir(), "model"), count), name)
		})
	}
}

// Packed and bounded caches: see caches.lua. In full that is every family: -models.
func TestModelCaches(t *testing.T) {
	t.Parallel()
	names := []string{"gemma2", "deepseek_v3"}
	switch {
	case *allModels:
		// gemma4_moe's scores are not divided by the root of a head's size: what few bits round grows beyond all bounds;
		// mamba2 has no keys and values
		names = slices.DeleteFunc(goldenModels(t, "peer"), func(name string) bool {
			return name == "gemma4_moe" || name == "mamba2"
		})
	case testing.Short():
		t.Skip("it shows no kernel that other short tests do not")
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			require.Contains(t, runModel(t, "caches.lua", name, filepath.Join(t.TempDir(), "model")), name)
		})
	}
}

// Decoding in batches of 16, 17 and 32 passes the validation of the device model, replays one trace and answers as
// transformers does. In full that is every family, in minutes: -models, and -count 10 for ten times.
func TestModelsUnderValidation(t *testing.T) {
	if testing.Short() {
		t.Skip("validation executes kernels slowly")
	}
	names, steps := []string{"qwen3_next"}, []string{"17", "2", "3"}
	if *allModels {
		names, steps = goldenModels(t, ""), []string{"16 17 32", "7", "9"} // windows of 8 are full at the end
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "model")
			runModel(t, "batches.lua", name, dir)
			withDevice(t, metal.DeviceOptions{Validate: true})
			t.Log(runModel(t, "batches.lua", name, dir, steps...))
		})
	}
}

// Validation finds nothing in a mixture of experts whose weights are stacked by the evaluation that uses them.
func TestLazyExpertsUnderValidation(t *testing.T) {
	brief.OnlyValues(t)
	withDevice(t, metal.DeviceOptions{Validate: true})
	folder, err := filepath.Abs("testdata/lm")
	require.NoError(t, err)
	s := New(Options{Libraries: true, Stdout: &strings.Builder{}})
	defer s.Close()
	_, err = s.Run(t.Context(), strings.NewReader(`
		local mx, lm = require("mx"), require("lm")
		local folder, dir = ...
		package.path = folder .. "/?.lua;" .. package.path
		local weights = require("weights")
		local golden = weights.golden(folder, "qwen3_moe")
		weights.write(dir, weights.arrays(golden), golden.config)
		local model = lm.load(dir, {lazy = true})
		mx.eval(model(mx.arange(24):reshape({4, 6}) % 50, lm.caches(model)))`), "lazy.lua", lua.LString(folder),
		lua.LString(filepath.Join(t.TempDir(), "model")))
	require.NoError(t, err)
}

// The golden files are small: weights are drawn anew, never kept.
func TestGoldenModelsAreSmall(t *testing.T) {
	t.Parallel()
	var total int64
	err := filepath.Walk("testdata/lm", func(_ string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() {
			total += info.Size()
		}
		return err
	})
	require.NoError(t, err)
	require.Less(t, total, int64(3<<20))
}

// Packed models and one GGUF file, packed keys and values; keys of transformers 4, foreign weights, what is not built.
func TestModelFiles(t *testing.T) {
	folder, err := filepath.Abs("testdata/lm")
	require.NoError(t, err)
	for _, name := range []string{"packing", "dialects"} {
		t.Run(name, func(t *testing.T) {
			if name == "packing" {
				serial.Because(t, "it measures the device's memory")
				testdevice.NeedsCPU(t, "weights that lie in the file's pages cost no memory")
			} else {
				t.Parallel()
			}
			s := New(Options{Libraries: true, Stdout: &strings.Builder{}})
			defer s.Close()
			_, err := s.RunFile(t.Context(), filepath.Join(folder, name+".lua"), lua.LString(folder),
				lua.LString(t.TempDir()))
			require.NoError(t, err)
		})
	}
}

// JSON that scripts read is an error or comes back as it was written, never a panic.
func FuzzJSON(f *testing.F) {
	for _, text := range []string{`{"a": [1, -2.5e3, null, true, "\u00e9\n"], "b": {}, "c": []}`, `[`, `{"a"}`, `1e999`,
		`"\ud800"`, `[[[[]]]]`, `nul`, `{"a":1}x`} {
		f.Add(text)
	}
	s := New(Options{Libraries: true, Stdout: &strings.Builder{}})
	f.Cleanup(s.Close)
	_, err := s.Run(f.Context(), strings.NewReader(`
		local host, Config = require("lm.host"), require("lm.config")
		function through(text)
			local v, why = host.decode(text)
			if v == nil then
				assert(type(why) == "string")
				return
			end
			local written, wrong = host.encode(v)
			if not written then return end
			local again = assert(host.decode(written))
			assert(host.encode(again) == written, written)
			if type(v) == "table" then pcall(Config.new, v) end
		end`), "json.lua")
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, text string) {
		v, err := s.ToLua(text)
		require.NoError(t, err)
		require.NoError(t, s.SetGlobal("text", v))
		_, err = s.Run(t.Context(), strings.NewReader("through(text)"), "text.lua")
		require.NoError(t, err)
	})
}

// Texts that come and go in rows answer as alone: see rows.lua. In full that is every family: -models.
func TestModelRows(t *testing.T) {
	t.Parallel()
	names := []string{"llama", "gemma2", "gemma3", "qwen3_next", "deepseek_v3", "llama4"}
	switch {
	case *allModels:
		names = slices.DeleteFunc(goldenModels(t, ""), func(name string) bool { return name == "llama_dynamic" })
	case testing.Short():
		t.Skip("it shows no kernel that other short tests do not")
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			require.Contains(t, runModel(t, "rows.lua", name, filepath.Join(t.TempDir(), "model")), name)
		})
	}
}
