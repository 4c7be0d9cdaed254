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

// TestSortManyRows: how rows are cut into chunks depends on how many there are, their order does not.
func TestSortManyRows(t *testing.T) {
	t.Parallel()
	optest.Open(t)
	for _, n := range []int{16, 17, 65, 600, 9000} {
		const rows = 70
		keys := make([]int32, rows*n)
		for i := range keys {
			keys[i] = int32(uint32(i*2654435761) >> 20 % 97)
		}
		all := ops.FromSlice(keys, []int{rows, n})
		last := rows - 1
		one := ops.Slice(all, []ops.Part{ops.At(last)})
		require.Equal(t, optest.Values32(t, ops.Sort(one, new(0))), optest.Values32(t, ops.Sort(all, new(1)))[last*n:])
		require.Equal(t, optest.Values32(t, ops.ArgSort(one, new(0))), optest.Values32(t, ops.ArgSort(all, new(1)))[last*n:])
		got := optest.Values32(t, ops.Sort(one, new(0)))
		require.True(t, slices.IsSorted(got))
	}
}

func TestPartitions(t *testing.T) {
	t.Parallel()
	d := optest.Distinct(0)
	// As far as the result is determined: the element at kth, and what stands before and after it, sorted.
	parts := func(y *array) []*array {
		at := func(p ops.Part) *array { return ops.Slice(y, []ops.Part{ops.Ellipsis(), p}) }
		before, after := at(ops.Span(0, 2, 1)), at(ops.Span(3, ops.None, 1))
		return []*array{at(ops.At(2)), ops.Sort(before, new(-1)), ops.Sort(after, new(-1))}
	}
	optest.Run(t, optest.Subject{
		Name: "partition", Second: true, Cases: inputs(d, "n,5", "7", "0,3"),
		Fn: func(in []*array) []*array { return parts(ops.Partition(in[0], 2, new(-1))) },
		Bad: []optest.Bad{
			bad("[partition] kth is 4, out of range", func() *array { return ops.Partition(optest.Zeros(3, 4), 4, new(-1)) }),
			bad("[partition] kth is -5, out of range", func() *array { return ops.Partition(optest.Zeros(3, 4), -5, new(1)) }),
			bad("[partition] axis 5", func() *array { return ops.Partition(optest.Zeros(3, 4), 0, new(5)) }),
			bad("[partition] kth is 0", func() *array { return ops.Partition(optest.Zeros(3, 0), 0, new(1)) }),
			bad("[topk] k is -1", func() *array { return ops.TopK(optest.Zeros(3, 4), -1, new(1)) }),
			bad("[topk] kth is -5", func() *array { return ops.TopK(optest.Zeros(3, 4), 5, new(1)) }),
			bad("[argpartition] axis -1", func() *array { return ops.ArgPartition(optest.Zeros(), 0, new(-1)) }),
		},
	})
	optest.Run(t, optest.Subject{
		Name: "argpartition", NonDiff: false, Cases: inputs(d, "n,5", "7"),
		Fn: func(in []*array) []*array {
			order := ops.StopGradient(ops.ArgPartition(in[0], 2, new(-1)))
			return parts(ops.TakeAlongAxis(in[0], order, new(-1)))
		},
	})
	topK := func(name string, k int, axis *int, sort *int, dims ...string) {
		optest.Run(t, optest.Subject{
			Name: name, Ops: []string{"topk"}, Second: true, Cases: inputs(d, dims...),
			Fn: optest.One(func(in []*array) *array {
				y := ops.TopK(in[0], k, axis)
				if k > 0 {
					y = ops.Sort(y, sort)
				}
				return y
			}),
		})
	}
	topK("topk", 3, new(-1), new(-1), "n,5", "7")
	topK("topk first", 3, new(0), new(0), "5,n")
	topK("topk flat", 4, nil, new(0), "n,5")
	topK("topk none", 0, new(-1), new(-1), "n,5")
}

func TestSorts(t *testing.T) {
	t.Parallel()
	d := optest.Distinct(0)
	sortOn := func(name string, axis *int, cases []optest.Case) {
		optest.Run(t, optest.Subject{
			Name: "sort" + name, Ops: []string{"sort"}, Cases: cases, Second: true,
			Fn: optest.One(func(in []*array) *array { return ops.Sort(in[0], axis) }),
		})
		if name != " flat" {
			optest.Run(t, optest.Subject{
				Name: "argsort" + name, Ops: []string{"argsort"}, Cases: cases, NonDiff: true,
				Fn: optest.One(func(in []*array) *array { return ops.ArgSort(in[0], axis) }),
			})
		}
	}
	sortOn("", new(-1), inputs(d, "n,m", "k", "0,n"))
	sortOn(" first", new(0), inputs(d, "n,m", "k"))
	sortOn(" flat", nil, inputs(d, "n,m", ""))
	optest.Fails(t, ops.Sort(ops.Number(1, tensor.Float32), new(-1)),
		"[sort] axis -1 is out of range for an array with 0 dimensions")
	optest.Fails(t, ops.ArgSort(ops.Zeros(tensor.Sizes(2), tensor.Float32), new(1)), "[argsort] axis 1 is out of range")
}

// TestSortStable: equal keys keep their order, in rows of lengths around powers of two and past a threadgroup.
func TestSortStable(t *testing.T) {
	t.Parallel()
	optest.Open(t)
	for _, n := range []int{1, 2, 3, 16, 17, 31, 32, 33, 127, 128, 129, 255, 256, 257, 1000, 4097, 16385} {
		keys := make([]uint8, 2*n)
		for i := range keys {
			keys[i] = uint8(uint32(i*2654435761) >> 13 % 5)
		}
		order := optest.Values32(t, ops.ArgSort(ops.FromSlice(keys, []int{2, n}), new(1)))
		for row := range 2 {
			seen := make([]bool, n)
			for i := range n {
				at := int(order[row*n+i])
				require.False(t, seen[at], "n = %d", n)
				seen[at] = true
				if i > 0 {
					before := int(order[row*n+i-1])
					a, b := keys[row*n+before], keys[row*n+at]
					require.True(t, a < b || a == b && before < at, "n = %d: %d before %d", n, before, at)
				}
			}
		}
	}
}

// keyDTypes are all dtypes of keys.
var keyDTypes = []tensor.DType{tensor.Bool, tensor.Uint8, tensor.Uint16, tensor.Uint32, tensor.Uint64, tensor.Int8,
	tensor.Int16, tensor.Int32, tensor.Int64, tensor.Float16, tensor.BFloat16, tensor.Float32, tensor.Float64,
	tensor.Complex64}

// manyKeys are n keys of a dtype, many of them equal: negative ones, NaN of both signs, infinities, and zeros of both
// signs, which are equal; and their stable order, by slices.SortStableFunc.
func manyKeys(t *testing.T, d tensor.DType, n int) (x *array, order []float64) {
	seed := uint32(n)
	number := func() float64 {
		seed = seed*1664525 + 1013904223
		if d.IsInexact() && seed>>28 == 0 {
			return []float64{0, math.Copysign(0, -1), math.NaN(), math.Inf(1), math.Inf(-1),
				math.Copysign(math.NaN(), -1)}[seed>>20%6]
		}
		v := float64(int32(seed)>>16) / 4
		if d.IsUnsigned() {
			v = math.Abs(v)
		}
		return math.Trunc(math.Mod(v, 100)) * math.Ldexp(1, int(seed>>8%uint32(min(d.Size()*4, 24))))
	}
	keys := make([][2]float64, n)
	flat := make([]float64, n)
	imag := make([]float64, n)
	for i := range keys {
		flat[i] = number()
		if d.IsComplex() {
			imag[i] = number()
		}
	}
	x = ops.AsType(ops.FromSlice(flat, []int{n}), d, optest.Wide(t))
	if d.IsComplex() {
		// Not by arithmetic, which would mix the parts.
		v := make([]complex64, n)
		for i := range v {
			v[i] = complex(float32(flat[i]), float32(imag[i]))
		}
		x = ops.FromSlice(v, []int{n})
	} else {
		flat = optest.Values32(t, ops.AsType(x, tensor.Float32)) // as they are in that dtype
	}
	order = make([]float64, n)
	for i := range keys {
		keys[i], order[i] = [2]float64{flat[i], imag[i]}, float64(i)
	}
	nan := func(k [2]float64) bool { return math.IsNaN(k[0]) || math.IsNaN(k[1]) }
	slices.SortStableFunc(order, func(i, j float64) int {
		a, b := keys[int(i)], keys[int(j)]
		switch {
		case nan(a) || nan(b):
			return btoi(nan(a)) - btoi(nan(b))
		case a[0] != b[0]:
			return btoi(a[0] > b[0]) - btoi(a[0] < b[0])
		}
		return btoi(a[1] > b[1]) - btoi(a[1] < b[1])
	})
	return x, order
}

// TestSortKeys sorts keys of every dtype, in rows of one chunk and of several.
func TestSortKeys(t *testing.T) {
	t.Parallel()
	brief.OnlyValues(t)
	optest.Open(t)
	for _, d := range keyDTypes {
		if !optest.Computes(t, d) {
			continue
		}
		for _, n := range []int{100, 1500, 17000} {
			x, want := manyKeys(t, d, n)
			order := ops.ArgSort(x, new(0))
			require.Equal(t, want, optest.Values32(t, order), "%v, %d keys", d, n)
			require.Equal(t, optest.Bytes(t, ops.Take(x, order, nil)), optest.Bytes(t, ops.Sort(x, new(0))), "%v, %d keys", d, n)
		}
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
