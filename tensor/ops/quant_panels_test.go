package ops_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/optest"
)

// TestQuantizedManyRows compares quantized_matmul of one row and more, in every packing, with products of the unpacked
// matrix in float64.
func TestQuantizedManyRows(t *testing.T) {
	optest.Open(t)
	for _, bits := range []int{1, 2, 3, 4, 5, 6, 8} {
		for _, rows := range []int{1, 7, 8, 9, 70} {
			for _, d := range []tensor.DType{tensor.Float32, tensor.BFloat16, tensor.Float64} {
				q := ops.Quantization{Bits: bits, GroupSize: []int{32, 64, 128}[(bits+rows)%3]}
				p := ops.Quantize(noise(d, 128+5, 256), q)
				plain := ops.Dequantize(p[0], p[1], p[2], q, &float64s)
				x := noise(d, rows, 256)
				near(t, ops.QuantizedMatmul(x, p[0], p[1], p[2], true, q), x, ops.SwapAxes(plain, 0, 1), bits)
				x = noise(d, rows, 128+5)
				near(t, ops.QuantizedMatmul(x, p[0], p[1], p[2], false, q), x, plain, bits)
			}
		}
	}
}

var float64s = tensor.Float64

// near compares a product with one in float64: an element of w is at most 3 in size, its scale times q and its bias 6.
func near(t *testing.T, got, x, w *array, bits int) {
	t.Helper()
	want := ops.Matmul(ops.AsType(x, tensor.Float64), w)
	size := values32(t, ops.AsType(ops.Sum(ops.Abs(x), []int{-1}, true), tensor.Float32))
	depth := float64(x.Shape()[1])
	w64, g := values32(t, ops.AsType(want, tensor.Float32)), values32(t, ops.AsType(got, tensor.Float32))
	once := map[tensor.DType]float64{tensor.BFloat16: 0x1p-8}[got.DType()]
	cols := got.Shape()[1]
	for i, v := range w64 {
		least := 2*depth*0x1p-24*12*size[i/cols] + once*max(v, -v)
		require.InDelta(t, v, g[i], least, "%v, element %d, %d bits, x %v", got.DType(), i, bits, x.Shape())
	}
}
