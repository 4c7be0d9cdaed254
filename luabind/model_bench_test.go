//go:build unix

package luabind

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"
)

var (
	modelShape = flag.String("models.shape", "12 1024 2816 32000", "BenchmarkModels: layers, size, inner size, words")
	modelDir   = flag.String("models.dir", "", "BenchmarkModels: where its random model is, or is to be, kept")
)

// BenchmarkModels is how many tokens a second of processor time is good for, in prompts of 512 tokens and while
// decoding one sequence of 64, with a random Llama in bfloat16 and in 4 bits. testdata/lm/speed.py measures others on
// its directory.
//
//	go test ./luabind -run '^$' -bench Models -benchtime 3x -models.dir ~/model
func BenchmarkModels(b *testing.B) {
	dir := *modelDir
	if dir == "" {
		dir = filepath.Join(b.TempDir(), "model")
	}
	if _, err := os.Stat(dir); err != nil {
		s := New(Options{Libraries: true, Stdout: &strings.Builder{}})
		args := []lua.LValue{lua.LString(dir), lua.LString("../text/tokenizer/testdata/llama3.json")}
		for field := range strings.FieldsSeq(*modelShape) {
			args = append(args, lua.LString(field))
		}
		_, err := s.RunFile(b.Context(), "testdata/lm/random.lua", args...)
		s.Close()
		require.NoError(b, err)
	}
	for _, mode := range []string{"bfloat16", "4bits"} {
		s := New(Options{Libraries: true, Stdout: &strings.Builder{}})
		defer s.Close()
		_, err := s.Run(b.Context(), strings.NewReader(`
			local mx, lm = require("mx"), require("lm")
			local dir, mode = ...
			local model = lm.load(dir)
			if mode == "4bits" then lm.quantize(model, {bits = 4, group_size = 64}) end
			mx.eval(model:parameters())
			local step, token, caches = lm.step(model), nil, nil
			function prefill()
				caches = lm.caches(model)
				token = mx.argmax(lm.prefill(model, mx.arange(512):reshape({1, 512}) * 37 % 32000, caches), -1)
				mx.eval(token, caches:arrays())
			end
			function decode()
				for _ = 1, 64 do
					token = mx.argmax(step(token, caches), -1)
					mx.async_eval(token, caches:arrays())
				end
				mx.eval(token)
			end
			prefill()
			decode()`), "models.lua", lua.LString(dir), lua.LString(mode))
		require.NoError(b, err)
		for name, tokens := range map[string]int{"prefill": 512, "decode": 64} {
			b.Run(mode+"/"+name, func(b *testing.B) {
				if name == "decode" {
					_, err := s.Run(b.Context(), strings.NewReader("prefill()"), "models.lua")
					require.NoError(b, err)
				}
				before := processorTime(b)
				for b.Loop() {
					_, err := s.Run(b.Context(), strings.NewReader(name+"()"), "models.lua")
					require.NoError(b, err)
				}
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(float64(tokens*b.N)/(processorTime(b)-before), "tokens/cpu-s")
			})
		}
	}
}

// processorTime is the seconds that processors have spent on this process.
func processorTime(b *testing.B) float64 {
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}
