package ops_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/optest"
)

// TestGPUMatmul: products of few rows by the kernels for GPUs are near those of other kernels, for every class of rows
// and depth, whole pieces or not, few columns, batches, views.
func TestGPUMatmul(t *testing.T) {
	t.Parallel()
	sizes := []struct{ batch, a, b []int }{
		{nil, []int{1, 1024}, []int{1024, 130}}, {nil, []int{5, 2056}, []int{2056, 3}}, {nil, []int{16, 520}, []int{520, 33}},
		{nil, []int{2, 300}, []int{300, 20}}, {nil, []int{1, 24}, []int{24, 40}}, {nil, []int{70, 600}, []int{600, 7}},
		{[]int{2, 3}, []int{4, 640}, []int{640, 40}}, {[]int{3}, []int{1, 17}, []int{17, 40}},
	}
	for _, s := range sizes {
		for _, d := range []tensor.DType{tensor.Float32, tensor.Float16, tensor.BFloat16, tensor.Float64} {
			optest.AsGPU(t, 40, func(c *tensor.Ctx) map[string]*tensor.Array {
				of := func(matrix []int) *array {
					return ops.AsType(optest.Noise(tensor.Float32, append(append([]int(nil), s.batch...), matrix...)...), d, c)
				}
				a, b := of(s.a), of(s.b)
				all := map[string]*array{}
				for left, la := range layoutsOfMatrices {
					for right, lb := range layoutsOfMatrices {
						all[fmt.Sprint(s, " ", d, ", ", left, " by ", right)] = ops.Matmul(la(c, a), lb(c, b), c)
					}
				}
				return all
			})
		}
	}
}

// TestGPURowsAreAlone: on GPUs too a row has the same bytes alone and beside others.
func TestGPURowsAreAlone(t *testing.T) {
	t.Parallel()
	for _, d := range []tensor.DType{tensor.Float32, tensor.BFloat16} {
		c := optest.GPU(t)
		x := ops.AsType(optest.Noise(tensor.Float32, 16, 2056), d, c)
		w := ops.SwapAxes(ops.AsType(optest.Noise(tensor.Float32, 50, 2056), d, c), 0, 1, c)
		all, err := ops.Matmul(x, w, c).Bytes(context.Background())
		require.NoError(t, err)
		for _, n := range []int{1, 2, 3, 5, 9} {
			some := ops.Slice(x, []ops.Part{ops.Span(0, n, 1)}, c)
			got, err := ops.Matmul(some, w, c).Bytes(context.Background())
			require.NoError(t, err)
			require.Equal(t, all[:len(got)], got, "%v, %d rows", d, n)
		}
	}
}

// TestGPURows: rows that GPUs keep in threadgroup memory give the bytes of others, of every class of length.
func TestGPURows(t *testing.T) {
	t.Parallel()
	for _, d := range optest.FloatTypes {
		for _, n := range []int{1, 33, 256, 700, 1024, 2500, 5000} {
			results := func(c *tensor.Ctx) []byte {
				b, err := ops.Softmax(optest.Noise(d, 3, n), []int{-1}, c).Bytes(context.Background())
				require.NoError(t, err)
				return b
			}
			require.Equal(t, results(nil), results(optest.GPU(t)), "%v, %d", d, n)
		}
	}
}
