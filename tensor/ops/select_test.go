package ops_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/internal/brief"
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/optest"
)

// TestSelectKeys selects among keys of every dtype, in rows that are sorted, of one chunk and of several: the elements
// on both sides of a place, and the largest with their order, are those of the stable order.
func TestSelectKeys(t *testing.T) {
	t.Parallel()
	brief.OnlyValues(t)
	optest.Open(t)
	for _, d := range keyDTypes {
		if !optest.Computes(t, d) {
			continue
		}
		for _, n := range []int{100, 129, 1500, 17003} {
			x, order := manyKeys(t, d, n)
			for _, kth := range []int{0, 1, n / 3, n / 2, n - 2, n - 1} {
				got := optest.Values32(t, ops.ArgPartition(x, kth, new(0)))
				require.Equal(t, order[kth], got[kth], "%v, place %d of %d", d, kth, n)
				before, after := slices.Sorted(slices.Values(order[:kth])), slices.Sorted(slices.Values(order[kth:]))
				require.Equal(t, before, slices.Sorted(slices.Values(got[:kth])), "%v, place %d of %d", d, kth, n)
				require.Equal(t, after, slices.Sorted(slices.Values(got[kth:])), "%v, place %d of %d", d, kth, n)
				taken := ops.Take(x, ops.FromSlice(asIndices(got), []int{n}), nil)
				require.Equal(t, optest.Bytes(t, taken), optest.Bytes(t, ops.Partition(x, kth, new(0))),
					"%v, place %d of %d", d, kth, n)
			}
			for _, k := range []int{1, 7, n / 2, n - 1, n} {
				largest := ops.Take(x, ops.FromSlice(asIndices(order[n-k:]), []int{k}), nil)
				require.Equal(t, optest.Bytes(t, largest), optest.Bytes(t, ops.TopK(x, k, new(0))), "%v, %d of %d", d, k, n)
			}
		}
	}
}

func asIndices(v []float64) []int32 {
	out := make([]int32, len(v))
	for i := range v {
		out[i] = int32(v[i])
	}
	return out
}

// TestSelectRows: rows without differences, sorted ones and those whose keys differ in their lowest bits only, many
// and few of them, with others' elements between theirs.
func TestSelectRows(t *testing.T) {
	t.Parallel()
	brief.OnlyValues(t)
	optest.Open(t)
	kinds := map[string]func(i int) uint32{
		"equal":   func(int) uint32 { return 7 },
		"rising":  func(i int) uint32 { return uint32(i) },
		"falling": func(i int) uint32 { return ^uint32(i) },
		"near":    func(i int) uint32 { return 0xABCDEF00 | uint32(i*7919)&255 },
	}
	for name, key := range kinds {
		for _, rows := range []int{3, 70} {
			const n, k = 9001, 130
			keys := make([]uint32, rows*n)
			for i := range keys {
				keys[i] = key(i)
			}
			columns := ops.Transpose(ops.FromSlice(keys, []int{rows, n}), nil)
			sorted := ops.Sort(columns, new(0))
			end := []ops.Part{ops.Span(-k, ops.None, 1)}
			require.Equal(t, optest.Bytes(t, ops.Contiguous(ops.Slice(sorted, end), false)),
				optest.Bytes(t, ops.Contiguous(ops.TopK(columns, k, new(0)), false)), "%s, %d rows", name, rows)
			at := []ops.Part{ops.At(n / 4)}
			require.Equal(t, optest.Bytes(t, ops.Slice(sorted, at)),
				optest.Bytes(t, ops.Slice(ops.Partition(columns, n/4, new(0)), at)), "%s, %d rows", name, rows)
		}
	}
}

// TestSelectGradients: the largest elements' and the median's cotangents go to where they come from.
func TestSelectGradients(t *testing.T) {
	t.Parallel()
	d := optest.Distinct(0)
	optest.Run(t, optest.Subject{
		Name: "topk of long rows", Ops: []string{"topk", "argtopk"}, Cases: inputs(d, "n,150"),
		Fn: optest.One(func(in []*array) *array { return ops.TopK(in[0], 3, new(-1)) }),
	})
	optest.Run(t, optest.Subject{
		Name: "median of long rows", Ops: []string{"middle", "argmiddle"}, Cases: inputs(d, "n,150", "n,133"),
		Fn: optest.One(func(in []*array) *array { return ops.Median(in[0], []int{-1}, false) }),
	})
}

// TestMedianOfLongRows: of odd and even numbers, beside the middle of what slices.Sort gives; NaN anywhere gives NaN.
func TestMedianOfLongRows(t *testing.T) {
	t.Parallel()
	brief.OnlyValues(t)
	optest.Open(t)
	for _, n := range []int{128, 129, 130, 4001, 8192, 20001, 20002} {
		x := optest.Noise(tensor.Float32, n)
		v := optest.Values32(t, x)
		slices.Sort(v)
		want := float64((float32(v[(n-1)/2]) + float32(v[n/2])) * 0.5)
		require.Equal(t, []float64{want}, optest.Values32(t, ops.Median(x, nil, false)), "n = %d", n)
		nan := ops.Concatenate([]*array{x, ops.FromSlice([]float32{float32(math.NaN())}, []int{1})}, new(0))
		require.True(t, math.IsNaN(optest.Values32(t, ops.Median(nan, nil, false))[0]), "n = %d", n)
	}
}
