package ops_test

import (
	"bytes"
	"context"
	"math/cmplx"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/optest"
)

// TestMatmulTiles multiplies matrices of small whole numbers, for which every order of adding up is exact, in shapes
// that fill tiles and that do not, with operands that lie by rows and by columns.
func TestMatmulTiles(t *testing.T) {
	optest.Open(t)
	matrix := func(rows, cols int, turned bool, seed uint32) ([]float32, *array) {
		v := make([]float32, rows*cols)
		for i := range v {
			seed = seed*1664525 + 1013904223
			v[i] = float32(seed>>24) - 128
		}
		if !turned {
			return v, ops.FromSlice(v, []int{rows, cols})
		}
		w := make([]float32, rows*cols)
		for i := range v {
			w[i%cols*rows+i/cols] = v[i]
		}
		return v, ops.SwapAxes(ops.FromSlice(w, []int{cols, rows}), 0, 1)
	}
	const depth = 37
	for _, rows := range []int{1, 2, 4, 9, 130} {
		for _, cols := range []int{1, 3, 4, 20, 66, 68, 256} {
			for turned := range 4 {
				va, a := matrix(rows, depth, turned&1 != 0, 1)
				vb, b := matrix(depth, cols, turned&2 != 0, 2)
				want := make([]float64, rows*cols)
				for i := range want {
					for k := range depth {
						want[i] += float64(va[i/cols*depth+k] * vb[k*cols+i%cols])
					}
				}
				require.Equal(t, want, values32(t, ops.Matmul(a, b)), "%d rows, %d columns, %d", rows, cols, turned)
			}
		}
	}
}

// checkProduct compares a product with sums in float64.
func checkProduct(t *testing.T, a, b *array) {
	t.Helper()
	y := ops.Matmul(a, b)
	require.NoError(t, tensor.Eval(context.Background(), y), "%v x %v", a, b)
	shape := y.Shape()
	n := len(shape)
	batch, rows, cols, depth := shape[:n-2], shape[n-2], shape[n-1], a.Shape()[a.NDim()-1]
	numbers := func(x *array, shape ...int) []complex128 {
		x = ops.BroadcastTo(x, tensor.Sizes(append(append([]int(nil), batch...), shape...)...))
		parts := [2][]float64{nil, make([]float64, x.Size())}
		if x.DType().IsComplex() {
			parts[1] = values32(t, ops.Imag(x))
			x = ops.Real(x)
		}
		parts[0] = values32(t, ops.AsType(x, tensor.Float32))
		out := make([]complex128, len(parts[0]))
		for i, re := range parts[0] {
			out[i] = complex(re, parts[1][i])
		}
		return out
	}
	va, vb, vy := numbers(a, rows, depth), numbers(b, depth, cols), numbers(y, rows, cols)
	once := map[tensor.DType]float64{tensor.Float16: 0x1p-11, tensor.BFloat16: 0x1p-8}[y.DType()]
	for i, got := range vy {
		r, c := i/cols, i/(rows*cols)*depth*cols+i%cols
		var sum complex128
		var size float64
		for k := range depth {
			p := va[r*depth+k] * vb[c+k*cols]
			sum += p
			size += cmplx.Abs(p)
		}
		least := 2*float64(depth+2)*0x1p-24*size + once*cmplx.Abs(sum)
		if cmplx.Abs(got-sum) > least {
			require.Failf(t, "inexact", "%v x %v, element %d: %v, want %v within %g", a, b, i, got, sum, least)
		}
	}
}

// TestMatmulNearExact multiplies noise in shapes of every way to do it and compares with sums in float64: the error is
// at most 2 K eps |a||b|, and one rounding more for half types. Batches are broadcast, have strides, and lie below each
// other.
func TestMatmulNearExact(t *testing.T) {
	optest.OnlyValues(t)
	optest.Open(t)
	type operand struct {
		shape []int
		view  func(x *array) *array // of an array of that shape, nil: itself
	}
	turned := func(shape ...int) operand {
		return operand{shape, func(x *array) *array { return ops.SwapAxes(x, -1, -2) }}
	}
	plain := func(shape ...int) operand { return operand{shape: shape} }
	strided := func(shape ...int) operand {
		return operand{shape, func(x *array) *array {
			return ops.Slice(x, []ops.Part{ops.Ellipsis(), ops.Span(0, shape[len(shape)-1], 2)})
		}}
	}
	for _, c := range [][2]operand{
		{plain(1, 1), plain(1, 1)}, {plain(3, 5), plain(5, 33)}, {plain(1, 1030), plain(1030, 129)},
		{plain(5, 1030), plain(1030, 260)}, {plain(9, 65), turned(33, 65)}, {plain(33, 513), plain(513, 3)},
		{turned(513, 70), plain(513, 5)}, {turned(1030, 130), plain(1030, 1)}, {plain(65, 33), plain(33, 65)},
		{plain(129, 70), turned(63, 70)}, {turned(70, 66), plain(70, 130)}, {turned(70, 20), turned(90, 70)},
		{strided(40, 140), strided(70, 80)}, {strided(3, 140), strided(70, 80)}, {strided(20, 1040), strided(520, 9)},
		{plain(3, 2, 20, 31), plain(31, 40)}, {plain(3, 2, 20, 31), plain(2, 31, 40)}, {plain(3, 1, 20, 31),
			turned(1, 5, 40, 31)}, {plain(2, 1, 3, 640), plain(4, 640, 33)}, {strided(2, 3, 4, 66), strided(3, 33, 24)},
		{plain(70, 1, 31), plain(31, 40)}, {turned(2, 31, 40), plain(31, 50)}, {plain(20, 1), plain(1, 70)},
	} {
		for _, d := range []tensor.DType{tensor.Float32, tensor.Float16, tensor.BFloat16, tensor.Float64, tensor.Complex64} {
			var in [2]*array
			for i, o := range c {
				in[i] = noise(d, o.shape...)
				if d == tensor.Complex64 {
					in[i] = ops.Multiply(in[i], ops.FromSlice([]complex64{1 + 2i}, []int{1}))
				}
				if o.view != nil {
					in[i] = o.view(in[i])
				}
			}
			checkProduct(t, in[0], in[1])
		}
	}
}

// TestProductsOfFusedOperands: products are the same bytes whether their operands come from fused kernels or from one
// for each op, whatever the operands' layouts: that decides how a product is added up, so fusion must not change it.
func TestProductsOfFusedOperands(t *testing.T) {
	optest.Open(t)
	turn := func(x *array) *array { return ops.SwapAxes(x, -1, -2) }
	more := func(x *array) *array { return ops.Add(ops.Multiply(x, ops.Abs(x)), ops.Number(1, tensor.Float32)) }
	all := func() (results []*array) {
		f := tensor.Float32
		for _, rows := range []int{1, 5, 40} {
			x := noise(f, rows, 700)
			for _, w := range []*array{more(noise(f, 700, 130)), turn(more(noise(f, 130, 700))),
				more(turn(noise(f, 130, 700))),
				more(ops.BroadcastTo(noise(f, 700, 1), tensor.Sizes(700, 130))),
				more(ops.Slice(noise(f, 700, 260), []ops.Part{ops.Ellipsis(), ops.Span(0, 260, 2)}))} {
				results = append(results, more(ops.Matmul(more(x), w)), ops.Matmul(turn(w), more(turn(x))))
			}
			q, k := more(noise(f, 2, 4, rows, 64)), more(turn(noise(f, 2, 2, 64, 70)))
			results = append(results, more(ops.ScaledDotProductAttention(q, k, more(k), 0.01, ops.AttentionOptions{})))
			packing := ops.Quantization{GroupSize: 64, Bits: 4}
			w := ops.Quantize(noise(f, 130, 768), packing)
			results = append(results, more(ops.QuantizedMatmul(more(noise(f, rows, 768)), w[0], w[1], w[2], true, packing)))
		}
		return results
	}
	given := func(fuse bool) (b [][]byte) {
		defer tensor.SetFusion(tensor.SetFusion(fuse))
		for _, y := range all() {
			raw, err := y.Bytes(context.Background())
			require.NoError(t, err)
			b = append(b, raw)
		}
		return b
	}
	with, without := given(true), given(false)
	for i := range with {
		require.True(t, bytes.Equal(with[i], without[i]), "result %d differs", i)
	}
}
