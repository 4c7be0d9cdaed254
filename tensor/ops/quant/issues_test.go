package quant_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/internal/brief"
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/grad"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/quant"
	"github.com/mlxlua/mlxlua/tensor/optest"
)

// Results that MLX got wrong without a word, by the number of its issue on GitHub.

// sortedPlaces are n indices of experts in ascending order, some of them without an index.
func sortedPlaces(n, experts int) *array {
	v := make([]uint32, n)
	for i := range v {
		v[i] = uint32(i * experts / n)
		if v[i] == 1 { // an expert without a row
			v[i] = 2
		}
	}
	return ops.FromSlice(v, []int{n})
}

// gathered compares gather_qmm of rows x, shape (n, 1, depth), in the order of their experts with products with
// unpacked matrices.
func gathered(t *testing.T, x, rhs *array, p [3]*array, transpose bool, q quant.Quantization) {
	t.Helper()
	call := quant.GatherQMMCall{RHS: rhs, NoTranspose: !transpose, Quantization: q}
	got := quant.GatherQMM(x, p[0], p[1], p[2], call)
	plain := quant.Dequantize(p[0], p[1], p[2], q, new(tensor.Float64), optest.Wide(t))
	if transpose {
		plain = ops.SwapAxes(plain, -1, -2)
	}
	near(t, got, x, ops.Take(plain, rhs, new(0), optest.Wide(t)))
}

// TestIssue3444 multiplies with matrices of floats whose depth is a multiple of a group but not of 64.
func TestIssue3444(t *testing.T) {
	brief.OnlyValues(t)
	optest.Open(t)
	for _, m := range floatModes {
		q := quant.Quantization{Mode: m.name}
		for _, depth := range []int{32 + m.group, 96, 544, 512 + m.group} {
			p := pack(optest.Noise(tensor.Float32, 3, depth, 64), q)
			gathered(t, optest.Noise(tensor.Float32, 16, 1, depth), sortedPlaces(16, 3), p, false, q)
		}
	}
}

// TestIssue3856 has more rows than fit in 16 bits.
func TestIssue3856(t *testing.T) {
	brief.OnlyValues(t)
	optest.Open(t)
	q := quant.Quantization{Bits: 8, GroupSize: 32}
	const rows = 1<<15 + 65
	p := pack(optest.Noise(tensor.Float32, 4, 3, 32), q)
	gathered(t, optest.Noise(tensor.Float32, rows, 1, 32), sortedPlaces(rows, 4), p, true, q)
	first := [3]*array{}
	for i := range p {
		first[i] = ops.Slice(p[i], []ops.Part{ops.At(0)})
	}
	plain := quant.Dequantize(first[0], first[1], first[2], q, new(tensor.Float64), optest.Wide(t))
	x := optest.Noise(tensor.Float32, rows, 32)
	near(t, quant.QuantizedMatmul(x, first[0], first[1], first[2], true, q), x, ops.SwapAxes(plain, 0, 1))
}

// TestIssue3887 multiplies rows whose length is no multiple of 64.
func TestIssue3887(t *testing.T) {
	brief.OnlyValues(t)
	optest.Open(t)
	for _, depth := range []int{32, 96, 160} {
		for _, q := range []quant.Quantization{{Bits: 2}, {Bits: 3}, {Bits: 4}, {Bits: 5}, {Bits: 6}, {Bits: 8},
			{Mode: "mxfp4"}, {Mode: "mxfp8"}, {Mode: "nvfp4"}} {
			if q.Mode == "" {
				q.GroupSize = 32
			}
			p := pack(optest.Noise(tensor.Float32, 4, 40, depth), q)
			gathered(t, optest.Noise(tensor.Float32, 80, 1, depth), sortedPlaces(80, 4), p, true, q)
		}
	}
}

// TestIssue4055 multiplies with rows that are cut out of packed matrices, and unpacks such rows (issue 4370).
func TestIssue4055(t *testing.T) {
	optest.Open(t)
	for _, q := range []quant.Quantization{{}, {Mode: "nvfp4"}} {
		p := pack(optest.Noise(tensor.Float32, 3, 10, 128), q)
		for _, span := range [][2]int{{0, 5}, {5, 10}} {
			var part, alone [3]*array
			for i, x := range p {
				if x != nil {
					part[i] = ops.Slice(x, []ops.Part{ops.Whole(), ops.Span(span[0], span[1], 1)})
					alone[i] = ops.Add(part[i], ops.Number(0, x.DType()))
				}
			}
			x, rhs := optest.Noise(tensor.Float32, 12, 1, 128), sortedPlaces(12, 3)
			gathered(t, x, rhs, part, true, q)
			call := quant.GatherQMMCall{RHS: rhs, Quantization: q}
			require.Equal(t, optest.Values32(t, quant.GatherQMM(x, alone[0], alone[1], alone[2], call)),
				optest.Values32(t, quant.GatherQMM(x, part[0], part[1], part[2], call)))
			want := ops.Slice(quant.Dequantize(p[0], p[1], p[2], q, new(tensor.Float32)),
				[]ops.Part{ops.Whole(), ops.Span(span[0], span[1], 1)})
			require.Equal(t, optest.Values32(t, want),
				optest.Values32(t, quant.Dequantize(part[0], part[1], part[2], q, new(tensor.Float32))), "issue 4370")
		}
	}
}

// TestIssue4253 multiplies a view of rows with a dimension between them, without an index of rows.
func TestIssue4253(t *testing.T) {
	optest.Open(t)
	p := pack(optest.Noise(tensor.Float32, 4, 5, 64), quant.Quantization{})
	rows := optest.Noise(tensor.Float32, 64, 12)
	for _, x := range []*array{optest.Noise(tensor.Float32, 12, 64), ops.SwapAxes(rows, 0, 1)} {
		gathered(t, ops.ExpandDims(x, []int{1}), sortedPlaces(12, 4), p, true, quant.Quantization{})
	}
}

// TestIssue3480 multiplies heads of queries with the keys that several of them share, for which packed matrices have a
// dimension of 1 or one of stride 0; in issue 4250 columns that are no multiple of 64 were left out.
func TestIssue3480(t *testing.T) {
	optest.Open(t)
	for _, q := range []quant.Quantization{{GroupSize: 32}, {Mode: "mxfp8"}} {
		p := pack(optest.Noise(tensor.Float32, 2, 1, 7, 96), q)
		plain := quant.Dequantize(p[0], p[1], p[2], q, new(tensor.Float64), optest.Wide(t))
		for _, repeated := range []bool{false, true} {
			w := p
			for i := range w {
				if repeated && w[i] != nil {
					n := w[i].Shape()
					w[i] = ops.BroadcastTo(w[i], tensor.Sizes(2, 3, n[2], n[3]))
				}
			}
			x := optest.Noise(tensor.Float32, 2, 3, 2, 96)
			near(t, quant.QuantizedMatmul(x, w[0], w[1], w[2], true, q), x, ops.SwapAxes(plain, -1, -2))
			x = optest.Noise(tensor.Float32, 2, 3, 1, 7)
			near(t, quant.QuantizedMatmul(x, w[0], w[1], w[2], false, q), x, plain)
		}
	}
}

// TestGatherForms compares gather_qmm of all forms of indices and batches with products of unpacked matrices.
func TestGatherForms(t *testing.T) {
	brief.OnlyValues(t)
	optest.Open(t)
	index := func(v []int32, shape ...int) *array { return ops.FromSlice(v, shape) }
	forms := []struct {
		batchX, batchW []int
		lhs, rhs       *array
	}{
		{[]int{1}, []int{3}, index([]int32{0}, 1), index([]int32{2, 1}, 2)},
		{[]int{2}, []int{3}, nil, index([]int32{2, 1}, 2)},
		{[]int{3}, []int{1}, index([]int32{0, 2}, 2), nil},
		{[]int{4, 2}, []int{4, 1}, index([]int32{7, 6, 5, 4, 1, 2}, 3, 2), index([]int32{2, 0, 1}, 3, 1)},
		{[]int{2, 2}, []int{2, 2}, nil, nil},
		{[]int{3}, nil, nil, nil},
		{[]int{3}, nil, index([]int32{-1, 0}, 2), index([]int32{0}, 1)},
		{nil, []int{3}, index([]int32{0}), index([]int32{1, 0, -1}, 3)},
		{[]int{2}, []int{3}, index(nil, 0), index([]int32{1}, 1)},
	}
	for i, f := range forms {
		for _, q := range []quant.Quantization{{Bits: 5, GroupSize: 32}, {Mode: "mxfp4"}} {
			for _, rows := range []int{1, 11} {
				for _, transpose := range []bool{true, false} {
					depth, cols := 64, 5
					if !transpose {
						depth, cols = 5, 64
					}
					x := optest.Noise(tensor.Float32, append(f.batchX, rows, depth)...)
					p := pack(optest.Noise(tensor.Float32, append(f.batchW, 5, 64)...), q)
					got := quant.GatherQMM(x, p[0], p[1], p[2], quant.GatherQMMCall{LHS: f.lhs, RHS: f.rhs, NoTranspose: !transpose,
						Quantization: q})
					plain := quant.Dequantize(p[0], p[1], p[2], q, new(tensor.Float64), optest.Wide(t))
					if transpose {
						plain = ops.SwapAxes(plain, -1, -2)
					}
					take := func(y *array, batch []int, index *array) *array {
						if index == nil {
							return y
						}
						n := y.Shape()
						flat := ops.Reshape(y, tensor.Sizes(n[:len(batch)].Size(), n[len(batch)], n[len(batch)+1]))
						return ops.Take(flat, index, new(0))
					}
					x, plain = take(x, f.batchX, f.lhs), take(plain, f.batchW, f.rhs)
					batch, err := tensor.Broadcast(x.Shape()[:x.NDim()-2], plain.Shape()[:plain.NDim()-2])
					require.NoError(t, err)
					require.Equal(t, fmt.Sprint(append(batch.Clone(), rows, cols)), fmt.Sprint(got.Shape()), "form %d", i)
					if got.Shape().Size() > 0 {
						near(t, got, ops.BroadcastTo(x, tensor.Sizes(append(batch.Clone(), rows, depth)...)), plain)
					}
				}
			}
		}
	}
}

// TestBatchedGlobalScale maps quantize and dequantize over matrices with a global scale each.
func TestBatchedGlobalScale(t *testing.T) {
	optest.Open(t)
	w := optest.Noise(tensor.Float32, 3, 2, 32)
	global := ops.FromSlice([]float32{1, 20, 3}, []int{3})
	trip := func(in []*array) ([]*array, error) {
		q := quant.Quantization{Mode: "nvfp4", GlobalScale: in[1]}
		p := quant.Quantize(in[0], q)
		return []*array{p[0], p[1], quant.Dequantize(p[0], p[1], nil, q, new(tensor.Float32))}, nil
	}
	got, err := grad.VMap(trip, []int{0, 0}, []int{0, 0, 0})([]*array{w, global})
	require.NoError(t, err)
	wide := []tensor.DType{tensor.Uint32, tensor.Uint32, tensor.Float32}
	for i := range 3 {
		part := func(x *array) *array { return ops.Slice(x, []ops.Part{ops.At(i)}) }
		want, err := trip([]*array{part(w), part(global)})
		require.NoError(t, err)
		for k := range want {
			exact := func(x *array) []float64 { return optest.Values32(t, ops.AsType(x, wide[k])) }
			require.Equal(t, exact(want[k]), exact(part(got[k])), "example %d, output %d", i, k)
		}
	}
}

// TestGatherUnpackedApart: of packed matrices so large that one is unpacked at a time, each product takes its own.
func TestGatherUnpackedApart(t *testing.T) {
	brief.OnlyValues(t)
	if !optest.Computes(t, tensor.Float64) {
		t.Skip("it is about products in float64")
	}
	q := quant.Quantization{Bits: 4, GroupSize: 64}
	p := pack(optest.Noise(tensor.Float64, 3, 1100, 1024), q)
	x, rhs := optest.Noise(tensor.Float64, 4, 9, 1024), ops.FromSlice([]int32{2, 0, 1, -1}, []int{4})
	plain := ops.SwapAxes(quant.Dequantize(p[0], p[1], p[2], q, new(tensor.Float64), optest.Wide(t)), -1, -2)
	near(t, quant.GatherQMM(x, p[0], p[1], p[2], quant.GatherQMMCall{RHS: rhs, Quantization: q}), x,
		ops.Take(plain, rhs, new(0), optest.Wide(t)))
}
