package ops_test

import (
	"fmt"
	"testing"

	"github.com/mlxlua/mlxlua/internal/brief"
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/optest"
)

// layoutsOfMatrices are a matrix in every way that products tell apart: rows together, columns together, neither.
var layoutsOfMatrices = map[string]func(c *ctx, x *array) *array{
	"rows": func(_ *ctx, x *array) *array { return x },
	"columns": func(c *ctx, x *array) *array {
		return ops.SwapAxes(ops.Contiguous(ops.SwapAxes(x, -1, -2, c), false, c), -1, -2, c)
	},
	"apart": func(c *ctx, x *array) *array {
		x = ops.Stack([]*array{x, x}, -1, c)
		return ops.Slice(x, []ops.Part{ops.Ellipsis(), ops.At(1)}, c)
	},
}

// TestPlainMatmul: the kernels for the host's processors give the plain kernel's bytes, for every class of rows, depth
// and columns, every layout and dtype.
func TestPlainMatmul(t *testing.T) {
	t.Parallel()
	brief.OnlyValues(t)
	sizes := []struct{ batch, a, b []int }{
		{nil, []int{1, 700}, []int{700, 130}}, {nil, []int{5, 40}, []int{40, 3}}, {nil, []int{16, 520}, []int{520, 33}},
		{nil, []int{3, 16}, []int{16, 70}}, {nil, []int{2, 300}, []int{300, 20}}, {nil, []int{1, 1}, []int{1, 40}},
		{nil, []int{17, 37}, []int{37, 66}}, {nil, []int{90, 130}, []int{130, 70}}, {nil, []int{70, 600}, []int{600, 7}},
		{nil, []int{140, 33}, []int{33, 9}}, {nil, []int{66, 260}, []int{260, 300}}, {nil, []int{1, 900}, []int{900, 1}},
		{[]int{3}, []int{20, 70}, []int{70, 40}}, {[]int{2, 3}, []int{4, 600}, []int{600, 40}},
		{[]int{600}, []int{4, 4}, []int{4, 4}}, {[]int{40}, []int{12, 40}, []int{40, 12}},
	}
	dtypes := append([]tensor.DType{tensor.Complex64}, optest.FloatTypes...)
	for i, s := range sizes {
		for k, d := range dtypes {
			if optest.Spared(i + k) {
				continue
			}
			optest.AsPlain(t, func(c *tensor.Ctx) map[string]*tensor.Array {
				of := func(matrix []int) *array { // the imaginary part is the real one of another matrix
					x := optest.Noise(tensor.Float32, append(append([]int(nil), s.batch...), matrix...)...)
					if d.IsComplex() {
						return ops.Add(x, ops.Multiply(ops.Flip(x, nil, c), ops.FromSlice([]complex64{1i}, nil), c), c)
					}
					return ops.AsType(x, d, c)
				}
				a, b := of(s.a), of(s.b)
				all := map[string]*array{}
				for left, la := range layoutsOfMatrices {
					for right, lb := range layoutsOfMatrices {
						all[fmt.Sprint(s, " ", d, ", ", left, " by ", right)] = ops.Matmul(la(c, a), lb(c, b), c)
					}
				}
				if s.batch != nil {
					all[fmt.Sprint(s, " ", d, ", one matrix")] = ops.Matmul(a, of(s.b), c)
				}
				return all
			})
		}
	}
}
