package ops_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTextsKeepToTheDialect: kernels of the rooms form no fma of their own accord and add no floats atomically, so that
// results depend neither on what was fused nor on the threads; and they are compiled as the portable dialect.
func TestTextsKeepToTheDialect(t *testing.T) {
	t.Parallel()
	files := func(pattern string) (all []string) {
		for _, room := range []string{".", "*", "kit/*"} {
			some, err := filepath.Glob(filepath.Join(room, pattern))
			require.NoError(t, err)
			all = append(all, some...)
		}
		return all
	}
	texts := files("*.metal")
	require.Greater(t, len(texts), 15)
	for _, file := range texts {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Regexp(t, `(?m)^#pragma clang fp contract\(off\)$`, string(text), file)
		require.NotRegexp(t, `atomic_float|atomic<\s*(float|half|bfloat)`, string(text), file)
	}
	// One place says how built-in kernels are compiled; users' kernels may be anything that Metal has.
	literals := map[string]int{}
	options := regexp.MustCompile(`metal\.Options\{[^}]*\}`)
	for _, file := range files("*.go") {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, o := range options.FindAllString(string(text), -1) {
			if literals[file]++; file != "fast/metal_kernel_source.go" {
				require.Contains(t, o, "Portable: true", file)
			}
		}
	}
	require.Equal(t, map[string]int{"kit/kernels.go": 1, "fast/metal_kernel_source.go": 1}, literals)
}
