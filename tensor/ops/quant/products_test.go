package quant_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/internal/brief"
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/quant"
	"github.com/mlxlua/mlxlua/tensor/optest"
)

// near compares a product with a packed matrix with x w, for w unpacked in float64: the error is at most
// 2 K eps |a||b|, where an element of b counts as its scale times q and its bias, each at most twice the largest w; and
// one rounding more for half types.
func near(t *testing.T, got, x, w *array) {
	t.Helper()
	c := optest.Wide(t)
	want := optest.Values32(t, ops.AsType(ops.Matmul(ops.AsType(x, tensor.Float64, c), w, c), tensor.Float32, c))
	size := optest.Values32(t, ops.AsType(ops.Sum(ops.Abs(x, c), []int{-1}, true, c), tensor.Float32, c))
	largest := optest.Values32(t, ops.AsType(ops.Max(ops.Abs(w, c), nil, false, c), tensor.Float32, c))[0]
	shape := x.Shape()
	relative := 2 * float64(shape[len(shape)-1]+2) * 0x1p-24 * 4 * largest
	rounding := map[tensor.DType]float64{tensor.Float32: 0x1p-24, tensor.BFloat16: 0x1p-8, tensor.Float16: 0x1p-11}
	once := rounding[got.DType()]
	cols := got.Shape()[got.NDim()-1]
	for i, v := range optest.Values32(t, ops.AsType(got, tensor.Float32)) {
		least := relative*size[i/cols] + once*max(want[i], -want[i])
		if !(math.Abs(want[i]-v) <= least) {
			t.Fatalf("%v, element %d, x %v, w %v: %v, want %v, to %v", got.DType(), i, shape, w.Shape(), v, want[i], least)
		}
	}
}

// TestQuantizedNearExact compares quantized_matmul of noise with float64, in each way to compute it.
func TestQuantizedNearExact(t *testing.T) {
	brief.OnlyValues(t)
	optest.Open(t)
	for i, q := range []quant.Quantization{{Bits: 1}, {Bits: 3}, {Bits: 4}, {Bits: 8}, {Mode: "mxfp4"}, {Mode: "mxfp8"},
		{Mode: "nvfp4"}} {
		for _, rows := range []int{1, 8, 9, 70} {
			for _, d := range optest.Computed(t, tensor.Float32, tensor.BFloat16, tensor.Float64) {
				if q.Mode == "" {
					q.GroupSize = []int{32, 64, 128}[(i+rows)%3]
				}
				p := pack(optest.Noise(d, 133, 1280), q)
				plain := quant.Dequantize(p[0], p[1], p[2], q, new(tensor.Float64), optest.Wide(t))
				x := optest.Noise(d, rows, 1280)
				near(t, quant.QuantizedMatmul(x, p[0], p[1], p[2], true, q), x, ops.SwapAxes(plain, 0, 1))
				x = optest.Noise(d, rows, 133)
				near(t, quant.QuantizedMatmul(x, p[0], p[1], p[2], false, q), x, plain)
			}
		}
	}
}

// pack is what Quantize gives: the packed matrix, scales, and biases, which are nil where the mode has none.
func pack(w *array, q quant.Quantization) [3]*array {
	p := quant.Quantize(w, q)
	return [3]*array(append(p, nil)[:3])
}

// wholes are small whole numbers of either sign, as floats.
func wholes(n int, seed uint32) []float32 {
	v := make([]float32, n)
	for i := range v {
		seed = seed*1664525 + 1013904223
		v[i] = float32(int32(seed>>24)%4 - 1)
	}
	return v
}

// packedWholes are random words as matrices of rows x cols, whose scales and biases are whole numbers, and what they
// unpack to: element k of a row has the bits from k * bits on.
func packedWholes(q quant.Quantization, matrices, rows, cols int) (in [3]*array, plain []float32) {
	words, groups := cols*q.Bits/32, cols/q.GroupSize
	w := make([]uint32, matrices*rows*words)
	seed := uint32(q.Bits)
	for i := range w {
		seed = seed*1664525 + 1013904223
		w[i] = seed ^ seed>>15
	}
	scales, biases := wholes(matrices*rows*groups, 3), wholes(matrices*rows*groups, 4)
	for i := range matrices * rows * cols {
		row, k, value := i/cols, i%cols, 0
		for b := range q.Bits {
			at := k*q.Bits + b
			value |= int(w[row*words+at/32]>>(at%32)&1) << b
		}
		g := row*groups + k/q.GroupSize
		plain = append(plain, scales[g]*float32(value)+biases[g])
	}
	shape := []int{matrices, rows, groups}
	in[0] = ops.FromSlice(w, []int{matrices, rows, words})
	in[1], in[2] = ops.FromSlice(scales, shape), ops.FromSlice(biases, shape)
	return in, plain
}

// TestQuantizedWholes multiplies whole numbers, for which every order of adding up is exact, with random words: every
// packing, along depth and along the columns, few rows and many, gathered and not, sizes that fill tiles and that do
// not.
func TestQuantizedWholes(t *testing.T) {
	brief.OnlyValues(t)
	optest.Open(t)
	const outer = 69
	for _, bits := range []int{1, 2, 3, 4, 5, 6, 8} {
		q := quant.Quantization{Bits: bits, GroupSize: []int{32, 64, 128}[bits%3]}
		inner := q.GroupSize * (1 + bits)
		in, plain := packedWholes(q, 2, outer, inner)
		first := func(x *array) *array { return ops.Slice(x, []ops.Part{ops.At(0)}) }
		for _, rows := range []int{1, 3, 8, 9, 33, 65} {
			for _, transposed := range []bool{true, false} {
				depth, cols, along, across := outer, inner, inner, 1
				if transposed {
					depth, cols, along, across = inner, outer, 1, inner
				}
				v := wholes(3*rows*depth, uint32(rows))
				product := func(x, w int) []float64 {
					out := make([]float64, rows*cols)
					for i := range out {
						for k := range depth {
							out[i] += float64(v[(x*rows+i/cols)*depth+k] * plain[w*outer*inner+k*along+i%cols*across])
						}
					}
					return out
				}
				name := fmt.Sprintf("%d bits, %d rows, transposed %v", bits, rows, transposed)
				want := product(0, 0)
				x := ops.FromSlice(v, []int{3, rows, depth})
				require.Equal(t, want, optest.Values32(t, quant.QuantizedMatmul(first(x), first(in[0]), first(in[1]), first(in[2]),
					transposed, q)), name)
				call := quant.GatherQMMCall{Quantization: q, NoTranspose: !transposed,
					LHS: ops.FromSlice([]int32{0, 2, -1}, []int{3}), RHS: ops.FromSlice([]uint32{0, 1, 1}, []int{3})}
				want = append(append(want, product(2, 1)...), product(2, 1)...)
				require.Equal(t, want, optest.Values32(t, quant.GatherQMM(x, in[0], in[1], in[2], call)), name)
			}
		}
	}
}

// TestRowsAreAlone: a row has the same bytes alone and beside up to fifteen others, in every packing of words, of
// depths that fill whole SIMD-groups with units of words and that do not.
func TestRowsAreAlone(t *testing.T) {
	optest.Open(t)
	var list []quant.Quantization
	for _, bits := range []int{1, 2, 3, 4, 5, 6, 8} {
		list = append(list, quant.Quantization{Bits: bits, GroupSize: 32 << (bits % 3)})
	}
	for _, mode := range []string{"mxfp4", "mxfp8", "nvfp4"} {
		list = append(list, quant.Quantization{Mode: mode})
	}
	for i, q := range list {
		d := optest.FloatTypes[i%3]
		for _, depth := range []int{128, 1024, 1152} {
			w := pack(optest.Noise(tensor.Float32, 37, depth), q)
			x := optest.Noise(d, 16, depth)
			product := func(from, to int) []byte {
				y := quant.QuantizedMatmul(ops.Slice(x, []ops.Part{ops.Span(from, to, 1)}), w[0], w[1], w[2], true, q)
				return optest.Bytes(t, y)
			}
			var alone []byte
			for row := range 16 {
				alone = append(alone, product(row, row+1)...)
			}
			for _, rows := range []int{2, 3, 4, 7, 8, 9, 15, 16} {
				some := product(0, rows)
				require.Equal(t, alone[:len(some)], some, "%v, depth %d, %d rows of %v", q, depth, rows, d)
			}
		}
	}
}
