package products_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/internal/brief"
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/grad"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/products"
	"github.com/mlxlua/mlxlua/tensor/optest"
)

func TestGatherMM(t *testing.T) {
	of, with, indices := optest.Of, optest.With, optest.Indices
	gather := func(name string, dtypes []tensor.DType, f func(in []*array) *array, cases ...optest.Case) {
		optest.Run(t, optest.Subject{
			Name: "gather_mm" + name, Ops: []string{"gather_mm"}, DTypes: dtypes, Fn: optest.One(f), Cases: cases, Second: true,
			Tol: near,
		})
	}
	gather("", optest.FloatTypes, func(in []*array) *array { return products.GatherMM(in[0], in[1], in[2], in[3]) },
		with(of("2,n,k", "3,k,m"), indices("2,1", 2), indices("4", 3)),
		with(of("n,k", "2,2,k,m"), indices("1", 1), indices("3", 4)))
	gather(" turned", optest.FloatTypes[:2], func(in []*array) *array {
		return products.GatherMM(in[0], ops.SwapAxes(in[1], -1, -2), nil, in[2])
	}, with(of("3,1,k", "2,m,k"), indices("3", 2)))
	gather(" in order", optest.FloatTypes[:1], func(in []*array) *array {
		return products.GatherMM(in[0], in[1], in[2], nil)
	}, with(of("2,2,n,5", "3,5,2"), indices("3", 4)))
	z := optest.Zeros
	index := func(v ...int32) *array { return ops.FromSlice(v, []int{len(v)}) }
	optest.Fails(t, products.GatherMM(z(2, 3, 4), z(2, 5, 6), index(0), nil),
		"[gather_mm] inner dimensions differ: a (2, 3, 4), b (2, 5, 6)")
	optest.Fails(t, products.GatherMM(z(2, 3, 4), z(2, 4, 6), index(0, 1), index(0, 1, 1)),
		"[gather_mm] lhs_indices and rhs")
	optest.Fails(t, products.GatherMM(z(2, 3, 4), z(2, 4, 6), z(1), nil), "[gather_mm] indices have dtype float32")
	optest.Fails(t, products.GatherMM(z(2, 3, 4), z(2, 4, 6), index(1, 2), index(0, 0)),
		"[gather_mm] index 2 of lhs_indices is out of range for 2 matrices")
	optest.Fails(t, products.GatherMM(z(2, 3, 4), z(2, 4, 6), nil, index(0, -3)),
		"[gather_mm] index -3 of rhs_indices is out of range for 2 matrices")
	optest.Fails(t, products.GatherMM(z(2, 20, 4), z(2, 4, 20), nil, index(2, -1)),
		"[gather_mm] index 2 of rhs_indices is out of range for 2 matrices")
}

// One pick of several matrices is that matrix, in panels too.
func TestGatherMMPicksOne(t *testing.T) {
	optest.Open(t)
	index := func(v int32) *array { return ops.FromSlice([]int32{v}, []int{1}) }
	for _, d := range []tensor.DType{tensor.Float32, tensor.BFloat16} {
		a, b := optest.Noise(d, 3, 20, 150), optest.Noise(d, 4, 150, 70)
		want := ops.Matmul(ops.Take(a, index(2), new(0)), ops.Take(b, index(1), new(0)))
		require.Equal(t, optest.Bytes(t, want), optest.Bytes(t, products.GatherMM(a, b, index(2), index(1))), d)
	}
}

// Products of segments and of picked matrices are not differentiated by integers that pick.
func TestPickersHaveNoDerivative(t *testing.T) {
	a, index := optest.Zeros(2, 2, 2), ops.FromSlice([]int32{1, 0}, []int{1, 2})
	for op, f := range map[string]func(i *array) *array{
		"gather_mm":    func(i *array) *array { return products.GatherMM(a, a, nil, ops.Flatten(i, 0, -1)) },
		"segmented_mm": func(i *array) *array { return products.SegmentedMM(ops.Flatten(a, 0, 1), ops.Flatten(a, 1, 2), i) },
	} {
		_, _, err := grad.VJP(func(in []*array) ([]*array, error) {
			return []*array{ops.Sum(f(in[0]), nil, false)}, nil
		}, []*array{index}, []*array{ops.Number(1, tensor.Float32)})
		require.ErrorContains(t, err, "[vjp] "+op+" has no derivative by its indices", op)
	}
}

// TestGatherMMShapes: products of every number of rows and layout of b are those of the picked matrices.
func TestGatherMMShapes(t *testing.T) {
	brief.OnlyValues(t)
	optest.Open(t)
	lhs, rhs := ops.FromSlice([]int32{1, 0, 1}, []int{3}), ops.FromSlice([]int32{3, 3, 0}, []int{3})
	pick := func(x, i *array) *array { return ops.Take(x, i, new(0)) }
	for _, rows := range []int{1, 2, 3, 8, 9, 20} {
		for _, cols := range []int{1, 5, 64, 130, 300} {
			for _, turned := range []bool{false, true} {
				a, b := optest.Noise(tensor.Float32, 2, rows, 45), optest.Noise(tensor.Float32, 4, 45, cols)
				if turned {
					a = ops.SwapAxes(optest.Noise(tensor.Float32, 2, 45, rows), 1, 2)
					b = ops.SwapAxes(optest.Noise(tensor.Float32, 4, cols, 45), 1, 2)
				}
				want := optest.Values32(t, ops.Matmul(pick(a, lhs), pick(b, rhs)))
				require.InDeltaSlice(t, want, optest.Values32(t, products.GatherMM(a, b, lhs, rhs)), 1e-3)
			}
		}
	}
}

func TestBlockMaskedMM(t *testing.T) {
	run(t, "block_masked_mm", optest.FloatTypes, func(in []*array) *array {
		return products.BlockMaskedMM(in[0], in[1], 32, in[2], in[3], in[4])
	}, optest.Of("2,33", "33,3", "1,1", "1,2", "2,1"))
	run(t, "block_masked_mm one", optest.FloatTypes[:1], func(in []*array) *array {
		return products.BlockMaskedMM(in[0], in[1], 64, nil, ops.Greater(in[2], ops.Number(0, tensor.Float32)), nil)
	}, optest.With(optest.Of("n,k", "2,k,m"), optest.In("1,1", optest.Uniform(-2, 2)).Const()))
	z := optest.Zeros
	optest.Fails(t, products.BlockMaskedMM(z(40, 3), z(3, 5), 16, z(2, 1), nil, nil), "[block_masked_mm] block_size is 16")
	optest.Fails(t, products.BlockMaskedMM(z(40, 3), z(3, 5), 32, z(3, 1), nil, nil),
		"[block_masked_mm] mask_out is for blocks of 32 rows and columns of (40, 5): shape (3, 1) does not")
	optest.Fails(t, products.BlockMaskedMM(z(40, 3), z(4, 5), 32, z(2, 1), nil, nil), "[block_masked_mm] inner dimensions")
}

func TestSegmentedMM(t *testing.T) {
	segments := func(v ...int32) *array { return ops.FromSlice(v, []int{len(v) / 2, 2}) }
	of, with := optest.Of, optest.With
	segmented := func(name string, dtypes []tensor.DType, f func(in []*array) *array, cases ...optest.Case) {
		optest.Run(t, optest.Subject{
			Name: "segmented_mm" + name, Ops: []string{"segmented_mm"}, DTypes: dtypes, Fn: optest.One(f), Cases: cases,
			Second: true, Tol: near,
		})
	}
	segmented("", optest.FloatTypes, func(in []*array) *array {
		return products.SegmentedMM(in[0], in[1], segments(0, 2, 1, 5, 3, 3, 4, 1))
	}, of("n,5", "5,m"))
	segmented(" given", optest.FloatTypes[:1], func(in []*array) *array {
		return products.SegmentedMM(in[0], ops.SwapAxes(in[1], 0, 1), ops.Abs(in[2]))
	}, with(of("n,40", "m,40"), optest.Indices("2,3,2", 40)), with(of("2,3", "33,3"), optest.Indices("2", 3)))
	z := optest.Zeros
	optest.Fails(t, products.SegmentedMM(z(2, 3, 3), z(2, 3, 3), segments(0, 1)),
		"[segmented_mm] a and b need two dimensions: a (2, 3, 3), b (2, 3, 3)")
	optest.Fails(t, products.SegmentedMM(z(2, 3), z(4, 3), segments(0, 1)),
		"[segmented_mm] inner dimensions differ: a (2, 3), b (4, 3)")
	optest.Fails(t, products.SegmentedMM(z(2, 3), z(3, 3), ops.FromSlice([]int32{0, 1, 2}, []int{1, 3})),
		"[segmented_mm] segments need a start and an end each in their last dimension: shape (1, 3)")
	optest.Fails(t, products.SegmentedMM(z(2, 3), z(3, 3), ops.FromSlice([]int32{2}, nil)),
		"[segmented_mm] segments need a start and an end each in their last dimension: shape ()")
	optest.Fails(t, products.SegmentedMM(z(2, 3), z(3, 3), z(2)), "[segmented_mm] indices have dtype float32")
	optest.Fails(t, products.SegmentedMM(z(2, 3), z(3, 3), segments(0, 4)),
		"[segmented_mm] the end 4 of a segment is out of range for 3 columns of a")
	optest.Fails(t, products.SegmentedMM(z(2, 3), z(3, 3), segments(0, 1, -1, 2)),
		"[segmented_mm] the start -1 of a segment is out of range for 3 columns of a")
}
