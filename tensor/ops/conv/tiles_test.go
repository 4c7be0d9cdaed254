package conv_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/internal/brief"
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/grad"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/conv"
	"github.com/mlxlua/mlxlua/tensor/optest"
)

// problem is a convolution, all of whose three ops are computed.
type problem struct {
	x, w []int
	o    conv.Options
}

var problems = []problem{
	{[]int{2, 9, 11, 5}, []int{70, 3, 2, 5}, conv.Options{PaddingLow: []int{1, 0}, PaddingHigh: []int{2, 1}, Groups: 1}},
	{[]int{3, 12, 13, 4}, []int{6, 3, 3, 2}, conv.Options{Stride: []int{2, 3}, KernelDilation: []int{1, 2}, Groups: 2}},
	{[]int{2, 10, 9, 3}, []int{34, 2, 3, 3}, conv.Options{InputDilation: []int{2, 3}, Stride: []int{1, 2},
		KernelDilation: []int{3, 2}, PaddingLow: []int{2}, PaddingHigh: []int{2}, Groups: 1, Flip: true}},
	{[]int{1, 300, 1}, []int{1, 70, 1}, conv.Options{PaddingLow: []int{69}, PaddingHigh: []int{69}, Groups: 1}},
	{[]int{5, 6, 4, 8}, []int{9, 1, 1, 8}, conv.Options{Groups: 1}},
	{[]int{5, 7, 5, 8}, []int{9, 1, 1, 8}, conv.Options{Stride: []int{2}, Groups: 1}},
	{[]int{2, 7, 6, 20}, []int{20, 3, 3, 1}, conv.Options{PaddingLow: []int{1}, PaddingHigh: []int{1}, Groups: 20}},
	{[]int{2, 5, 4, 6, 3}, []int{7, 2, 3, 2, 3}, conv.Options{Stride: []int{1, 1, 2}, Groups: 1}},
	{[]int{9, 30, 31, 2}, []int{3, 2, 2, 2}, conv.Options{Groups: 1}}, // its weight's gradient is cut into parts
	{[]int{2, 11, 19, 70}, []int{140, 2, 3, 1}, conv.Options{Stride: []int{1, 2}, KernelDilation: []int{2, 1},
		PaddingLow: []int{1, 2}, PaddingHigh: []int{0, 2}, Groups: 70}},
	{[]int{3, 40, 33}, []int{33, 5, 1}, conv.Options{InputDilation: []int{2}, PaddingLow: []int{4}, Groups: 33,
		Flip: true}},
	{[]int{2, 36, 30, 5}, []int{17, 12, 10, 5}, conv.Options{Stride: []int{12, 10}, Groups: 1}}, // patches
	{[]int{2, 32, 40, 3}, []int{9, 8, 10, 3}, conv.Options{Stride: []int{8, 10}, Groups: 1, Flip: true}},
	{[]int{70, 8, 11, 33}, []int{33, 2, 1, 1}, conv.Options{Groups: 33}}, // more examples than places: depth comes last
	{[]int{1, 9, 10, 40}, []int{8, 3, 3, 40}, conv.Options{Stride: []int{2, 3}, KernelDilation: []int{2, 1}, Groups: 1}},
	{[]int{1, 3, 4, 500}, []int{5, 3, 3, 500}, conv.Options{Groups: 1}}, // it is cut into parts itself
	{[]int{1, 9, 3}, []int{4, 3, 3}, conv.Options{PaddingLow: []int{-2}, PaddingHigh: []int{-1}, Groups: 1}},
}

// results are the bytes of a convolution and its gradients, as numbers.
func (p problem) results(t *testing.T, d tensor.DType) (all [][]float64) {
	t.Helper()
	x, w := optest.Noise(d, p.x...), optest.Noise(d, p.w...)
	if d.IsComplex() {
		x, w = optest.Noise(tensor.Float32, p.x...), ops.Multiply(w, ops.FromSlice([]complex64{1 + 2i}, []int{}))
	}
	f := func(in []*array) ([]*array, error) { return []*array{conv.ConvGeneral(in[0], in[1], p.o)}, nil }
	y, err := f([]*array{x, w})
	require.NoError(t, err)
	require.NoError(t, y[0].Err())
	cot := optest.Noise(y[0].DType(), y[0].Spec().Shape...)
	_, grads, err := grad.VJP(f, []*array{x, w}, []*array{cot})
	require.NoError(t, err)
	for _, a := range append(y, grads...) {
		var v []float64
		b, size := optest.Bytes(t, a), a.DType().Size()
		for ; len(b) > 0; b = b[size:] {
			v = append(v, optest.Floats(b[:size], a.DType())...)
		}
		all = append(all, v)
	}
	return all
}

// TestPaddingIsMultiplied: as in MLX, a zero beyond the input is multiplied, so that an infinite weight gives NaN, in
// every way of computing.
func TestPaddingIsMultiplied(t *testing.T) {
	brief.OnlyValues(t)
	optest.Open(t)
	ways := []func() func(){func() func() { return func() {} }, conv.Direct, func() func() {
		_, undo := conv.AcrossGroups()
		return undo
	}, func() func() {
		_, undo := conv.Tiled(0, 0, false)
		return undo
	}}
	for i, way := range ways {
		undo := way()
		x, w := ops.Ones(tensor.Sizes(1, 4, 5, 2), tensor.Float32), ops.Full(tensor.Sizes(2, 3, 3, 1),
			ops.Number(math.Inf(1), tensor.Float32), tensor.Float32)
		y := conv.ConvGeneral(x, w, conv.Options{PaddingLow: []int{1}, PaddingHigh: []int{1}, Groups: 2})
		v := optest.Floats(optest.Bytes(t, y), tensor.Float32)
		undo()
		for k, e := range v {
			row, col := k/2/5, k/2%5
			border := row == 0 || row == 3 || col == 0 || col == 4
			require.Equal(t, border, math.IsNaN(e), "way %d, row %d, column %d: %v", i, row, col, e)
		}
	}
}

// TestWays: each way of computing gives the bytes of the plain kernel, which golden data are compared with.
func TestWays(t *testing.T) {
	brief.OnlyValues(t)
	optest.Open(t)
	used := map[string]int{}
	for i, p := range problems {
		for k, d := range []tensor.DType{tensor.Float32, tensor.Float64, tensor.BFloat16, tensor.Complex64} {
			if testing.Short() && (i+k)%4 != 0 {
				continue
			}
			what := fmt.Sprintf("problem %d, %v", i, d)
			undo := conv.Direct()
			want := p.results(t, d)
			undo()
			try := func(name string, count func() int, undo func()) {
				defer undo()
				require.Equal(t, want, p.results(t, d), "%s, %s", what, name)
				used[name] += count()
			}
			require.Equal(t, want, p.results(t, d), what)
			count, undo := conv.AcrossGroups()
			try("across groups", count, undo)
			for axis := range 4 {
				shape := (i + axis) % conv.TileShapes
				for _, wide := range []bool{false, true} {
					if wide && d != tensor.Float32 {
						continue
					}
					count, undo := conv.Tiled(axis, shape, wide)
					try(fmt.Sprint("tiles ", shape, ", wide ", wide), count, undo)
				}
			}
		}
	}
	if testing.Short() {
		return
	}
	require.Len(t, used, 1+2*conv.TileShapes)
	for name, n := range used {
		require.Positive(t, n, name)
	}
}

// TestPlain: a device whose kernels do not run on the host's processors has the plain kernel, which gives the bytes of
// the others.
func TestPlain(t *testing.T) {
	brief.OnlyValues(t)
	for i, p := range problems {
		if optest.Spared(i) {
			continue
		}
		optest.AsPlain(t, func(c *tensor.Ctx) map[string]*tensor.Array {
			y := conv.ConvGeneral(optest.Noise(tensor.Float32, p.x...), optest.Noise(tensor.Float32, p.w...), p.o, c)
			return map[string]*tensor.Array{fmt.Sprint("problem ", i): y}
		})
	}
}
