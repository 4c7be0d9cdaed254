package ops_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/optest"
)

// bad is a call that must fail with a text.
func bad(text string, f func() *array) optest.Bad { return optest.Bad{Name: text, Make: f, Text: text} }

func TestJoins(t *testing.T) {
	t.Parallel()
	join := func(axis *int) optest.Func {
		return optest.One(func(in []*array) *array { return ops.Concatenate(in, axis) })
	}
	optest.Run(t, optest.Subject{
		Name: "concatenate", Ops: []string{"concatenate", "split_like"}, Second: true,
		Fn: join(new(1)),
		Cases: []optest.Case{optest.Of("n,m", "n,2", "n,m"), optest.Of("n,m", "n,0"), optest.Of("n,3,m", "n,k,m"),
			optest.Of("n,m")},
		Bad: []optest.Bad{
			bad("[concatenate] no arrays are given", func() *array { return ops.Concatenate(nil, new(0)) }),
			bad("[concatenate] axis 0 is out of range for an array with 0 dimensions",
				func() *array { return ops.Concatenate([]*array{optest.Zeros(), optest.Zeros()}, new(0)) }),
			bad("[concatenate] axis 2 is out of range",
				func() *array { return ops.Concatenate([]*array{optest.Zeros(2, 3)}, new(2)) }),
			bad("[concatenate] array 1 has shape (4, 4), which differs from (2, 3) in more than axis 0",
				func() *array { return ops.Concatenate([]*array{optest.Zeros(2, 3), optest.Zeros(4, 4)}, new(0)) }),
			bad("[concatenate] array 1 has shape (3,)",
				func() *array { return ops.Concatenate([]*array{optest.Zeros(2, 3), optest.Zeros(3)}, new(0)) }),
			bad("[concatenate] an input is nil", func() *array { return ops.Concatenate([]*array{nil}, new(0)) }),
		},
	})
	optest.Run(t, optest.Subject{
		Name: "concatenate first", Ops: []string{"concatenate"}, Second: true, Fn: join(new(0)),
		Cases: []optest.Case{optest.Of("n,m", "k,m"), optest.Of("n", "m")},
	})
	optest.Run(t, optest.Subject{
		Name: "concatenate flat", Ops: []string{"concatenate"}, Second: true, Fn: join(nil),
		Cases: []optest.Case{optest.Of("n,m", "", "0,k", "k")},
	})
	stack := func(axis int) optest.Func { return optest.One(func(in []*array) *array { return ops.Stack(in, axis) }) }
	optest.Run(t, optest.Subject{
		Name: "stack", Ops: []string{"concatenate"}, Second: true, Fn: stack(-1),
		Cases: []optest.Case{optest.Of("n,m", "n,m"), optest.Of("", ""), optest.Of("n,m")},
		Bad: []optest.Bad{
			bad("[stack] no arrays are given", func() *array { return ops.Stack(nil, 0) }),
			bad("[stack] axis 2 is out of range for an array with 2 dimensions",
				func() *array { return ops.Stack([]*array{optest.Zeros(2), optest.Zeros(2)}, 2) }),
			bad("[stack] array 1 has shape (1,), array 0 has (2,)",
				func() *array { return ops.Stack([]*array{optest.Zeros(2), optest.Zeros(1)}, 0) }),
		},
	})
	optest.Run(t, optest.Subject{
		Name: "stack first", Ops: []string{"concatenate"}, Second: true, Fn: stack(0),
		Cases: []optest.Case{optest.Of("n,m", "n,m", "n,m")},
	})
}

func TestSplits(t *testing.T) {
	t.Parallel()
	optest.Run(t, optest.Subject{
		Name: "split", Second: true,
		Fn:    func(in []*array) []*array { return ops.Split(in[0], 2, 1) },
		Cases: inputs(uniform, "n,4", "n,2,m", "n,0"),
		Bad: []optest.Bad{
			bad("[split] axis 0 of shape (3, 4) cannot be split into 2 equal sections",
				func() *array { return ops.Split(optest.Zeros(3, 4), 2, 0)[0] }),
			bad("[split] 0 sections", func() *array { return ops.Split(optest.Zeros(3, 4), 0, 0)[0] }),
			bad("[split] -1 sections", func() *array { return ops.Split(optest.Zeros(3, 4), -1, 0)[0] }),
			bad("[split] axis 0 is out of range", func() *array { return ops.Split(optest.Zeros(), 1, 0)[0] }),
			bad("[split] axis -3 is out of range", func() *array { return ops.SplitAt(optest.Zeros(3, 4), []int{1}, -3)[0] }),
			bad("[split] an input is nil", func() *array { return ops.SplitAt(nil, []int{1}, 0)[0] }),
		},
	})
	optest.Run(t, optest.Subject{
		Name: "split at", Ops: []string{"slice"}, Second: true,
		Fn:    func(in []*array) []*array { return ops.SplitAt(in[0], []int{2, 1, -1, 9}, -1) },
		Cases: inputs(uniform, "n,m", "5"),
	})
	optest.Open(t)
	whole := ops.SplitAt(optest.Zeros(3, 4), nil, 0)
	require.Len(t, whole, 1)
	require.Equal(t, tensor.Shape{3, 4}, whole[0].Spec().Shape)
	// The gradient of some pieces only.
	optest.Run(t, optest.Subject{
		Name: "a piece of a split", Ops: []string{"split"}, Second: true, Cases: inputs(uniform, "n,4"),
		Fn: optest.One(func(in []*array) *array { return ops.Square(ops.Split(in[0], 2, 1)[1]) }),
	})
}
