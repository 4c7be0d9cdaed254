//go:build amd64 || arm64

package jit

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal/jit/choose"
	"github.com/mlxlua/mlxlua/metal/jit/lanes"
	"github.com/mlxlua/mlxlua/metal/kir/opt"
	"github.com/mlxlua/mlxlua/metal/msl"
)

// BenchmarkTexts is the way from text to machine code: msl, jit and both, median and worst of all texts of the folder
// that MLXLUA_KERNEL_CASES names, without one of the kernels of the benchmarks and of
// testdata/cases. Each text counts with its best of several attempts.
//
//	go test ./metal/jit -run '^$' -bench Texts -benchtime 1x
func BenchmarkTexts(b *testing.B) {
	best, err := machine()
	if err != nil {
		b.Skip(err)
	}
	texts := map[string]string{}
	dir := os.Getenv("MLXLUA_KERNEL_CASES")
	if dir == "" {
		dir = filepath.Join("testdata", "cases")
		texts["gelu"], texts["qmv"], texts["gated_delta"] = geluText, qmvText, gatedDeltaText
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.metal"))
	require.NoError(b, err)
	for _, f := range files {
		text, err := os.ReadFile(f)
		require.NoError(b, err)
		texts[filepath.Base(f)] = string(text)
	}
	const attempts = 7
	for b.Loop() {
		times := map[string][]stopwatch{}
		for f, text := range texts {
			took := map[string]time.Duration{"msl": 1 << 62, "jit": 1 << 62, "both": 1 << 62}
			for range attempts {
				parse, code, err := textToCode(f, text, best)
				if err != nil {
					took = nil // metal/msl's test says which must compile
					break
				}
				took["msl"], took["jit"] = min(took["msl"], parse), min(took["jit"], code)
				took["both"] = min(took["both"], parse+code)
			}
			for what, t := range took {
				times[what] = append(times[what], stopwatch{t, f})
			}
		}
		for _, what := range []string{"msl", "jit", "both"} {
			l := times[what]
			require.NotEmpty(b, l)
			slices.SortFunc(l, func(x, y stopwatch) int { return cmp.Compare(x.took, y.took) })
			median, worst := l[len(l)/2], l[len(l)-1]
			b.Logf("%s: %d texts, median %v, worst %v (%s)", what, len(l), median.took, worst.took, worst.name)
			b.ReportMetric(float64(median.took.Microseconds()), "us/"+what)
			b.ReportMetric(float64(worst.took.Microseconds()), "us/"+what+"-worst")
		}
	}
}

// stopwatch is what a text took.
type stopwatch struct {
	took time.Duration
	name string
}

// textToCode compiles all kernels of a text for whole rows of threads, and returns the time msl and the rest took.
func textToCode(name, text string, level Level) (parse, code time.Duration, err error) {
	start := time.Now()
	m, err := msl.Compile(msl.Source{Name: name, Text: text}, msl.Options{Float64: true})
	if err != nil {
		return 0, 0, err
	}
	parsed := time.Now()
	for _, k := range m.Kernels {
		geo := lanes.Geometry{Row: true, Aligned: true, Full: true}
		fast := opt.Run(k, opt.Launch{})
		if _, err := choose.Compile(fast, choose.Options{Target: level.target(), Geometry: geo}); err != nil {
			return 0, 0, err
		}
	}
	return parsed.Sub(start), time.Since(parsed), nil
}
