package tensor_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/tensor"
)

// at is the element of row-major elements at an index.
func at(shape tensor.Shape, v []float32, index []int) float32 {
	k := 0
	for d, n := range shape {
		k = k*n + index[d]
	}
	return v[k]
}

// indices calls f for every index of a shape in row-major order.
func indices(shape tensor.Shape, f func(index []int)) {
	index := make([]int, len(shape))
	for range shape.Size() {
		f(index)
		for d := len(shape) - 1; d >= 0; d-- {
			if index[d]++; index[d] < shape[d] {
				break
			}
			index[d] = 0
		}
	}
}

func TestLayouts(t *testing.T) {
	for _, shape := range [][]int{{}, {1}, {5}, {40}, {3, 4}, {33, 7}, {2, 3, 4}, {70, 3}, {2, 3, 4, 5}, {1500, 3},
		{2, 3000}, {7, 30, 40}, {900, 5, 2}, {300,
			2, 2}, {2, 1, 600}} {
		t.Run(fmt.Sprint(shape), func(t *testing.T) {
			x := iota(shape...)
			y := trans(iota(reversed(shape)...))
			got := floats(t, add(x, y))
			xs, ys := floats(t, x), floats(t, iota(reversed(shape)...))
			k := 0
			indices(shape, func(index []int) {
				want := xs[k] + at(reversed(shape), ys, reversed(index))
				require.Equal(t, want, got[k], "%v", index)
				k++
			})
			require.Equal(t, floats(t, y), floats(t, neg(neg(y))))
		})
	}
}

func TestSlicesAndNegativeStrides(t *testing.T) {
	x := iota(3, 10)
	require.Equal(t, []float32{1, 3, 5, 11, 13, 15, 21, 23, 25}, floats(t, slice(x, 1, 7, 2)))
	back := slice(x, 9, -1, -1)
	require.Equal(t, []float32{9, 8, 7, 6, 5, 4, 3, 2, 1, 0}, floats(t, back)[:10])
	require.Equal(t, []float32{18, 16, 14}, floats(t, add(back, back))[:3])
	twice := slice(back, 0, 10, 3)
	require.Equal(t, []float32{9, 6, 3, 0, 19, 16, 13, 10, 29, 26, 23, 20}, floats(t, twice))
	require.Equal(t, []float32{18, 58, 98}, floats(t, sum(twice, 1)))
	require.Equal(t, []float32{57, 48, 39, 30}, floats(t, sum(twice, 0)))
	require.Equal(t, floats(t, twice), floats(t, reshape(twice, 12)), "a reshape of strided elements copies")
}

func TestCollapsedRanks(t *testing.T) {
	shape := []int{2, 3, 2, 3, 2, 3}
	x := trans(iota(reversed(shape)...))
	y := expand(iota(3, 1, 3), shape...)
	got := floats(t, add(x, y))
	xs, ys := floats(t, x), floats(t, y)
	for i := range got {
		require.Equal(t, xs[i]+ys[i], got[i])
	}
}

// exact sums with a compensated float64 sum; bound is the design's: 2 ceil(log2 n) eps sum|x|.
func exact(v []float32) (sum, bound float64) {
	var abs, c float64
	for _, x := range v {
		y := float64(x) - c
		s := sum + y
		c = (s - sum) - y
		sum = s
		abs += math.Abs(float64(x))
	}
	return sum, 2 * math.Ceil(math.Log2(float64(max(len(v), 2)))) * 0x1p-24 * abs
}

func TestSums(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		shape []int
		axes  []int
	}{
		{[]int{1}, []int{0}}, {[]int{5}, []int{0}}, {[]int{17}, []int{0}}, {[]int{1000},
			[]int{0}}, {[]int{5000}, []int{0}},
		{[]int{70000}, []int{0}}, {[]int{200, 3}, []int{1}}, {[]int{200, 40}, []int{1}}, {[]int{3, 9000}, []int{1}},
		{[]int{9000, 3}, []int{0}}, {[]int{9, 33}, []int{0}}, {[]int{40, 7, 33}, []int{0, 2}}, {[]int{4, 50, 3},
			[]int{1}},
		{[]int{4, 50, 3}, []int{}}, {[]int{2, 3, 4, 5}, []int{1, 3}}, {[]int{2, 30, 4, 50}, []int{0, 1, 2, 3}},
		{[]int{0, 3}, []int{0}}, {[]int{3, 0}, []int{0}}, {[]int{3, 1, 20}, []int{2}}, {[]int{20, 1}, []int{0}},
	} {
		t.Run(fmt.Sprint(c.shape, c.axes), func(t *testing.T) {
			v := make([]float32, tensor.Shape(c.shape).Size())
			for i := range v {
				v[i] = r.Float32()*2 - 0.5
			}
			x := array(v, c.shape...)
			s := sum(x, c.axes...)
			got := floats(t, s)
			groups := make([][]float32, len(got))
			k := 0
			indices(c.shape, func(index []int) {
				groups[flat(c.shape, index, c.axes)] = append(groups[flat(c.shape, index, c.axes)], v[k])
				k++
			})
			for i, g := range groups {
				want, bound := exact(g)
				require.InDelta(t, want, float64(got[i]), bound+1e-30, "output %d", i)
			}
			// The same bytes in another layout, and with a fused prologue.
			other := trans(reshape(neg(neg(trans(x))), reversed(c.shape)...))
			require.Equal(t, got, floats(t, sum(other, c.axes...)))
			require.Equal(t, got, floats(t, sum(neg(neg(x)), c.axes...)))
		})
	}
}

// flat is the number of the output that an element is reduced to.
func flat(shape tensor.Shape, index, axes []int) int {
	k := 0
	for d, n := range shape {
		if !contains(axes, d) {
			k = k*n + index[d]
		}
	}
	return k
}

func contains(s []int, x int) bool {
	for _, v := range s {
		if v == x {
			return true
		}
	}
	return false
}

// Adding many equal numbers rounds the same way again and again: a plain loop is far off the bound.
func TestSumOfEqualNumbersStaysInBounds(t *testing.T) {
	for _, n := range []int{100, 4096, 70000} {
		v := make([]float32, n)
		for i := range v {
			v[i] = 0.1
		}
		want, bound := exact(v)
		require.InDelta(t, want, float64(floats(t, sum(array(v)))[0]), bound)
		require.InDelta(t, want, float64(floats(t, sum(reshape(array(v), n, 1), 0))[0]), bound)
	}
}

func TestStructAccumulators(t *testing.T) {
	for _, shape := range [][]int{{3}, {20}, {500}, {6000}, {3, 5000}, {80, 3}, {700, 2}} {
		t.Run(fmt.Sprint(shape), func(t *testing.T) {
			r := rand.New(rand.NewPCG(3, 4))
			v := make([]float32, tensor.Shape(shape).Size())
			for i := range v {
				v[i] = float32(r.IntN(50))
			}
			x := array(v, shape...)
			axis := len(shape) - 1
			check := func(got []uint32, axis int) {
				best := make([]uint32, len(got))
				top := make([]float32, len(got))
				seen := make([]bool, len(got))
				k := 0
				indices(shape, func(index []int) {
					o := flat(shape, index, []int{axis})
					if !seen[o] || v[k] > top[o] {
						seen[o], top[o], best[o] = true, v[k], uint32(index[axis])
					}
					k++
				})
				require.Equal(t, best, got)
			}
			check(uints(t, argmax(x, axis)), axis)
			check(uints(t, argmax(x, 0)), 0)
		})
	}
}

func TestDTypes(t *testing.T) {
	x := array([]float32{0, 1, 2, 3.5, -1, 100})
	for _, d := range tensor.DTypes() {
		t.Run(d.String(), func(t *testing.T) {
			y := cast(x, d)
			back := floats(t, cast(add(y, y), tensor.Float32))
			switch {
			case d == tensor.Bool:
				require.Equal(t, []float32{0, 1, 1, 1, 1, 1}, back)
			case d.IsUnsigned():
				require.Equal(t, []float32{0, 2, 4, 6}, back[:4])
				require.Equal(t, float32(200), back[5])
			case d.IsSigned():
				require.Equal(t, []float32{0, 2, 4, 6, -2}, back[:5])
			case d == tensor.Complex64:
				b, err := y.Bytes(background)
				require.NoError(t, err)
				require.Len(t, b, 48)
			default:
				require.Equal(t, []float32{0, 2, 4, 7, -2, 200}, back)
			}
			if d != tensor.Bool {
				require.NoError(t, tensor.Eval(background, sum(y), sum(reshape(y, 2, 3), 0),
					add(trans(reshape(y, 2, 3)),
						reshape(y, 3, 2))))
			}
		})
	}
}
