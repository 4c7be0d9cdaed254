package quant_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mlxlua/mlxlua/internal/brief"
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/quant"
	"github.com/mlxlua/mlxlua/tensor/optest"
)

// TestPlainProducts: the kernels for the host's processors give the plain kernel's bytes, in every mode, for every
// class of rows and dtype.
func TestPlainProducts(t *testing.T) {
	brief.OnlyValues(t)
	type packing struct {
		q     quant.Quantization
		bytes int // of a row of 512 elements in a mode of blocks, else 0
	}
	var list []packing
	for _, bits := range []int{2, 3, 4, 5, 6, 8} {
		list = append(list, packing{q: quant.Quantization{Bits: bits, GroupSize: 32 << (bits % 3)}})
	}
	for _, mode := range []string{"mxfp4", "mxfp8", "nvfp4"} {
		list = append(list, packing{q: quant.Quantization{Mode: mode}})
	}
	for _, mode := range quant.BlockModes() {
		elements, bytes, _, _ := quant.BlockSize(mode)
		list = append(list, packing{quant.Quantization{Mode: mode}, 512 / elements * bytes})
	}
	for i, p := range list {
		for k, rows := range []int{1, 5, 17, 70} {
			if optest.Spared(i + k) {
				continue
			}
			d := optest.FloatTypes[(i+k)%len(optest.FloatTypes)]
			optest.AsPlain(t, func(c *tensor.Ctx) map[string]*tensor.Array {
				packed := func(matrices, rows int) (w [3]*tensor.Array) {
					if p.bytes == 0 {
						copy(w[:], quant.Quantize(optest.Noise(tensor.Float32, matrices, rows, 512), p.q, c))
						return w
					}
					// Bytes below 60 are finite as the halves of factors, too.
					b := ops.Floor(ops.Multiply(ops.Abs(optest.Noise(tensor.Float32, matrices, rows, p.bytes), c),
						ops.Number(19.9, tensor.Float32), c), c)
					w[0] = ops.AsType(b, tensor.Uint8, c)
					return w
				}
				all := map[string]*tensor.Array{}
				for _, transpose := range []bool{true, false} {
					w, x := packed(3, 67), optest.Noise(d, 2, rows, 512)
					if !transpose {
						x = optest.Noise(d, 2, rows, 67)
					}
					what := fmt.Sprint(" of ", rows, " rows, ", d, ", ", p.q, ", transpose ", transpose)
					first := func(x *tensor.Array) *tensor.Array {
						if x == nil {
							return nil
						}
						return ops.Slice(x, []ops.Part{ops.At(0)}, c)
					}
					all["quantized_matmul"+what] = quant.QuantizedMatmul(first(x), first(w[0]), first(w[1]), first(w[2]),
						transpose, p.q, c)
					all["gather_qmm"+what] = quant.GatherQMM(x, w[0], w[1], w[2], quant.GatherQMMCall{
						LHS: ops.FromSlice([]int32{1, -2}, []int{2}), RHS: ops.FromSlice([]uint8{2, 0, 1, 1}, []int{2, 2}),
						NoTranspose: !transpose, Quantization: p.q}, c)
				}
				return all
			})
		}
	}
}

// TestPlainQQMM is the same for products of two that are rounded to few bits, the second as it is or packed before.
func TestPlainQQMM(t *testing.T) {
	brief.OnlyValues(t)
	for i, mode := range []string{"nvfp4", "nvfp4 with global scales", "mxfp4", "mxfp8"} {
		for k, rows := range []int{1, 5, 17, 70} {
			if optest.Spared(i + k) {
				continue
			}
			d := optest.FloatTypes[(i+k)%len(optest.FloatTypes)]
			optest.AsPlain(t, func(c *tensor.Ctx) map[string]*tensor.Array {
				name, _, global := strings.Cut(mode, " ")
				call := quant.QQMMCall{Quantization: quant.Quantization{Mode: name}}
				if global {
					call.GlobalX, call.GlobalW = ops.Number(3, tensor.Float32), ops.Number(0.75, tensor.Float32)
				}
				x, w := optest.Noise(d, 2, rows, 128), optest.Noise(d, 3, 67, 128)
				packed := quant.Quantize(w, quant.Quantization{Mode: name}, c)
				of := func(x *tensor.Array, i int) *tensor.Array { return ops.Slice(x, []ops.Part{ops.At(i)}, c) }
				all, one := call, call // of a packed w
				all.Scales, one.Scales = packed[1], of(packed[1], 2)
				lhs, rhs := ops.FromSlice([]int32{1, -2}, []int{2}), ops.FromSlice([]uint8{2, 0, 1, 1}, []int{2, 2})
				what := fmt.Sprint(" of ", rows, " rows, ", d, ", ", mode)
				return map[string]*tensor.Array{
					"qqmm" + what:                quant.QQMM(of(x, 0), of(w, 1), call, c),
					"qqmm, packed" + what:        quant.QQMM(of(x, 1), of(packed[0], 2), one, c),
					"gather_qqmm" + what:         quant.GatherQQMM(x, w, lhs, rhs, call, c),
					"gather_qqmm, packed" + what: quant.GatherQQMM(x, packed[0], lhs, rhs, all, c),
				}
			})
		}
	}
}
