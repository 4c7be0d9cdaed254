package rooms_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/internal/brief"
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/grad"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/conv"
	"github.com/mlxlua/mlxlua/tensor/ops/fast"
	"github.com/mlxlua/mlxlua/tensor/ops/fft"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/products"
	"github.com/mlxlua/mlxlua/tensor/ops/quant"
	"github.com/mlxlua/mlxlua/tensor/optest"
)

// byRows computes something for each row of x, along axis 0 of x and of the result. Product says that what it adds up
// may depend on the class of the number of rows; sums of others may not.
type byRows struct {
	row     []int // the shape of a row of x
	product bool
	f       func(x *tensor.Array) *tensor.Array
	dtypes  []tensor.DType // float32 and bfloat16 if nil
}

// rowsOf are things that are computed by rows: sums along a row, products with a matrix, and such.
func rowsOf(d tensor.DType) map[string]byRows {
	all := map[string]byRows{}
	noise := func(dims ...int) *tensor.Array { return optest.Noise(d, dims...) }
	turned := func(x *tensor.Array) *tensor.Array { return ops.SwapAxes(x, -1, -2) }
	for _, n := range []int{7, 33, 700, 5000, 70000} {
		rows := func(name string, f func(x *tensor.Array) *tensor.Array) {
			all[fmt.Sprintf("%s of %d", name, n)] = byRows{row: []int{n}, f: f}
		}
		rows("sum", func(x *tensor.Array) *tensor.Array { return ops.Sum(x, []int{-1}, false) })
		rows("var", func(x *tensor.Array) *tensor.Array { return ops.Var(x, []int{-1}, false, 0) })
		rows("logsumexp", func(x *tensor.Array) *tensor.Array { return ops.LogSumExp(x, []int{-1}, false) })
		rows("softmax", func(x *tensor.Array) *tensor.Array { return ops.Softmax(x, []int{-1}) })
		rows("cumsum", func(x *tensor.Array) *tensor.Array { return ops.CumSum(x, new(1), false, true) })
		rows("rms_norm", func(x *tensor.Array) *tensor.Array { return fast.RMSNorm(x, noise(n), 1e-5) })
		rows("layer_norm", func(x *tensor.Array) *tensor.Array { return fast.LayerNorm(x, noise(n), nil, 1e-5) })
		if n <= 5000 {
			all[fmt.Sprintf("sum of columns of %d", n)] = byRows{row: []int{n, 5},
				f: func(x *tensor.Array) *tensor.Array { return ops.Sum(x, []int{1}, false) }}
			all[fmt.Sprintf("sum of blocks of %d", n)] = byRows{row: []int{n, 2, 3},
				f: func(x *tensor.Array) *tensor.Array { return ops.Sum(x, []int{1, 3}, false) }}
			all[fmt.Sprintf("fft of %d", n)] = byRows{row: []int{n}, dtypes: []tensor.DType{tensor.Float32},
				f: func(x *tensor.Array) *tensor.Array { return fft.RFFT(x, nil, -1, fft.Backward) }}
		}
	}
	product := func(name string, row []int, f func(x *tensor.Array) *tensor.Array) {
		all[name] = byRows{row: row, product: true, f: f}
	}
	for _, m := range [][2]int{{4, 4}, {5, 70}, {64, 10}, {120, 100}, {300, 64}, {1024, 6}, {1100, 100}, {70, 1}} {
		name := fmt.Sprint(m)
		w, view := noise(m[0], m[1]), turned(noise(m[1], m[0]))
		product("matmul "+name, m[:1], func(x *tensor.Array) *tensor.Array { return ops.Matmul(x, w) })
		product("matmul of a view "+name, m[:1], func(x *tensor.Array) *tensor.Array { return ops.Matmul(x, view) })
		product("matmul of a column "+name, m[:1], func(x *tensor.Array) *tensor.Array {
			return ops.Matmul(ops.Contiguous(turned(ops.Contiguous(turned(x), false)), true), w)
		})
		product("addmm "+name, m[:1], func(x *tensor.Array) *tensor.Array {
			return products.AddMM(noise(m[1]), x, view, 1, 1)
		})
	}
	// Each of these has a matrix of its own: how many there are is no number of rows.
	for _, m := range [][3]int{{4, 4, 4}, {3, 20, 2}, {8, 8, 8}, {12, 40, 12}, {20, 20, 20}} {
		w := noise(m[1], m[2])
		all[fmt.Sprint("products ", m)] = byRows{row: m[:2], f: func(x *tensor.Array) *tensor.Array {
			n := x.Spec().Shape[0]
			return ops.Matmul(x, ops.Contiguous(ops.BroadcastTo(w, tensor.Sizes(n, m[1], m[2])), false))
		}}
	}
	for _, bits := range []int{4, 6, 8} {
		packed := quant.Quantize(noise(96, 256), quant.Quantization{Bits: bits})
		product(fmt.Sprintf("quantized_matmul of %d bits", bits), []int{256}, func(x *tensor.Array) *tensor.Array {
			return quant.QuantizedMatmul(x, packed[0], packed[1], packed[2], true, quant.Quantization{Bits: bits})
		})
		flat := quant.Quantize(noise(256, 128), quant.Quantization{Bits: bits})
		product(fmt.Sprintf("quantized_matmul of %d bits, not transposed", bits), []int{256},
			func(x *tensor.Array) *tensor.Array {
				return quant.QuantizedMatmul(x, flat[0], flat[1], flat[2], false, quant.Quantization{Bits: bits})
			})
		experts := quant.Quantize(noise(3, 96, 256), quant.Quantization{Bits: bits})
		product(fmt.Sprintf("gather_qmm of %d bits", bits), []int{256}, func(x *tensor.Array) *tensor.Array {
			y := quant.GatherQMM(x, experts[0], experts[1], experts[2], quant.GatherQMMCall{
				RHS: ops.FromSlice([]int32{2, 0}, []int{2}), Quantization: quant.Quantization{Bits: bits}})
			return ops.SwapAxes(y, 0, 1)
		})
	}
	experts, view := noise(3, 256, 96), turned(noise(3, 96, 256))
	for name, w := range map[string]*tensor.Array{"gather_mm": experts, "gather_mm of views": view} {
		product(name, []int{256}, func(x *tensor.Array) *tensor.Array {
			return ops.SwapAxes(products.GatherMM(x, w, nil, ops.FromSlice([]int32{2, 0}, []int{2})), 0, 1)
		})
	}
	k, v := noise(1, 2, 75, 64), noise(1, 2, 75, 40)
	product("attention", []int{4, 64}, func(x *tensor.Array) *tensor.Array {
		q := ops.Transpose(ops.ExpandDims(x, []int{0}), []int{0, 2, 1, 3})
		return ops.Transpose(fast.ScaledDotProductAttention(q, k, v, 0.1, fast.AttentionOptions{}), []int{2, 0, 1, 3})
	})
	for name, f := range convolutions(d) {
		all[name] = f
	}
	return all
}

// convolutions are of examples along axis 0, and so are their gradients by the input: how many there are decides on
// nothing.
func convolutions(d tensor.DType) map[string]byRows {
	all := map[string]byRows{}
	for name, c := range map[string]struct {
		x, w []int
		o    conv.Options
	}{
		"1d":          {[]int{40, 9}, []int{6, 5, 9}, conv.Options{Groups: 1}},
		"2d":          {[]int{9, 11, 20}, []int{40, 3, 3, 20}, conv.Options{PaddingLow: []int{1}, Groups: 1}},
		"strided":     {[]int{21, 12, 3}, []int{10, 7, 5, 3}, conv.Options{Stride: []int{2, 3}, Groups: 1}},
		"many taps":   {[]int{5, 6, 600}, []int{3, 3, 3, 600}, conv.Options{Groups: 1}},
		"1 x 1":       {[]int{7, 5, 40}, []int{12, 1, 1, 40}, conv.Options{Groups: 1}},
		"groups":      {[]int{8, 9, 24}, []int{12, 3, 3, 6}, conv.Options{Groups: 4}},
		"depthwise":   {[]int{12, 7, 33}, []int{33, 3, 4, 1}, conv.Options{Groups: 33}},
		"dilated":     {[]int{13, 12, 4}, []int{9, 3, 3, 4}, conv.Options{KernelDilation: []int{2, 3}, Groups: 1}},
		"transposed":  {[]int{8, 7, 6}, []int{5, 4, 3, 6}, conv.Options{InputDilation: []int{2, 3}, Groups: 1}},
		"long window": {[]int{300, 1}, []int{2, 101, 1}, conv.Options{Groups: 1}},
		"3d":          {[]int{6, 5, 7, 3}, []int{8, 3, 2, 3, 3}, conv.Options{Stride: []int{1, 1, 2}, Groups: 1}},
	} {
		w := optest.Noise(d, c.w...)
		f := func(x *tensor.Array) *tensor.Array { return conv.ConvGeneral(x, w, c.o) }
		all["conv "+name] = byRows{row: c.x, f: f}
		all["gradient of conv "+name] = byRows{row: c.x, f: func(x *tensor.Array) *tensor.Array {
			_, grads, err := grad.VJP(func(in []*tensor.Array) ([]*tensor.Array, error) {
				return []*tensor.Array{f(in[0])}, nil
			}, []*tensor.Array{x}, []*tensor.Array{f(x)})
			if err != nil {
				return tensor.Fail(nil, "gradient", "%w", err)
			}
			return grads[0]
		}}
	}
	return all
}

// counts are numbers of rows of every class, and of what kernels ask for otherwise.
var counts = []int{1, 2, 3, 8, 9, 16, 17, 40, 70, 520}

// eachRow calls f with how many rows there were and the bytes of row 0 of each result, which is the same row each time.
func eachRow(t *testing.T, d tensor.DType, what byRows, f func(rows int, row []byte)) {
	size := 1
	for _, n := range what.row {
		size *= n
	}
	for _, n := range counts {
		if n*size > 3e6 {
			continue
		}
		x := optest.Noise(d, append([]int{n}, what.row...)...)
		y := what.f(ops.Contiguous(x, false))
		require.NoError(t, y.Err())
		b, err := ops.Contiguous(y, false).Bytes(t.Context())
		require.NoError(t, err)
		f(n, b[:len(b)/n])
	}
}

// TestBatchInvariance: with one class for all, a row is the same alone and in any batch.
func TestBatchInvariance(t *testing.T) {
	brief.OnlyValues(t)
	optest.Open(t)
	before := tensor.SetBatchInvariant(true)
	defer tensor.SetBatchInvariant(before)
	for _, d := range []tensor.DType{tensor.Float32, tensor.BFloat16} {
		for name, what := range rowsOf(d) {
			if !what.product {
				continue // how many rows there are does not matter to these anyway
			}
			t.Run(fmt.Sprint(name, " ", d), func(t *testing.T) {
				var want []byte
				eachRow(t, d, what, func(rows int, row []byte) {
					if rows == 1 {
						want = slices.Clone(row)
					}
					require.Equal(t, want, row, "%d rows", rows)
				})
			})
		}
	}
}

// TestTheOrderOfSums: how many rows there are decides on the order of no sum, and of products by their class alone.
func TestTheOrderOfSums(t *testing.T) {
	brief.OnlyValues(t)
	optest.Open(t)
	for _, d := range []tensor.DType{tensor.Float32, tensor.BFloat16} {
		for name, what := range rowsOf(d) {
			if what.dtypes != nil && !slices.Contains(what.dtypes, d) {
				continue
			}
			t.Run(fmt.Sprint(name, " ", d), func(t *testing.T) {
				want := map[bool][]byte{}
				eachRow(t, d, what, func(rows int, row []byte) {
					class := what.product && rows > kit.FewRows
					if want[class] == nil {
						want[class] = slices.Clone(row)
					}
					require.Equal(t, want[class], row, "%d rows", rows)
				})
			})
		}
	}
}

// BenchmarkBatchInvariant measures products with both settings in turns: the least ms of each, and their ratio.
func BenchmarkBatchInvariant(b *testing.B) {
	optest.Open(b)
	w := optest.Noise(tensor.Float32, 4096, 4096)
	view := ops.SwapAxes(w, 0, 1)
	packed := quant.Quantize(w, quant.Quantization{Bits: 4})
	k, v := optest.Noise(tensor.Float32, 1, 8, 1024, 64), optest.Noise(tensor.Float32, 1, 8, 1024, 64)
	require.NoError(b, tensor.Eval(b.Context(), append([]*tensor.Array{w, k, v}, packed...)...))
	for _, rows := range []int{1, 16, 64, 512} {
		x, q := optest.Noise(tensor.Float32, rows, 4096), optest.Noise(tensor.Float32, 1, 8, rows, 64)
		images, window := optest.Noise(tensor.Float32, rows, 28, 28, 16), optest.Noise(tensor.Float32, 32, 3, 3, 16)
		require.NoError(b, tensor.Eval(b.Context(), x, q, images, window))
		for _, p := range []struct {
			name string
			f    func() *tensor.Array
		}{
			{"matmul by w", func() *tensor.Array { return ops.Matmul(x, w) }},
			{"matmul by w.T", func() *tensor.Array { return ops.Matmul(x, view) }},
			{"quantized_matmul of 4 bits", func() *tensor.Array {
				return quant.QuantizedMatmul(x, packed[0], packed[1], packed[2], true, quant.Quantization{Bits: 4})
			}},
			{"attention to 1024 keys", func() *tensor.Array {
				return fast.ScaledDotProductAttention(q, k, v, 0.125, fast.AttentionOptions{})
			}},
			{"conv2d of as many images", func() *tensor.Array { return conv.Conv2D(images, window, nil, nil, nil, 1) }},
		} {
			b.Run(fmt.Sprintf("%s of %d rows", p.name, rows), func(b *testing.B) {
				least := map[bool]float64{}
				for range 3 * max(b.N, 2) {
					for _, on := range []bool{false, true} {
						before := tensor.SetBatchInvariant(on)
						begun := time.Now()
						require.NoError(b, tensor.Eval(b.Context(), p.f()))
						took := time.Since(begun).Seconds() * 1e3
						tensor.SetBatchInvariant(before)
						if have, ok := least[on]; !ok || took < have {
							least[on] = took
						}
					}
				}
				b.ReportMetric(least[false], "ms")
				b.ReportMetric(least[true], "invariant-ms")
				b.ReportMetric(least[true]/least[false], "ratio")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}
