package ops_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/optest"
)

func numbers32(n int) []int32 {
	v := make([]int32, n)
	for i := range v {
		v[i] = int32(i*7919%20011 - 10000)
	}
	return v
}

// TestTransposedCopies: a copy between layouts that run along different dimensions moves every element, in whole tiles
// and in the rest, for elements of each size.
func TestTransposedCopies(t *testing.T) {
	t.Parallel()
	optest.Open(t)
	for _, shape := range [][]int{{64, 64}, {128, 192}, {70, 65}, {16, 300}, {3, 100, 130}, {2, 64, 3, 64}, {4, 5000}} {
		n := 1
		for _, s := range shape {
			n *= s
		}
		v := numbers32(n)
		x := ops.FromSlice(v, shape)
		axes := make([]int, len(shape)) // the first dimension last, the others in their order
		for i := range axes {
			axes[i] = (i + 1) % len(axes)
		}
		inner := n / shape[0]
		for _, d := range []tensor.DType{tensor.Uint8, tensor.BFloat16, tensor.Int32, tensor.Complex64} {
			typed := ops.AsType(x, d)
			from := optest.Bytes(t, typed)
			got := optest.Bytes(t, ops.Flatten(ops.Transpose(typed, axes), 0, -1))
			size := d.Size()
			for i := range n {
				at := (i%shape[0]*inner + i/shape[0]) * size
				if string(got[i*size:(i+1)*size]) != string(from[at:at+size]) {
					t.Fatalf("%v of %v: element %d", d, shape, i)
				}
			}
		}
	}
}

// TestReductionsAlongKept: sums and positions over an outer axis, whose SIMD-groups run along the inner one, in whole
// strips and not.
func TestReductionsAlongKept(t *testing.T) {
	t.Parallel()
	optest.Open(t)
	for _, s := range [][3]int{{1, 50, 512}, {1, 17, 640}, {3, 40, 512}, {1, 1300, 512}, {2, 1100, 33}, {1, 20, 7},
		{1, 3, 4096}, {5, 16, 384}} {
		v := numbers32(s[0] * s[1] * s[2])
		x := ops.FromSlice(v, s[:])
		for name, in := range map[string]*array{"contiguous": x,
			"turned": ops.Transpose(ops.Reshape(ops.Transpose(x, nil), tensor.Sizes(s[2], s[1], s[0])), nil)} {
			got, first := optest.Bytes(t, ops.Sum(in, []int{1}, false)), optest.Bytes(t, ops.ArgMax(in, []int{1}, false))
			for i := range s[0] {
				for k := range s[2] {
					want, top := int32(0), 0
					for j := range s[1] {
						here := v[(i*s[1]+j)*s[2]+k]
						want += here
						if here > v[(i*s[1]+top)*s[2]+k] {
							top = j
						}
					}
					at := 4 * (i*s[2] + k)
					require.Equal(t, want, int32(binary.LittleEndian.Uint32(got[at:])), "%s %v: %d %d", name, s, i, k)
					require.Equal(t, top, int(binary.LittleEndian.Uint32(first[at:])), "%s %v: %d %d", name, s, i, k)
				}
			}
		}
	}
}

// TestSoftmaxRows: rows of every length class against float64, within 8 ULP of float32 each and what rounding the
// distance to the maximum makes of the exponential, and the half types rounded once from that; a row whose maximum is
// infinite is NaN, the others are not touched by it.
func TestSoftmaxRows(t *testing.T) {
	t.Parallel()
	optest.Open(t)
	for _, n := range []int{1, 31, 32, 33, 127, 128, 160, 1024, 4099, 40000} {
		v := make([]float32, 3*n)
		for i := range v {
			v[i] = 20 * float32(math.Sin(float64(i)*0.37))
		}
		v[n] = float32(math.Inf(1)) // row 1
		x := ops.FromSlice(v, []int{3, n})
		for d, eps := range map[tensor.DType]float64{tensor.Float32: 8 * 0x1p-24, tensor.Float16: 0x1.01p-11,
			tensor.BFloat16: 0x1.01p-8} {
			typed := ops.AsType(x, d)
			wide := optest.Bytes(t, ops.AsType(typed, tensor.Float32)) // what the row really is
			got := optest.Bytes(t, ops.AsType(ops.Softmax(typed, []int{1}), tensor.Float32))
			at := func(b []byte, i int) float64 {
				return float64(math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:])))
			}
			for _, row := range []int{0, 2} {
				top, sum := math.Inf(-1), 0.0
				for i := range n {
					top = max(top, at(wide, row*n+i))
				}
				for i := range n {
					sum += math.Exp(at(wide, row*n+i) - top)
				}
				for i := range n {
					want := math.Exp(at(wide, row*n+i)-top) / sum
					tiny := 0x1p-24 // the smallest float16
					if d != tensor.Float16 {
						tiny = 0
					}
					far := (top - at(wide, row*n+i)) * 0x1p-24
					require.InDelta(t, want, at(got, row*n+i), want*(eps+far)+tiny/2, fmt.Sprint(d, n, row, i))
				}
			}
			for i := range n {
				require.True(t, math.IsNaN(at(got, n+i)), "%v %d %d", d, n, i)
			}
		}
	}
}
