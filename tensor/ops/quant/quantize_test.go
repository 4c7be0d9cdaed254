package quant_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/quant"
	"github.com/mlxlua/mlxlua/tensor/optest"
)

func TestQuantize(t *testing.T) {
	floats := optest.Computed(t, tensor.Float32, tensor.Float16, tensor.BFloat16, tensor.Float64)
	bits := optest.Ints(0, 1<<31)
	for _, b := range []int{1, 2, 3, 4, 5, 6, 8} {
		for _, group := range []int{32, 64, 128} {
			q := quant.Quantization{GroupSize: group, Bits: b}
			name := fmt.Sprintf(" %d bits by %d", b, group)
			in := func(front string) []optest.Input {
				return []optest.Input{optest.In(fmt.Sprintf("%s,%d", front, 128*b/32), bits).As(tensor.Uint32),
					optest.In(fmt.Sprintf("%s,%d", front, 128/group), uniform),
					optest.In(fmt.Sprintf("%s,%d", front, 128/group), uniform)}
			}
			quantize := optest.Subject{
				Name: "quantize" + name, Ops: []string{"quantize"}, DTypes: floats,
				Fn: func(in []*array) []*array { return quant.Quantize(in[0], q) },
			}
			dequantize := optest.Subject{
				Name: "dequantize" + name, Ops: []string{"dequantize"}, DTypes: floats,
				Fn: optest.One(func(in []*array) *array { return quant.Dequantize(in[0], in[1], in[2], q, nil) }),
			}
			if b == 4 && group == 64 {
				quantize.Cases = []optest.Case{{Inputs: []optest.Input{optest.In("n,64", uniform).Const()}}}
				quantize.Refuse = []tensor.DType{tensor.Int32, tensor.Complex64}
			}
			if b >= 3 && b <= 4 && group == 64 {
				dequantize.Cases = []optest.Case{{Inputs: in("n")}}
			}
			if (b == 4 || b == 1) && group == 64 { // finite differences would drown in the size of packed numbers
				optest.Run(t, optest.Subject{
					Name: "quantize scales" + name, Ops: []string{"quantize"}, DTypes: floats, Second: true,
					Cases: []optest.Case{{Inputs: []optest.Input{optest.In("n,64", optest.Distinct(1))}}},
					Fn:    func(in []*array) []*array { return quant.Quantize(in[0], q)[1:] },
				})
			}
			optest.Run(t, quantize)
			optest.Run(t, dequantize)
			if group != 64 {
				continue
			}
			for _, transpose := range []bool{true, false} {
				name, x := "quantized_matmul"+name, "n,128"
				if !transpose {
					name, x = strings.Replace(name, "matmul", "matmul plain", 1), "n,3"
				}
				op := optest.Subject{
					Name: name, Ops: []string{"quantized_matmul"}, DTypes: floats,
					Tol: optest.Tol{Rel: 1e-5, Abs: 1e-3},
					Fn: optest.One(func(in []*array) *array {
						return quant.QuantizedMatmul(in[0], in[1], in[2], in[3], transpose, q)
					}),
				}
				if b == 3 || b == 4 {
					op.Cases = []optest.Case{optest.With(optest.Of(x), in("3")...)}
				}
				optest.Run(t, op)
			}
		}
	}
}

func TestGatherQMM(t *testing.T) {
	floats := optest.Computed(t, tensor.Float32, tensor.Float16, tensor.BFloat16, tensor.Float64)
	gather := func(transpose bool) func(in []*array) *array {
		return func(in []*array) *array {
			return quant.GatherQMM(in[0], in[1], in[2], in[3], quant.GatherQMMCall{LHS: in[4], RHS: in[5],
				NoTranspose: !transpose})
		}
	}
	weights := []optest.Input{optest.In("3,2,8", optest.Ints(0, 1<<31)).As(tensor.Uint32), optest.In("3,2,1", uniform),
		optest.In("3,2,1", uniform)}
	c := func(x, lhs, rhs string) optest.Case {
		return optest.With(optest.With(optest.Of(x), weights...), optest.Indices(lhs, 2), optest.Indices(rhs, 3))
	}
	tol := optest.Tol{Rel: 1e-5, Abs: 1e-3}
	optest.Run(t, optest.Subject{
		Name: "gather_qmm", DTypes: floats, Fn: optest.One(gather(true)), Tol: tol,
		Cases: []optest.Case{c("2,n,64", "m,1", "3")},
	})
	optest.Run(t, optest.Subject{
		Name: "gather_qmm plain", Ops: []string{"gather_qmm"}, DTypes: floats,
		Fn: optest.One(gather(false)), Tol: tol, Cases: []optest.Case{c("2,n,2", "m", "m")},
	})
	optest.Run(t, optest.Subject{
		Name: "quantized_matmul of batches", Ops: []string{"gather_qmm"}, DTypes: floats, Tol: tol,
		Fn: optest.One(func(in []*array) *array {
			return quant.QuantizedMatmul(in[0], in[1], in[2], in[3], true, quant.Quantization{})
		}),
		Cases: []optest.Case{optest.With(optest.Of("n,3,2,64"), weights...)},
	})
}

// TestQuantizedProducts compares gathered products with those of unpacked matrices in float64, and sorted indices with
// others bit by bit; then what is refused.
func TestQuantizedProducts(t *testing.T) {
	optest.Open(t)
	w := ops.Sin(ops.Arange(0, 5*96*128, 1, tensor.Float32))
	w = ops.Reshape(w, tensor.Sizes(5, 96, 128))
	x := ops.Reshape(ops.Cos(ops.Arange(0, 2*3*128, 1, tensor.Float32)), tensor.Sizes(2, 3, 128))
	lhs, rhs := ops.FromSlice([]int32{0, 1, -1, 0}, []int{4}), ops.FromSlice([]uint32{4, 0, 2, 2}, []int{4})
	for _, bits := range []int{3, 4, 8} {
		q := quant.Quantization{Bits: bits, GroupSize: 32}
		p := quant.Quantize(w, q)
		plain := quant.Dequantize(p[0], p[1], p[2], q, new(tensor.Float64), optest.Wide(t))
		gather := func(lhs, rhs *array) *array {
			return quant.GatherQMM(x, p[0], p[1], p[2], quant.GatherQMMCall{LHS: lhs, RHS: rhs, Quantization: q})
		}
		got := gather(lhs, rhs)
		near(t, got, ops.Take(x, lhs, new(0)), ops.SwapAxes(ops.Take(plain, rhs, new(0), optest.Wide(t)), -1, -2))
		order := ops.ArgSort(rhs, new(0))
		sorted := gather(ops.Take(lhs, order, new(0)), ops.Take(rhs, order, new(0)))
		require.Equal(t, optest.Values32(t, ops.Take(got, order, new(0))), optest.Values32(t, sorted), "%d bits", bits)
	}
	p := quant.Quantize(w, quant.Quantization{})
	call := func(lhs, rhs *array) *array {
		return quant.GatherQMM(x, p[0], p[1], p[2], quant.GatherQMMCall{LHS: lhs, RHS: rhs})
	}
	optest.Fails(t, call(nil, ops.FromSlice([]int32{0, 5}, []int{2})),
		"[gather_qmm] index 5 of rhs_indices is out of range for 5 matrices")
	optest.Fails(t, call(ops.FromSlice([]int32{0, -3}, []int{2}), rhs), "[gather_qmm]")
	optest.Fails(t, call(ops.FromSlice([]int32{-3}, []int{1}), rhs),
		"[gather_qmm] index -3 of lhs_indices is out of range for 2 matrices")
	optest.Fails(t, call(lhs, ops.FromSlice([]float32{0}, []int{1})),
		"[gather_qmm] indices have dtype float32, want integers")
	optest.Fails(t, call(nil, rhs), "[gather_qmm] lhs_indices and rhs_indices: shapes (2,) and (4,) cannot be broadcast")
	half := ops.Slice(x, []ops.Part{ops.Ellipsis(), ops.Span(0, 64, 1)})
	optest.Fails(t, quant.GatherQMM(half, p[0], p[1], p[2], quant.GatherQMMCall{}),
		"[gather_qmm] inner dimensions differ: x (2, 3, 64)")
	q := func(q quant.Quantization) *array { return quant.Quantize(w, q)[0] }
	const modes = "affine, mxfp4, mxfp8, nvfp4, q4_0, q4_1, q5_0, q5_1, q8_0, q2_k, q3_k, q4_k, q5_k or q6_k"
	optest.Fails(t, q(quant.Quantization{Bits: 7}), "[quantize] bits is 7, want 1, 2, 3, 4, 5, 6 or 8 for mode affine")
	optest.Fails(t, q(quant.Quantization{GroupSize: 16}),
		"[quantize] group_size is 16, want 32, 64 or 128 for mode affine")
	optest.Fails(t, q(quant.Quantization{Mode: "none"}), `[quantize] unknown mode "none", want `+modes)
	optest.Fails(t, quant.Quantize(ops.Zeros(tensor.Sizes(2, 65), tensor.Float32), quant.Quantization{})[1],
		"[quantize] the last dimension of shape (2, 65) is no multiple of group_size=64")
	optest.Fails(t, quant.Quantize(ops.Zeros(tensor.Sizes(64), tensor.Float32), quant.Quantization{})[2],
		"[quantize] an array of shape (64,)")
	optest.Fails(t, quant.QuantizedMatmul(x, p[0], p[1], nil, true, quant.Quantization{}),
		"[quantized_matmul] mode affine needs biases")
	optest.Fails(t, quant.Dequantize(p[0], p[1], ops.Slice(p[2], []ops.Part{ops.At(0)}), quant.Quantization{}, nil),
		"[dequantize] scales have shape")
}
