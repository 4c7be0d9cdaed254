package tensor_test

import (
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
