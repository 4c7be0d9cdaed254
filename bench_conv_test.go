package mlxlua_test

import (
	"testing"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/grad"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/conv"
)

// What convolutions and their gradients reach of the machine's multiply-adds.
//
//	go test . -run '^$' -bench Convolutions -benchtime 21x

// convolutions are three rows: a convolution, and its gradients by the input and by the weight.
func convolutions(name string, d tensor.DType, x, w []int, o conv.Options) []productRow {
	o.Groups = max(o.Groups, 1)
	flops := 2.0
	for _, n := range w {
		flops *= float64(n)
	}
	flops *= float64(x[0])
	for i, n := range x[1 : len(x)-1] {
		low, stride := 0, 1
		if len(o.PaddingLow) > 0 {
			low = o.PaddingLow[0]
		}
		if len(o.Stride) > 0 {
			stride = o.Stride[0]
		}
		flops *= float64((n+2*low-w[i+1])/stride + 1)
	}
	o.PaddingHigh = o.PaddingLow
	row := func(what string, make func(x, w *tensor.Array) func() *tensor.Array) productRow {
		return productRow{name: name + "_" + d.String() + what, flops: flops,
			make: func(array func(shape ...int) *tensor.Array) func() *tensor.Array {
				return make(ops.AsType(array(x...), d), ops.AsType(array(w...), d))
			}}
	}
	gradient := func(f func(v *tensor.Array) *tensor.Array, of *tensor.Array) func() *tensor.Array {
		cot := f(of)
		return func() *tensor.Array {
			_, grads, err := grad.VJP(func(in []*tensor.Array) ([]*tensor.Array, error) {
				return []*tensor.Array{f(in[0])}, nil
			}, []*tensor.Array{of}, []*tensor.Array{cot})
			if err != nil {
				return tensor.Fail(nil, "gradient", "%v", err)
			}
			return grads[0]
		}
	}
	return []productRow{
		row("", func(x, w *tensor.Array) func() *tensor.Array {
			return func() *tensor.Array { return conv.ConvGeneral(x, w, o) }
		}),
		row("_by_input", func(x, w *tensor.Array) func() *tensor.Array {
			return gradient(func(v *tensor.Array) *tensor.Array { return conv.ConvGeneral(v, w, o) }, x)
		}),
		row("_by_weight", func(x, w *tensor.Array) func() *tensor.Array {
			return gradient(func(v *tensor.Array) *tensor.Array { return conv.ConvGeneral(x, v, o) }, w)
		}),
	}
}

// BenchmarkConvolutions is each row's milliseconds and its share of the limit.
func BenchmarkConvolutions(b *testing.B) {
	f := tensor.Float32
	var rows []productRow
	for _, r := range [][]productRow{
		convolutions("3x3", f, []int{4, 56, 56, 64}, []int{64, 3, 3, 64}, conv.Options{PaddingLow: []int{1}}),
		convolutions("3x3", tensor.BFloat16, []int{4, 56, 56, 64}, []int{64, 3, 3, 64},
			conv.Options{PaddingLow: []int{1}}),
		convolutions("3x3_few_channels", f, []int{32, 56, 56, 8}, []int{64, 3, 3, 8},
			conv.Options{PaddingLow: []int{1}}),
		convolutions("3x3_many_channels", f, []int{1, 7, 7, 512}, []int{512, 3, 3, 512},
			conv.Options{PaddingLow: []int{1}}),
		convolutions("3x3_stride_2", f, []int{4, 56, 56, 64}, []int{128, 3, 3, 64},
			conv.Options{PaddingLow: []int{1}, Stride: []int{2}}),
		convolutions("1x1", f, []int{4, 56, 56, 64}, []int{256, 1, 1, 64}, conv.Options{}),
		convolutions("stem", f, []int{1, 224, 224, 3}, []int{64, 7, 7, 3},
			conv.Options{PaddingLow: []int{3}, Stride: []int{2}}),
		convolutions("depthwise", f, []int{4, 56, 56, 128}, []int{128, 3, 3, 1},
			conv.Options{PaddingLow: []int{1}, Groups: 128}),
		convolutions("1d", f, []int{8, 1000, 64}, []int{64, 5, 64}, conv.Options{PaddingLow: []int{2}}),
		convolutions("convolve", f, []int{1, 100000, 1}, []int{1, 101, 1}, conv.Options{PaddingLow: []int{100}}),
		convolutions("3d", f, []int{1, 16, 28, 28, 16}, []int{32, 3, 3, 3, 16}, conv.Options{PaddingLow: []int{1}}),
	} {
		rows = append(rows, r...)
	}
	benchmarkProducts(b, rows)
}
