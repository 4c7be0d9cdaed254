package products_test

import (
	"fmt"
	"testing"

	"github.com/mlxlua/mlxlua/internal/brief"
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/products"
	"github.com/mlxlua/mlxlua/tensor/optest"
)

// TestPlainGathers: the kernels for the host's processors give the plain kernels' bytes, for every class of rows, every
// layout and dtype.
func TestPlainGathers(t *testing.T) {
	brief.OnlyValues(t)
	for i, d := range optest.FloatTypes {
		for k, rows := range []int{1, 5, 16, 17, 70} {
			if optest.Spared(i + k) {
				continue
			}
			optest.AsPlain(t, func(c *tensor.Ctx) map[string]*tensor.Array {
				all := map[string]*tensor.Array{}
				turned := func(x *tensor.Array) *tensor.Array { return ops.SwapAxes(x, -1, -2, c) }
				a, lhs := optest.Noise(d, 3, rows, 75), ops.FromSlice([]int32{2, 0, 1}, []int{3})
				rhs := ops.FromSlice([]uint8{1, 0, 3, 1}, []int{4, 1})
				segments := ops.FromSlice([]int64{0, 75, 3, 40, 40, 41, 9, 9, 30, 7}, []int{5, 2})
				for name, b := range map[string]*tensor.Array{
					"rows": optest.Noise(d, 4, 75, 67), "columns": turned(optest.Noise(d, 4, 67, 75)),
				} {
					what := fmt.Sprint(" of ", rows, " rows, ", d, ", by ", name)
					all["gather_mm"+what] = products.GatherMM(a, b, lhs, rhs, c)
					all["gather_mm of views"+what] = products.GatherMM(turned(turned(a)), b, nil, rhs, c)
					one := ops.Slice(b, []ops.Part{ops.At(1)}, c)
					all["segmented_mm"+what] = products.SegmentedMM(optest.Noise(d, rows, 75), one, segments, c)
				}
				return all
			})
		}
	}
}
