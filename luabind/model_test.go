package luabind

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/metal"
)

// The scripts of scripts/lm answer as transformers does: check.lua compares logits in float32.
func TestModelsAnswerAsTransformers(t *testing.T) {
	onlyValues(t)
	files, err := filepath.Glob("testdata/lm/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	folder, err := filepath.Abs("testdata/lm")
	require.NoError(t, err)
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			s := New(Options{Libraries: true, Stdout: &out})
			defer s.Close()
			_, err := s.RunFile(t.Context(), filepath.Join(folder, "check.lua"), lua.LString(folder),
				lua.LString(name), lua.LString(filepath.Join(t.TempDir(), "model")))
			require.NoError(t, err)
			require.Contains(t, out.String(), name)
			t.Log(out.String())
		})
	}
}

// Validation finds nothing in a mixture of experts whose weights are stacked by the evaluation that uses them.
func TestLazyExpertsUnderValidation(t *testing.T) {
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
		mx.eval(model(mx.arange(96):reshape({16, 6}) % 50, lm.caches(model)))`), "lazy.lua", lua.LString(folder),
		lua.LString(filepath.Join(t.TempDir(), "model")))
	require.NoError(t, err)
}

// The golden files are small: weights are drawn anew, never kept.
func TestGoldenModelsAreSmall(t *testing.T) {
	var total int64
	err := filepath.Walk("testdata/lm", func(_ string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() {
			total += info.Size()
		}
		return err
	})
	require.NoError(t, err)
	require.Less(t, total, int64(1<<20))
}

// Packed models, GGUF files, packed and bounded caches; keys of transformers 4, foreign weights, what is not built.
func TestModelFiles(t *testing.T) {
	folder, err := filepath.Abs("testdata/lm")
	require.NoError(t, err)
	for _, name := range []string{"packing", "dialects"} {
		t.Run(name, func(t *testing.T) {
			s := New(Options{Libraries: true, Stdout: &strings.Builder{}})
			defer s.Close()
			_, err := s.RunFile(t.Context(), filepath.Join(folder, name+".lua"), lua.LString(folder),
				lua.LString(t.TempDir()))
			require.NoError(t, err)
		})
	}
}
