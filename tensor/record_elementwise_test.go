package tensor_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/tensor"
)

func TestElementwise(t *testing.T) {
	x := array([]float32{1, 2, 3, 4})
	y := array([]float32{10, 20, 30, 40})
	require.Equal(t, []float32{11, 22, 33, 44}, floats(t, add(x, y)))
	require.Equal(t, []float32{-11, -22, -33, -44}, floats(t, neg(mul(add(y, x), array([]float32{1, 1, 1, 1}, 4)))))
}

func TestBroadcast(t *testing.T) {
	z := add(reshape(iota(3), 3, 1), mul(iota(4), array([]float32{10}, 1)))
	require.Equal(t, tensor.Shape{3, 4}, z.Shape())
	require.Equal(t, []float32{0, 10, 20, 30, 1, 11, 21, 31, 2, 12, 22, 32}, floats(t, z))
}
