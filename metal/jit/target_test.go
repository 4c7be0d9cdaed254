package jit

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWhoKnowsProcessors: one file names the processors that there is machine code for. What chooses instructions,
// finds out about lanes or allocates registers knows none.
func TestWhoKnowsProcessors(t *testing.T) {
	t.Parallel()
	processors := map[string]bool{"amd64": true, "arm64": true}
	knows := map[string][]string{}
	err := filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, i := range file.Imports {
			name, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				return err
			}
			if last := filepath.Base(name); processors[last] && strings.Contains(name, "/metal/jit/") {
				knows[last] = append(knows[last], path)
			}
		}
		return nil
	})
	require.NoError(t, err)
	for p := range processors {
		require.Equal(t, []string{"target.go"}, knows[p], p)
	}
}
