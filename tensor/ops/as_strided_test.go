package ops_test

import (
	"testing"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/optest"
)

func TestAsStrided(t *testing.T) {
	t.Parallel()
	strided := func(shape tensor.ShapeArg, strides []int, offset int) func() *array {
		return func() *array { return ops.AsStrided(optest.Zeros(2, 3), shape, strides, offset) }
	}
	huge := int(^uint(0) >> 1)
	optest.Run(t, optest.Subject{
		Name: "as_strided", Cases: inputs(uniform, "n,8", "12", "2,n,4"), Second: true,
		Fn: optest.Call("as_strided", "shape", []any{3, 2, 2}, "strides", []any{2, -1, 0}, "offset", 1),
		Bad: []optest.Bad{
			bad("[as_strided] shape (2, 3) by strides (3, 1) from element 1 on leaves the array, which has 6 elements",
				strided(tensor.Sizes(2, 3), nil, 1)),
			bad("[as_strided] shape (2,) by strides (-1,) from element 0 on leaves", strided(tensor.Sizes(2), []int{-1}, 0)),
			bad("from element -1 on leaves", strided(tensor.Sizes(1), []int{1}, -1)),
			bad("leaves the array", strided(tensor.Sizes(), []int{}, 6)),
			bad("leaves the array", strided(tensor.Sizes(2, 2), []int{huge, -huge}, 0)),
			bad("leaves the array", strided(tensor.Sizes(1<<31-1, 1<<31-1), []int{5, 5}, 0)),
			bad("[as_strided] 1 stride for shape (1, 1)", strided(tensor.Sizes(1, 1), []int{1}, 0)),
			bad("[as_strided] negative dimension in shape (-1,)", strided(tensor.Sizes(-1), []int{1}, 0)),
		},
	})
	optest.Run(t, optest.Subject{
		Name: "as_strided whole", Ops: []string{"as_strided"}, Cases: inputs(uniform, "n,m", "", "0,n"), Second: true,
		Fn: optest.Call("as_strided"),
	})
	optest.Run(t, optest.Subject{
		Name: "contiguous", Cases: inputs(uniform, "n,m", "", "0,n"), Second: true, Fn: optest.Call("contiguous"),
	})
	optest.Run(t, optest.Subject{
		Name: "contiguous in columns", Ops: []string{"contiguous"}, Cases: inputs(uniform, "n,m,2"), Second: true,
		Fn: optest.Call("contiguous", "allow_col_major", true),
	})
}
