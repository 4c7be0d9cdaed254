package ops_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/optest"
)

func TestDynamicSlices(t *testing.T) {
	t.Parallel()
	starts := optest.In("2", optest.Ints(0, 1)).As(ints32)
	one := optest.In("", optest.Ints(-2, -1)).As(ints32)
	of := func(dims string, more ...optest.Input) optest.Case {
		return optest.Case{Inputs: append([]optest.Input{optest.In(dims, uniform)}, more...)}
	}
	whole := starts.Whole()
	optest.Run(t, optest.Subject{
		Name: "dynamic_slice", Second: true,
		Cases: []optest.Case{of("3,n,5", starts), of("3,n,5", whole)},
		Fn: optest.One(func(in []*array) *array {
			size := tensor.Concat(tensor.Sizes(2), tensor.DimOf(in[0], 1), tensor.Sizes(4))
			return ops.DynamicSlice(in[0], in[1], []int{-1, 0}, size)
		}),
	})
	optest.Run(t, optest.Subject{
		Name: "dynamic_slice of one axis", Ops: []string{"dynamic_slice"}, Second: true,
		Cases: []optest.Case{of("4,n", one)},
		Fn: optest.One(func(in []*array) *array {
			return ops.DynamicSlice(in[0], in[1], []int{0}, tensor.Concat(tensor.Sizes(1), tensor.DimOf(in[0], 1)))
		}),
	})
	update := func(u string, start optest.Input) optest.Case { return of("3,n,5", optest.In(u, uniform), start) }
	optest.Run(t, optest.Subject{
		Name: "dynamic_slice_update", Second: true,
		Cases: []optest.Case{update("2,1,4", starts), update("1,3", whole), update("", starts)},
		Fn: optest.One(func(in []*array) *array {
			return ops.DynamicSliceUpdate(in[0], in[1], in[2], []int{0, 2})
		}),
	})
}

// TestDynamicSlicesBeyond: MLX reads and writes beyond the array.
func TestDynamicSlicesBeyond(t *testing.T) {
	t.Parallel()
	optest.Open(t)
	x := optest.Zeros(3, 4)
	start := func(v ...int32) *array { return ops.FromSlice(v, []int{len(v)}) }
	for want, y := range map[string]*array{
		"[slice] a slice of size (1, 3) from 2 on along axis 1 leaves the array, of shape (3, 4)": ops.DynamicSlice(x,
			start(2), []int{1}, tensor.Sizes(1, 3)),
		"[slice] a slice of size (2, 4) from -1 on along axis 0": ops.DynamicSlice(x, start(-1), []int{0},
			tensor.Sizes(2, 4)),
		"[slice_update] a slice of size (1, 2) from 7 on along axis 0": ops.DynamicSliceUpdate(x, optest.Zeros(1, 2),
			start(0, 7), []int{1, 0}),
		"[slice] a slice of size (4, 4) is larger than the array": ops.DynamicSlice(x, start(0), []int{0},
			tensor.Sizes(4, 4)),
		"[slice] a slice of size (2,) for an array of shape (3, 4)": ops.DynamicSlice(x, start(0), []int{0},
			tensor.Sizes(2)),
		"[slice] 2 starts for 1 axis": ops.DynamicSlice(x, start(0, 0), []int{0}, tensor.Sizes(1, 1)),
		"[slice] axes (0, -2) name one axis twice": ops.DynamicSlice(x, start(0, 0), []int{0, -2},
			tensor.Sizes(1, 1)),
		"[slice_update] a slice of size (4, 1) is larger than the array": ops.DynamicSliceUpdate(x, optest.Zeros(4, 1),
			start(0), []int{0}),
		"[slice_update] axis 3 is out of range": ops.DynamicSliceUpdate(x, optest.Zeros(1), start(0), []int{3}),
		"[slice_update] an update of shape (1, 1, 1) for an array of shape (3, 4)": ops.DynamicSliceUpdate(x,
			optest.Zeros(1, 1, 1), start(0), []int{0}),
		"[slice] indices have dtype float32": ops.DynamicSlice(x, optest.Zeros(1), []int{0}, tensor.Sizes(1, 1)),
	} {
		_, err := y.Bytes(context.Background())
		require.ErrorContains(t, err, want)
	}
}
