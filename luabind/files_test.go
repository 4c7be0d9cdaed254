package luabind

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A state without Lua's io library reads no files by way of mx either.
func TestNoFilesWithoutLibraries(t *testing.T) {
	s := New(Options{Stdout: &strings.Builder{}})
	t.Cleanup(s.Close)
	_, err := s.Run(context.Background(), strings.NewReader(`mx.load("../tensor/format/testdata/int16.npy")`), "files")
	require.ErrorContains(t, err, "[load] this state has no access to files")
}
