package ops_test

import (
	"testing"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/optest"
)

func TestMedian(t *testing.T) {
	t.Parallel()
	d := optest.Distinct(0)
	median := func(name string, axes []int, keepdims bool, cases ...optest.Case) {
		optest.Run(t, optest.Subject{
			Name: "median" + name, Ops: []string{"middle"}, Cases: cases, Second: true,
			Fn: optest.One(func(in []*array) *array { return ops.Median(in[0], axes, keepdims) }),
			Bad: []optest.Bad{
				bad("[median] there are no elements", func() *array { return ops.Median(optest.Zeros(0, 4), []int{0}, false) }),
				bad("[median] axis 2", func() *array { return ops.Median(optest.Zeros(3, 4), []int{2}, false) }),
			},
		})
	}
	median("", []int{-1}, false, inputs(d, "n,m", "3,n", "4,5")...)
	median(" of several", []int{0, 2}, true, inputs(d, "n,2,3")...)
	median(" of all", nil, false, inputs(d, "n,m", "")...)
}

func TestDifferences(t *testing.T) {
	t.Parallel()
	optest.Run(t, optest.Subject{
		Name: "diff", Cases: inputs(uniform, "n,5", "0,4"), Second: true,
		Fn: optest.One(func(in []*array) *array { return ops.Diff(in[0], 2, -1) }),
		Bad: []optest.Bad{
			bad("[diff] n is -1", func() *array { return ops.Diff(optest.Zeros(3), -1, 0) }),
			bad("[diff] axis 1", func() *array { return ops.Diff(optest.Zeros(3), 1, 1) }),
		},
	})
	optest.Run(t, optest.Subject{
		Name: "count_nonzero", Cases: inputs(optest.Ints(-1, 1), "n,m", ""), NonDiff: true,
		Fn: optest.One(func(in []*array) *array { return ops.CountNonzero(in[0], []int{0}[:min(1, in[0].NDim())], false) }),
	})
	optest.Run(t, optest.Subject{
		Name: "minmax", Cases: inputs(optest.Distinct(0), "n,m"), Second: true, DTypes: except(tensor.Complex64),
		Fn: func(in []*array) []*array {
			least, greatest := ops.MinMax(in[0], []int{1}, true)
			return []*array{least, greatest}
		},
	})
}

func TestSearchSorted(t *testing.T) {
	t.Parallel()
	for _, side := range []string{"left", "right"} {
		optest.Run(t, optest.Subject{
			Name: "searchsorted " + side, Ops: []string{"searchsorted"}, NonDiff: true,
			Cases: []optest.Case{{Inputs: []optest.Input{optest.In("n", uniform), optest.In("2,m", uniform)}}},
			Fn: optest.One(func(in []*array) *array {
				return ops.SearchSorted(ops.Sort(in[0], new(0)), in[1], side)
			}),
			Bad: []optest.Bad{
				bad("[searchsorted] the sorted sequence has shape (2, 3)", func() *array {
					return ops.SearchSorted(optest.Zeros(2, 3), optest.Zeros(2), side)
				}),
				bad("[searchsorted] side is \"up\"", func() *array {
					return ops.SearchSorted(optest.Zeros(3), optest.Zeros(2), "up")
				}),
			},
		})
	}
}

func TestUnique(t *testing.T) {
	t.Parallel()
	unique := func(name string, size int, fill *array) {
		optest.Run(t, optest.Subject{
			Name: "unique" + name, Ops: []string{"argsort"}, NonDiff: true,
			Cases: inputs(optest.Ints(-2, 2), "n,m", "5"),
			Fn:    func(in []*array) []*array { return ops.Unique(in[0], size, fill)[1:] },
		})
		optest.Run(t, optest.Subject{
			Name: "unique" + name + " values", Ops: []string{"argsort"}, Cases: inputs(optest.Distinct(0), "n,m"),
			Fn: func(in []*array) []*array { return ops.Unique(in[0], size, fill)[:1] },
		})
	}
	unique("", 4, nil)
	unique(" filled", 30, ops.Number(1, tensor.Float32))
	optest.Fails(t, ops.Unique(optest.Zeros(3), -1, nil)[0], "[unique] size is -1, want 0 or more")
	optest.Fails(t, ops.Unique(optest.Zeros(0, 3), 2, nil)[0],
		"[unique] shape (0, 3) has no elements to fill 2 places with")
}
