//go:build (amd64 && (linux || darwin || windows)) || (arm64 && (linux || darwin))

package choose

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal/kir"
)

// TestPairDot: the processor's instruction, its substitute by fma and MXCSR, and kir agree on any pairs, above all
// where denormals come in, halves cancel or are no numbers; and MXCSR is what it was.
func TestPairDot(t *testing.T) {
	for _, target := range targets(t) {
		t.Run(target.Name, func(t *testing.T) {
			b := newBench(t, target, 0, func(b *bench) {
				args := []unit{b.arg(kir.F32, 0, 0), b.arg(kir.F32, 1, 0), b.arg(kir.F32, 2, 0)}
				b.result(kir.F32, 0, b.v.lanewise().pure(kir.PairDot, kir.F32, kir.F32, args, nil))
			})
			r := rand.New(rand.NewPCG(11, 12))
			var seen pairsSeen
			for range 200_000 / b.s.e.per {
				in := make([][]uint64, b.s.e.per)
				for l := range in {
					in[l] = seen.draw(r)
					for n, bits := range in[l] {
						b.set(kir.F32, n, l, bits)
					}
				}
				b.run()
				for l, a := range in {
					want, ok := kir.Eval(kir.PairDot, kir.F32, kir.F32, a...)
					require.True(t, ok)
					require.True(t, sameLane(kir.F32, b.get(kir.F32, l), want), "%#x: %#x, want %#x", a, b.get(kir.F32, l), want)
				}
			}
			require.Greater(t, min(seen.flushed, seen.kept, seen.border), 1000, "%+v", seen)
			one := math.Float32frombits(1) // denormal: a product of it shows what MXCSR says
			require.Equal(t, uint32(3), math.Float32bits(one*3))
		})
	}
}

// pairsSeen counts what draw has drawn: sums that are flushed, those that are not, and those next to the border.
type pairsSeen struct{ flushed, kept, border int }

// draw makes operands of one of several kinds.
func (s *pairsSeen) draw(r *rand.Rand) []uint64 {
	half := func(lo, span int) uint64 { return r.Uint64()&0x807f | uint64(lo+r.IntN(span))<<7 }
	a, b, c := r.Uint64()&math.MaxUint32, r.Uint64()&math.MaxUint32, r.Uint64()&math.MaxUint32
	switch r.IntN(5) {
	case 0: // products next to the least normal number, and sums with it
		a, b = half(60, 4)<<16|half(60, 4), half(60, 4)<<16|half(60, 4)
		c = c&0x80ffffff | uint64(r.IntN(2))<<23
	case 1: // c is the negated product of the upper halves, or nearly
		a, b = half(50, 150)<<16|half(30, 60), half(50, 30)<<16|half(30, 60)
		x, y := math.Float32frombits(uint32(a&^0xffff)), math.Float32frombits(uint32(b&^0xffff))
		c = uint64(math.Float32bits(-x*y)) ^ r.Uint64()&1
	case 2: // edges
		e := edges(kir.BF16)
		edge := func() uint64 { return e[r.IntN(len(e))] }
		a, b = edge()<<16|edge(), edge()<<16|edge()
	case 3: // the border: 2^-126 less a few of its smallest parts, where rounding decides whether it is flushed
		a, b = (uint64(127-75+r.IntN(3))<<7|0x8000|r.Uint64()&3)<<16, (uint64(127-76)<<7|r.Uint64()&3)<<16
		c = 0x00800000
	}
	x, y := math.Float32frombits(uint32(a&^0xffff)), math.Float32frombits(uint32(b&^0xffff))
	sum := float64(x)*float64(y) + float64(math.Float32frombits(uint32(c)))
	switch m := math.Abs(sum); {
	case m != 0 && m < 0x1p-126-0x1p-150:
		s.flushed++
	case m >= 0x1p-126-0x1p-150 && m <= 0x1p-126:
		s.border++
	case m > 0x1p-126:
		s.kept++
	}
	return []uint64{a, b, c}
}
