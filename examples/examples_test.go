// Package examples is the examples' test.
package examples

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua"
)

// Every script runs to its end: a failed check of its own is an error, an exit with a status too.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("*.lua")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(file, func(t *testing.T) {
			var out bytes.Buffer
			s, err := mlxlua.Open(mlxlua.Options{Libraries: true, Stdout: &out})
			require.NoError(t, err)
			defer s.Close()
			_, err = s.RunFile(t.Context(), file)
			require.NoError(t, err, out.String())
			require.NotEmpty(t, out.String())
			require.NotContains(t, out.String(), "nan")
		})
	}
}

// The embedding program prints what softmax of [[1, 2, 3], [4, 5, 6]] times [[1, 0], [0, 1], [1, -1]] is.
func TestEmbed(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "run", "./embed").CombinedOutput()
	require.NoError(t, err, string(out))
	// x w = [[4, -1], [10, -1]]; exp(-5) = 0.0067, exp(-11) = 1.7e-5
	require.Equal(t, "scored 2 rows\n  0.9933  0.0067\n  1.0000  0.0000\n", string(out))
}
