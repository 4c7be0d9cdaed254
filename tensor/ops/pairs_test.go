package ops_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal/soft"
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
)

// pairKinds draw bfloat16 bits of an element at a place along depth, of the left or the right matrix.
var pairKinds = map[string]func(r *rand.Rand, place int, right bool) uint16{
	"ordinary": func(r *rand.Rand, _ int, _ bool) uint16 { return uint16(r.Uint32())&0x807f | uint16(117+r.IntN(12))<<7 },
	"zeros":    func(r *rand.Rand, _ int, _ bool) uint16 { return uint16(r.Uint32()) & 0x8000 },
	"any":      func(r *rand.Rand, _ int, _ bool) uint16 { return uint16(r.Uint32()) },
	"denormal": func(r *rand.Rand, _ int, _ bool) uint16 { return uint16(r.Uint32()) & 0x807f },
	// One element of a late span is tiny, the rest is not: from there on products are no longer exact.
	"late": func(r *rand.Rand, place int, _ bool) uint16 {
		if place == 200 {
			return uint16(r.Uint32()) & 0x83ff
		}
		return uint16(r.Uint32())&0x807f | uint16(100+r.IntN(40))<<7
	},
	// Products about as large as the least normal number, and sums of them.
	"tiny": func(r *rand.Rand, place int, _ bool) uint16 {
		return uint16(r.Uint32())&0x807f | uint16(62+r.IntN(4))<<7
	},
	// The largest numbers of which sums of products can be denormal: of two places 2^-127 is left.
	"border": func(_ *rand.Rand, place int, right bool) uint16 {
		even := place&1 == 0
		switch {
		case even && right:
			return 71<<7 | 1
		case right:
			return 71<<7 | 2
		case even:
			return 70<<7 | 1
		}
		return 0x8000 | 70<<7
	},
	// Places take each other back, so that sums become zero, or what rounding left of them.
	"cancelling": func(r *rand.Rand, place int, _ bool) uint16 {
		return uint16(place&1)<<15 | uint16(place/2%64) | uint16(80+place/2%7)<<7
	},
	"infinite": func(r *rand.Rand, place int, _ bool) uint16 {
		return uint16(r.Uint32())&0x8000 | []uint16{0x7f80, 0, 0x0001, 0x3f80, 0x3f80, 0x3f80}[r.IntN(6)]
	},
}

// TestPairsAreExact: products of bfloat16 matrices have the same bytes whether the processor multiplies pairs or not,
// and on the interpreter; and these are right.
func TestPairsAreExact(t *testing.T) {
	const rows, depth, cols = 21, 301, 70
	type matrix struct {
		bits []uint16 // by rows of a, by columns of b
		size int
	}
	operands := map[string][2]matrix{}
	for name, kind := range pairKinds {
		r := rand.New(rand.NewPCG(uint64(len(name)), uint64(name[0])))
		draw := func(size int, right bool) matrix {
			m := matrix{make([]uint16, size*depth), size}
			for i := range m.bits {
				m.bits[i] = kind(r, i%depth, right)
			}
			return m
		}
		operands[name] = [2]matrix{draw(rows, false), draw(cols, true)}
	}
	// How matrices may lie: their places along depth side by side, one apart from an odd start on, or far apart.
	laid := func(m matrix, layout string) *tensor.Array {
		bf := func(bits []uint16, shape ...int) *tensor.Array {
			return ops.View(ops.FromSlice(bits, shape), tensor.BFloat16)
		}
		switch layout {
		case "odd":
			from := make([]uint16, m.size*(depth+2))
			for i, v := range m.bits {
				from[i/depth*(depth+2)+1+i%depth] = v
			}
			return ops.Slice(bf(from, m.size, depth+2), []ops.Part{ops.Whole(), ops.Span(1, depth+1, 1)})
		case "apart":
			from := make([]uint16, len(m.bits))
			for i, v := range m.bits {
				from[i%depth*m.size+i/depth] = v
			}
			return ops.Transpose(bf(from, depth, m.size), nil)
		}
		return bf(m.bits, m.size, depth)
	}
	results := func(executor, name string) map[string][]byte {
		all := map[string][]byte{}
		onDevice(t, soft.Options{Executor: executor}, func(device string) {
			if !strings.Contains(device, name) {
				return // the interpreter would stand in
			}
			for kind, m := range operands {
				for layout, of := range map[string][2]string{"": {"", ""}, " turned": {"apart", "odd"}, " odd": {"odd", "apart"}} {
					if executor == "interp" && layout != "" {
						continue // the order of additions depends on no layout
					}
					y := ops.Matmul(laid(m[0], of[0]), ops.Transpose(laid(m[1], of[1]), nil))
					b, err := y.Bytes(context.Background())
					require.NoError(t, err)
					all[kind+layout] = sameNaNs(tensor.BFloat16, b)
				}
			}
		})
		return all
	}
	want := results("interp", "interpreter")
	require.Len(t, want, len(pairKinds))
	for executor, name := range map[string]string{"avx2": "AVX2 ", "avx512": "AVX-512 m", "avx512bf16": "AVX-512 BF16"} {
		for kind, got := range results(executor, name) {
			plain, _, _ := strings.Cut(kind, " ")
			for i := range min(len(got), len(want[plain])) / 2 {
				require.Equal(t, want[plain][2*i:2*i+2], got[2*i:2*i+2], "%s on %s, element %d", kind, executor, i)
			}
			require.Len(t, got, 2*rows*cols)
		}
	}
	value := func(bits uint16) float64 { return float64(math.Float32frombits(uint32(bits) << 16)) }
	for kind, m := range operands {
		for i := range rows * cols {
			var sum, size float64
			for k := range depth {
				p := value(m[0].bits[i/cols*depth+k]) * value(m[1].bits[i%cols*depth+k])
				sum, size = sum+p, size+math.Abs(p)
			}
			got := value(uint16(want[kind][2*i]) | uint16(want[kind][2*i+1])<<8)
			if sum != sum || size > math.MaxFloat32 {
				continue // infinities that meet, or a sum that may overflow on the way
			}
			bound := math.Abs(sum)*0x1p-8 + size*depth*0x1p-24 + 0x1p-133
			require.LessOrEqual(t, math.Abs(got-sum), bound, fmt.Sprint(kind, " element ", i))
		}
	}
}
