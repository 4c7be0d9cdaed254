package quant_test

import (
	"fmt"
	"testing"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/quant"
	"github.com/mlxlua/mlxlua/tensor/optest"
)

// TestGPUProducts: products of few rows with packed matrices by the kernels for GPUs are near those of other kernels:
// by pieces of 16 bytes and others, of one SIMD-group and of several, of picked matrices.
func TestGPUProducts(t *testing.T) {
	for _, q := range []quant.Quantization{{Bits: 4, GroupSize: 64}, {Bits: 4, GroupSize: 32}, {Bits: 8, GroupSize: 64},
		{Bits: 8, GroupSize: 128}, {Bits: 3, GroupSize: 64}, {Mode: "mxfp4"}} {
		for _, depth := range []int{128, 2560} {
			for _, d := range []tensor.DType{tensor.Float32, tensor.Float16, tensor.BFloat16} {
				optest.AsGPU(t, 40, func(c *tensor.Ctx) map[string]*tensor.Array {
					w := quant.Quantize(optest.Noise(tensor.Float32, 3, 67, depth), q, c)
					var biases *tensor.Array
					part := func(i int) *tensor.Array {
						if x := w[i]; i > 0 && q.Mode == "" {
							return ops.AsType(x, d, c)
						}
						return w[i]
					}
					if len(w) > 2 {
						biases = part(2)
					}
					first := func(x *tensor.Array) *tensor.Array {
						if x == nil {
							return nil
						}
						return ops.Slice(x, []ops.Part{ops.At(1)}, c)
					}
					all := map[string]*tensor.Array{}
					for _, rows := range []int{1, 5, 20} {
						x := optest.Noise(d, 2, rows, depth)
						what := fmt.Sprint(q, ", depth ", depth, ", ", d, ", ", rows, " rows")
						all[what] = quant.QuantizedMatmul(x, first(part(0)), first(part(1)), first(biases), true, q, c)
						picks := ops.FromSlice([]uint32{2, 0, 1, 2}, []int{2, 2})
						all["picked, "+what] = quant.GatherQMM(ops.ExpandDims(x, []int{1}, c), part(0), part(1), biases,
							quant.GatherQMMCall{RHS: picks, Quantization: q}, c)
					}
					return all
				})
			}
		}
	}
}
