package ops_test

import (
	"testing"

	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/optest"
)

func TestPad(t *testing.T) {
	t.Parallel()
	pad := func(mode string, widths ...[]int) optest.Func {
		return optest.One(func(in []*array) *array {
			value := ops.Number(0, in[0].DType())
			if len(in) > 1 {
				value = in[1]
			}
			return ops.Pad(in[0], widths, mode, value)
		})
	}
	x := optest.Zeros(2, 3)
	none := func() *array { return ops.Pad(x, [][]int{{1, 1}}, "constant", optest.Zeros()) }
	optest.Run(t, optest.Subject{
		Name: "pad", Fn: pad("constant", []int{1, 2}, []int{0, 3}), Second: true,
		Cases: []optest.Case{optest.Of("n,m", ""), optest.Of("0,n", ""), optest.Of("n,m")},
		Bad: []optest.Bad{
			bad("[pad] widths of 1 dimension for an array with 2", none),
			bad("[pad] axis 1 has widths 0 and -1, want 0 or more", func() *array {
				return ops.Pad(x, [][]int{{1, 1}, {0, -1}}, "edge", optest.Zeros())
			}),
			bad("[pad] mode is \"wrap\"", func() *array { return ops.Pad(x, nil, "wrap", optest.Zeros()) }),
			bad("[pad] widths (1,) are no pair", func() *array {
				return ops.Pad(x, [][]int{{1}}, "edge", optest.Zeros())
			}),
			bad("[pad] axis 0 of shape (0, 3) has no elements to pad it with", func() *array {
				return ops.Pad(optest.Zeros(0, 3), [][]int{{1, 0}, {0, 0}}, "reflect", optest.Zeros())
			}),
			bad("[pad] cannot reshape (2,)", func() *array {
				return ops.Pad(x, [][]int{{1, 1}, {0, 0}}, "constant", optest.Zeros(2))
			}),
		},
	})
	for _, mode := range []string{"edge", "reflect", "symmetric"} {
		optest.Run(t, optest.Subject{
			Name: "pad " + mode, Ops: []string{"pad"}, Fn: pad(mode, []int{1, 9}, []int{11, 0}), Second: true,
			Cases: inputs(uniform, "n,m", "1,n"),
		})
	}
}
