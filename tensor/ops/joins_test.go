package ops_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/optest"
)

func zeros(n ...int) *array { return ops.Zeros(tensor.Sizes(n...), tensor.Float32) }

// bad is a call that must fail with a text.
func bad(text string, f func() *array) optest.Bad { return optest.Bad{Name: text, Make: f, Text: text} }

func TestJoins(t *testing.T) {
	join := func(axis *int) outs {
		return one(func(in []*array) *array { return ops.Concatenate(in, axis) })
	}
	optest.Run(t, optest.Subject{
		Name: "concatenate", Ops: []string{"concatenate", "split_like"}, Golden: "joins.json", Second: true,
		Fn:    join(axis(1)),
		Cases: []optest.Case{of("n,m", "n,2", "n,m"), of("n,m", "n,0"), of("n,3,m", "n,k,m"), of("n,m")},
		Bad: []optest.Bad{
			bad("[concatenate] no arrays are given", func() *array { return ops.Concatenate(nil, axis(0)) }),
			bad("[concatenate] axis 0 is out of range for an array with 0 dimensions",
				func() *array { return ops.Concatenate([]*array{zeros(), zeros()}, axis(0)) }),
			bad("[concatenate] axis 2 is out of range",
				func() *array { return ops.Concatenate([]*array{zeros(2, 3)}, axis(2)) }),
			bad("[concatenate] array 1 has shape (4, 4), which differs from (2, 3) in more than axis 0",
				func() *array { return ops.Concatenate([]*array{zeros(2, 3), zeros(4, 4)}, axis(0)) }),
			bad("[concatenate] array 1 has shape (3,)",
				func() *array { return ops.Concatenate([]*array{zeros(2, 3), zeros(3)}, axis(0)) }),
			bad("[concatenate] an input is nil", func() *array { return ops.Concatenate([]*array{nil}, axis(0)) }),
		},
	})
	optest.Run(t, optest.Subject{
		Name: "concatenate first", Ops: []string{"concatenate"}, Golden: "joins.json", Second: true, Fn: join(axis(0)),
		Cases: []optest.Case{of("n,m", "k,m"), of("n", "m")},
	})
	optest.Run(t, optest.Subject{
		Name: "concatenate flat", Ops: []string{"concatenate"}, Golden: "joins.json", Second: true, Fn: join(nil),
		Cases: []optest.Case{of("n,m", "", "0,k", "k")},
	})
	stack := func(axis int) outs { return one(func(in []*array) *array { return ops.Stack(in, axis) }) }
	optest.Run(t, optest.Subject{
		Name: "stack", Ops: []string{"concatenate"}, Golden: "joins.json", Second: true, Fn: stack(-1),
		Cases: []optest.Case{of("n,m", "n,m"), of("", ""), of("n,m")},
		Bad: []optest.Bad{
			bad("[stack] no arrays are given", func() *array { return ops.Stack(nil, 0) }),
			bad("[stack] axis 2 is out of range for an array with 2 dimensions",
				func() *array { return ops.Stack([]*array{zeros(2), zeros(2)}, 2) }),
			bad("[stack] array 1 has shape (1,), array 0 has (2,)",
				func() *array { return ops.Stack([]*array{zeros(2), zeros(1)}, 0) }),
		},
	})
	optest.Run(t, optest.Subject{
		Name: "stack first", Ops: []string{"concatenate"}, Golden: "joins.json", Second: true, Fn: stack(0),
		Cases: []optest.Case{of("n,m", "n,m", "n,m")},
	})
}

func TestSplits(t *testing.T) {
	optest.Run(t, optest.Subject{
		Name: "split", Golden: "joins.json", Second: true,
		Fn:    func(in []*array) []*array { return ops.Split(in[0], 2, 1) },
		Cases: inputs(uniform, "n,4", "n,2,m", "n,0"),
		Bad: []optest.Bad{
			bad("[split] axis 0 of shape (3, 4) cannot be split into 2 equal sections",
				func() *array { return ops.Split(zeros(3, 4), 2, 0)[0] }),
			bad("[split] 0 sections", func() *array { return ops.Split(zeros(3, 4), 0, 0)[0] }),
			bad("[split] -1 sections", func() *array { return ops.Split(zeros(3, 4), -1, 0)[0] }),
			bad("[split] axis 0 is out of range", func() *array { return ops.Split(zeros(), 1, 0)[0] }),
			bad("[split] axis -3 is out of range", func() *array { return ops.SplitAt(zeros(3, 4), []int{1}, -3)[0] }),
			bad("[split] an input is nil", func() *array { return ops.SplitAt(nil, []int{1}, 0)[0] }),
		},
	})
	optest.Run(t, optest.Subject{
		Name: "split at", Ops: []string{"slice"}, Golden: "joins.json", Second: true,
		Fn:    func(in []*array) []*array { return ops.SplitAt(in[0], []int{2, 1, -1, 9}, -1) },
		Cases: inputs(uniform, "n,m", "5"),
	})
	optest.Open(t)
	whole := ops.SplitAt(zeros(3, 4), nil, 0)
	require.Len(t, whole, 1)
	require.Equal(t, tensor.Shape{3, 4}, whole[0].Spec().Shape)
	// The gradient of some pieces only.
	optest.Run(t, optest.Subject{
		Name: "a piece of a split", Ops: []string{"split"}, Second: true, Cases: inputs(uniform, "n,4"),
		Fn: one(func(in []*array) *array { return ops.Square(ops.Split(in[0], 2, 1)[1]) }),
	})
}

func TestScans(t *testing.T) {
	table := map[string]func(a *array, axis *int, reverse, inclusive bool, c ...*ctx) *array{
		"cumsum": ops.CumSum, "cumprod": ops.CumProd, "cummax": ops.CumMax, "cummin": ops.CumMin,
		"logcumsumexp": ops.LogCumSumExp,
	}
	forms := []struct {
		name               string
		reverse, inclusive bool
	}{{"", false, true}, {" reverse", true, true}, {" exclusive", false, false}, {" reverse exclusive", true, false}}
	for name, f := range table {
		gen := uniform
		tol := optest.Tol{}
		switch name {
		case "cumprod":
			gen = optest.Uniform(0.5, 2)
		case "cummax", "cummin":
			gen = optest.Distinct(0.5)
		case "logcumsumexp":
			tol = optest.Tol{Rel: 1e-5}
		}
		prims := []string{name}
		if name == "logcumsumexp" {
			prims = append(prims, "linear_scan")
		}
		for _, form := range forms {
			for _, along := range []struct {
				name string
				axis int
			}{{"", -1}, {" first", 0}} {
				op := optest.Subject{
					Name: name + along.name + form.name, Ops: prims, Golden: "scans.json", Tol: tol,
					Fn: one(func(in []*array) *array { return f(in[0], axis(along.axis), form.reverse, form.inclusive) }),
					// All that differs between forms is seen on one case each.
					Cases: inputs(gen, "n,m"), Second: form.name == "",
				}
				if form.name == "" {
					op.Cases = inputs(gen, "n,m", "2,40", "k")
				}
				optest.Run(t, op)
			}
		}
		optest.Run(t, optest.Subject{
			Name: name + " flat", Ops: prims, Golden: "scans.json", Tol: tol, Cases: inputs(gen, "n,m", ""),
			Fn: one(func(in []*array) *array { return f(in[0], nil, false, true) }),
			Bad: []optest.Bad{
				bad("["+name+"] axis 2 is out of range", func() *array { return f(zeros(2, 3), axis(2), false, true) }),
				bad("["+name+"] an input is nil", func() *array { return f(nil, axis(2), false, true) }),
			},
		})
	}
}

// TestCumProdZeros: the gradient beside zeros, by the products without the element.
func TestCumProdZeros(t *testing.T) {
	gen := optest.Ints(0, 2)
	for _, reverse := range []bool{false, true} {
		for _, inclusive := range []bool{false, true} {
			optest.Run(t, optest.Subject{
				Name: "cumprod with zeros", Ops: []string{"cumprod"}, Cases: inputs(gen, "3,8", "4,4,2"),
				NoReplay: "see cumprod", NoVMap: "see cumprod",
				Fn: one(func(in []*array) *array { return ops.CumProd(in[0], axis(1), reverse, inclusive) }),
			})
		}
	}
}

// TestSortManyRows: whether rows are sorted by counting or by merging depends on how many there are, their order does
// not.
func TestSortManyRows(t *testing.T) {
	optest.Open(t)
	for _, n := range []int{64, 65, 300} {
		const rows = 512
		keys := make([]int32, rows*n)
		for i := range keys {
			keys[i] = int32(uint32(i*2654435761) >> 20 % 97)
		}
		all := ops.FromSlice(keys, []int{rows, n})
		last := rows - 1
		one := ops.Slice(all, []ops.Part{ops.At(last)})
		require.Equal(t, values32(t, ops.Sort(one, axis(0))), values32(t, ops.Sort(all, axis(1)))[last*n:])
		require.Equal(t, values32(t, ops.ArgSort(one, axis(0))), values32(t, ops.ArgSort(all, axis(1)))[last*n:])
		got := values32(t, ops.Sort(one, axis(0)))
		require.True(t, slices.IsSorted(got))
	}
}

func TestPartitions(t *testing.T) {
	d := optest.Distinct(0)
	// As far as the result is determined: the element at kth, and what stands before and after it, sorted.
	parts := func(y *array) []*array {
		at := func(p ops.Part) *array { return ops.Slice(y, []ops.Part{ops.Ellipsis(), p}) }
		before, after := at(ops.Span(0, 2, 1)), at(ops.Span(3, ops.None, 1))
		return []*array{at(ops.At(2)), ops.Sort(before, axis(-1)), ops.Sort(after, axis(-1))}
	}
	optest.Run(t, optest.Subject{
		Name: "partition", Golden: "partitions.json", Second: true, Cases: inputs(d, "n,5", "7", "0,3"),
		Fn: func(in []*array) []*array { return parts(ops.Partition(in[0], 2, axis(-1))) },
		Bad: []optest.Bad{
			bad("[partition] kth is 4, out of range", func() *array { return ops.Partition(zeros(3, 4), 4, axis(-1)) }),
			bad("[partition] kth is -5, out of range", func() *array { return ops.Partition(zeros(3, 4), -5, axis(1)) }),
			bad("[partition] axis 5", func() *array { return ops.Partition(zeros(3, 4), 0, axis(5)) }),
			bad("[partition] kth is 0", func() *array { return ops.Partition(zeros(3, 0), 0, axis(1)) }),
			bad("[topk] k is -1", func() *array { return ops.TopK(zeros(3, 4), -1, axis(1)) }),
			bad("[topk] kth is -5", func() *array { return ops.TopK(zeros(3, 4), 5, axis(1)) }),
			bad("[argpartition] axis -1", func() *array { return ops.ArgPartition(zeros(), 0, axis(-1)) }),
		},
	})
	optest.Run(t, optest.Subject{
		Name: "argpartition", Golden: "partitions.json", NonDiff: false, Cases: inputs(d, "n,5", "7"),
		Fn: func(in []*array) []*array {
			return parts(ops.TakeAlongAxis(in[0], ops.ArgPartition(in[0], 2, axis(-1)), axis(-1)))
		},
	})
	topK := func(name string, k int, axis *int, sort *int, dims ...string) {
		optest.Run(t, optest.Subject{
			Name: name, Ops: []string{"partition"}, Golden: "partitions.json", Second: true, Cases: inputs(d, dims...),
			Fn: one(func(in []*array) *array {
				y := ops.TopK(in[0], k, axis)
				if k > 0 {
					y = ops.Sort(y, sort)
				}
				return y
			}),
		})
	}
	topK("topk", 3, axis(-1), axis(-1), "n,5", "7")
	topK("topk first", 3, axis(0), axis(0), "5,n")
	topK("topk flat", 4, nil, axis(0), "n,5")
	topK("topk none", 0, axis(-1), axis(-1), "n,5")
}
