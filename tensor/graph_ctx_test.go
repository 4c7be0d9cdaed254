package tensor_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/tensor"
)

// Messages count things in English.
func TestCount(t *testing.T) {
	for one, many := range map[string]string{
		"input": "inputs", "axis": "axes", "index": "indices", "matrix": "matrices", "packed matrix": "packed matrices",
		"pass": "passes", "box": "boxes", "branch": "branches", "entry": "entries", "array": "arrays", "key": "keys",
	} {
		require.Equal(t, "1 "+one, tensor.Count(1, one))
		require.Equal(t, "0 "+many, tensor.Count(0, one))
		require.Equal(t, "2 "+many, tensor.Count(2, one))
	}
}

// Messages leave out the middles of lines that are too long to read, and say how much that is.
func TestBrief(t *testing.T) {
	require.Equal(t, "short\ntext", tensor.Brief("short\ntext"))
	text := "[op] mode is \"" + strings.Repeat("é", 1e6) + "\", want \"full\"\n    ^"
	brief := tensor.Brief(text)
	require.Less(t, len(brief), 1000)
	require.True(t, strings.HasPrefix(brief, "[op] mode is \"éé"))
	require.Contains(t, brief, " ... 1999228 bytes ... ")
	require.True(t, strings.HasSuffix(brief, "é\", want \"full\"\n    ^"))
	require.Equal(t, strings.ToValidUTF8(brief, "?"), brief)
}
