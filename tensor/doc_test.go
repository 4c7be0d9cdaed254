package tensor_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFilesSayTheirStage: each file of the package begins with a stage of doc.go, and each stage has one.
func TestFilesSayTheirStage(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	stages := map[string]int{}
	for _, m := range regexp.MustCompile(`(?m)^//\t(\w+)  `).FindAllSubmatch(doc, -1) {
		stages[string(m[1])] = 0
	}
	require.NotEmpty(t, stages)
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, name := range files {
		if name == "doc.go" || strings.HasSuffix(name, "_test.go") {
			continue
		}
		stage, _, _ := strings.Cut(name, "_")
		require.Contains(t, stages, stage, "%s names no stage of doc.go", name)
		stages[stage]++
	}
	for stage, n := range stages {
		require.Positive(t, n, "doc.go lists a stage without files: %s", stage)
	}
}
