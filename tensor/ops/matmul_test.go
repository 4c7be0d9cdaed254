package ops_test

import (
	"bytes"
	"context"
	"math"
	"math/cmplx"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/internal/brief"
	"github.com/mlxlua/mlxlua/internal/serial"
	"github.com/mlxlua/mlxlua/metal/testdevice"
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/grad"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/fast"
	"github.com/mlxlua/mlxlua/tensor/ops/quant"
	"github.com/mlxlua/mlxlua/tensor/optest"
)

// TestMatmulTiles multiplies matrices of small whole numbers, for which every order of adding up is exact, in shapes
// that fill tiles and that do not, with operands that lie by rows and by columns.
func TestMatmulTiles(t *testing.T) {
	t.Parallel()
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
				require.Equal(t, want, optest.Values32(t, ops.Matmul(a, b)), "%d rows, %d columns, %d", rows, cols, turned)
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
			parts[1] = optest.Values32(t, ops.Imag(x))
			x = ops.Real(x)
		}
		parts[0] = optest.Values32(t, ops.AsType(x, tensor.Float32))
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
	t.Parallel()
	brief.OnlyValues(t)
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
		// many matrices of a few elements, and what is just not that
		{plain(545, 3, 2), plain(545, 2, 5)}, {turned(513, 5, 4), plain(513, 5, 8)}, {plain(8, 8), plain(4, 130, 8, 8)},
		{strided(512, 2, 12), turned(512, 2, 6)}, {plain(514, 1, 3, 3), plain(514, 2, 3, 3)}, {plain(511, 2, 2), plain(2, 2)},
		// small ones where they lie: some rows and columns twice, some lanes idle, columns that are turned
		{plain(3, 9, 70), plain(3, 70, 9)}, {turned(3, 33, 40), plain(3, 33, 50)}, {plain(66, 17, 33), turned(66, 35, 33)},
		{strided(32, 9, 90), turned(32, 9, 45)},
		// one operand or both in place
		{plain(70, 67), plain(67, 100)}, {turned(3, 67, 70), plain(67, 100)}, {strided(66, 134), plain(2, 67, 100)},
		{plain(3, 1, 66, 65), turned(2, 40, 65)}, {turned(66, 17), plain(66, 260)},
	} {
		for _, d := range []tensor.DType{tensor.Float32, tensor.Float16, tensor.BFloat16, tensor.Float64, tensor.Complex64} {
			if !optest.Computes(t, d) {
				continue
			}
			var in [2]*array
			for i, o := range c {
				in[i] = optest.Noise(d, o.shape...)
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
	serial.Because(t, "fusion is switched for the process")
	optest.Open(t)
	turn := func(x *array) *array { return ops.SwapAxes(x, -1, -2) }
	more := func(x *array) *array { return ops.Add(ops.Multiply(x, ops.Abs(x)), ops.Number(1, tensor.Float32)) }
	all := func() (results []*array) {
		f := tensor.Float32
		for _, rows := range []int{1, 5, 40} {
			x := optest.Noise(f, rows, 700)
			for _, w := range []*array{more(optest.Noise(f, 700, 130)), turn(more(optest.Noise(f, 130, 700))),
				more(turn(optest.Noise(f, 130, 700))),
				more(ops.BroadcastTo(optest.Noise(f, 700, 1), tensor.Sizes(700, 130))),
				more(ops.Slice(optest.Noise(f, 700, 260), []ops.Part{ops.Ellipsis(), ops.Span(0, 260, 2)}))} {
				results = append(results, more(ops.Matmul(more(x), w)), ops.Matmul(turn(w), more(turn(x))))
			}
			q, k := more(optest.Noise(f, 2, 4, rows, 64)), more(turn(optest.Noise(f, 2, 2, 64, 70)))
			results = append(results, more(fast.ScaledDotProductAttention(q, k, more(k), 0.01, fast.AttentionOptions{})))
			packing := quant.Quantization{GroupSize: 64, Bits: 4}
			w := quant.Quantize(optest.Noise(f, 130, 768), packing)
			results = append(results, more(quant.QuantizedMatmul(more(optest.Noise(f, rows, 768)), w[0], w[1], w[2], true,
				packing)))
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

func TestMatmul(t *testing.T) {
	t.Parallel()
	inexact := []tensor.DType{tensor.Float32, tensor.Float16, tensor.BFloat16, tensor.Float64, tensor.Complex64}
	zeros := func(d tensor.DType, n ...int) *array { return ops.Zeros(tensor.Sizes(n...), d) }
	f := tensor.Float32
	optest.Run(t, optest.Subject{
		Name: "matmul", DTypes: inexact, Second: true, Tol: optest.Tol{Rel: 1e-5, Abs: 4e-5},
		Fn: optest.One(func(in []*array) *array { return ops.Matmul(in[0], in[1]) }),
		Cases: []optest.Case{optest.Of("n,k", "k,m"), optest.Of("k", "k,m"), optest.Of("n,k", "k"), optest.Of("k", "k"),
			optest.Of("n,1,2,k", "3,k,m"),
			optest.Of("5,k", "k,m"), optest.Of("2,n,k", "k,m")},
		Refuse: []tensor.DType{tensor.Int32, tensor.Bool},
		Bad: []optest.Bad{
			{Name: "inner", Make: func() *array { return ops.Matmul(zeros(f, 3, 4), zeros(f, 5, 2)) },
				Text: "[matmul] inner dimensions differ: a (3, 4), b (5, 2)"},
			{Name: "row", Make: func() *array { return ops.Matmul(zeros(f, 3), zeros(f, 5, 2)) },
				Text: "[matmul] inner dimensions differ: a (3,), b (5, 2)"},
			{Name: "batch", Make: func() *array { return ops.Matmul(zeros(f, 2, 2, 3), zeros(f, 3, 3, 2)) },
				Text: "[matmul] batch dimensions of a (2, 2, 3) and b (3, 3, 2) cannot be broadcast"},
			{Name: "scalar", Make: func() *array { return ops.Matmul(zeros(f), zeros(f, 3)) }, Text: "[matmul] a scalar"},
			{Name: "ints", Make: func() *array { return ops.Matmul(zeros(ints32, 2, 2), zeros(ints32, 2, 2)) },
				Text: "[matmul] operands have dtypes int32 and int32"},
		},
	})
}

// TestLayoutsOfProducts: a product of many rows and columns has the same bytes however its operands lie, in place or in
// panels, since products are added in the order of depth.
func TestLayoutsOfProducts(t *testing.T) {
	t.Parallel()
	optest.Open(t)
	turned := func(x *array) *array {
		return ops.SwapAxes(ops.Contiguous(ops.SwapAxes(x, -1, -2), false), -1, -2)
	}
	apart := func(x *array) *array { // neither rows nor columns are neighbours
		y := ops.Stack([]*array{x, ops.Negative(x)}, -1)
		return ops.Squeeze(ops.Slice(y, []ops.Part{ops.Ellipsis(), ops.Span(0, 1, 1)}), []int{-1})
	}
	itself := func(x *array) *array { return x }
	for _, d := range []tensor.DType{tensor.Float32, tensor.Float64} {
		if !optest.Computes(t, d) {
			continue
		}
		for _, n := range [][3]int{{20, 70, 33}, {70, 67, 100}, {65, 300, 129}, {17, 40, 32}} {
			a, b := optest.Noise(d, 2, n[0], n[1]), optest.Noise(d, n[1], n[2])
			want := optest.Bytes(t, ops.Matmul(apart(a), apart(b)))
			for i, left := range []func(*array) *array{itself, turned, apart} {
				for j, right := range []func(*array) *array{itself, turned, apart} {
					require.Equal(t, want, optest.Bytes(t, ops.Matmul(left(a), right(b))), "%v, %v, layouts %d and %d", d, n, i, j)
				}
			}
		}
	}
}

// TestGradientsOfViewsTurnedRound: the gradient by a matrix is the same, turned round, if the product takes a view of
// it that is turned round, and then lies as the matrix does.
func TestGradientsOfViewsTurnedRound(t *testing.T) {
	t.Parallel()
	optest.Open(t)
	for _, d := range []tensor.DType{tensor.Float32, tensor.Complex64} {
		for _, rows := range [][]int{{20}, {3, 7}} {
			noise := func(shape ...int) *array {
				x := optest.Noise(d, shape...)
				if d == tensor.Complex64 {
					x = ops.Multiply(x, ops.FromSlice([]complex64{1 + 2i}, []int{1}))
				}
				return x
			}
			a, b := noise(append(rows, 40)...), noise(40, 50)
			cot := noise(append(rows, 50)...)
			gradient := func(w *array, view func(*array) *array) *array {
				_, g, err := grad.VJP(func(in []*array) ([]*array, error) {
					return []*array{ops.Matmul(a, view(in[0]))}, nil
				}, []*array{w}, []*array{cot})
				require.NoError(t, err)
				return g[0]
			}
			plain := gradient(b, func(w *array) *array { return w })
			round := gradient(ops.Contiguous(ops.Transpose(b, nil), false), func(w *array) *array {
				return ops.Transpose(w, nil)
			})
			require.Equal(t, optest.Bytes(t, plain), optest.Bytes(t, ops.Transpose(round, nil)), "%v, %v", d, rows)
			_, view, release, err := round.HostView(context.Background())
			require.NoError(t, err)
			release()
			require.Equal(t, []int{40, 1}, view.Strides)
		}
	}
}

// TestMatmulBudget: the error of a product is at most 2 K eps |a||b|.
func TestMatmulBudget(t *testing.T) {
	t.Parallel()
	optest.Open(t)
	const m, k, n = 9, 500, 40
	a, b := make([]float32, m*k), make([]float32, k*n)
	seed := uint32(1)
	next := func() float32 { seed = seed*1664525 + 1013904223; return float32(int32(seed)) / (1 << 31) }
	for i := range a {
		a[i] = next()
	}
	for i := range b {
		b[i] = next()
	}
	got := optest.Values32(t, ops.Matmul(ops.FromSlice(a, []int{m, k}), ops.FromSlice(b, []int{k, n})))
	for i := range m {
		for j := range n {
			exact, size := 0.0, 0.0
			for l := range k {
				p := float64(a[i*k+l]) * float64(b[l*n+j])
				exact, size = exact+p, size+math.Abs(p)
			}
			require.InDelta(t, exact, got[i*n+j], 2*k*math.Ldexp(1, -24)*size)
		}
	}
}

// TestStrips: a matrix that is packed a strip at a time gives the bytes of its columns alone, whatever its layout.
func TestStrips(t *testing.T) {
	t.Parallel()
	const rows, depth, cols = 17, 2100, 301
	if optest.Open(t); strings.HasPrefix(testdevice.Name(), "cuda") {
		t.Skip("a library adds up in an order that columns have a say in")
	}
	part := func(x *array, from, to int) *array {
		return ops.Slice(x, []ops.Part{ops.Whole(), ops.Span(from, to, 1)})
	}
	for _, d := range []tensor.DType{tensor.Float32, tensor.BFloat16, tensor.Float16} {
		a := optest.Noise(d, rows, depth)
		for name, b := range map[string]*array{
			"by rows":    optest.Noise(d, depth, cols),
			"by columns": ops.Transpose(optest.Noise(d, cols, depth), nil),
			"part":       part(optest.Noise(d, depth, cols+9), 5, cols+5),
			"backwards":  ops.Slice(optest.Noise(d, depth, cols), []ops.Part{ops.Whole(), ops.Span(ops.None, ops.None, -1)}),
		} {
			whole := ops.Matmul(a, b)
			for from := 0; from < cols; from += 64 {
				to := min(from+64, cols)
				if to-from < 17 {
					from, to = cols-64, cols // fewer columns are added in another order
				}
				require.Equal(t, optest.Bytes(t, ops.Matmul(a, part(b, from, to))), optest.Bytes(t, part(whole, from, to)),
					"%v %s, columns from %d", d, name, from)
			}
		}
	}
}
