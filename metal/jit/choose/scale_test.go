//go:build (amd64 && (linux || darwin || windows)) || (arm64 && (linux || darwin))

package choose

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal/kerneltest"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// TestSpans: bounds of floats hold what is computed from anything, and are those that the constants say.
func TestSpans(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	numbers := edges(kir.F32)
	bounded := 0
	for range 3000 {
		b := kerneltest.NewBuilder("k")
		constant := func() *kir.Instr {
			return b.Float(float32(r.IntN(9)-4) * math.Float32frombits(uint32(r.IntN(40)+108)<<23))
		}
		x := b.Get(b.Var("x", kir.F32)) // anything
		chain := []*kir.Instr{x}
		for range 1 + r.IntN(6) {
			c, last := constant(), chain[len(chain)-1]
			var i *kir.Instr
			switch r.IntN(7) {
			case 0:
				i = b.Op([]kir.Op{kir.Add, kir.Sub}[r.IntN(2)], kir.F32, last, c)
			case 1:
				i = b.Op(kir.Fma, kir.F32, last, c, constant())
			case 2:
				i = b.Op([]kir.Op{kir.Rint, kir.Floor, kir.Trunc}[r.IntN(3)], kir.F32, last)
			case 3, 4:
				i = b.Op([]kir.Op{kir.Min, kir.Max}[r.IntN(2)], kir.F32, last, c)
			default:
				less := b.Op([]kir.Op{kir.Lt, kir.Gt}[r.IntN(2)], kir.Bool, last, c)
				chain = append(chain, less)
				if i = b.Op(kir.Select, kir.F32, less, c, last); r.IntN(2) == 0 {
					i = b.Op(kir.Select, kir.F32, less, last, c)
				}
			}
			chain = append(chain, i)
		}
		last := chain[len(chain)-1]
		s := spanOf(last, maxSpanDepth)
		if !math.IsInf(s.lo, 0) && !math.IsInf(s.hi, 0) {
			bounded++
		}
		for _, bits := range append(numbers, uint64(r.Uint32()), uint64(r.Uint32())) {
			values := map[*kir.Instr]uint64{x: bits}
			for _, i := range chain[1:] {
				var args []uint64
				for _, a := range i.Args {
					v, ok := values[a]
					if !ok {
						v = a.Imm
					}
					args = append(args, v)
				}
				values[i], _ = kir.Eval(i.Op, i.Type, kir.F32, args...)
			}
			v := kir.ToFloat64(kir.F32, values[last])
			require.True(t, v != v && s.nan || v >= s.lo && v <= s.hi, "%v of %#x is not in %v", v, bits, s)
			require.True(t, !whole(last) || v == math.Trunc(v) || v != v, "%v", v)
		}
	}
	require.Greater(t, bounded, 300)
	b := kerneltest.NewBuilder("k")
	x := b.Op(kir.Max, kir.F32, b.Get(b.Var("x", kir.F32)), b.Float(-150))
	y := b.Op(kir.Min, kir.F32, b.Op(kir.Fma, kir.F32, x, b.Float(2), b.Float(12582912)), b.Float(12583041))
	n := b.Op(kir.Sub, kir.F32, y, b.Float(12582912))
	require.Equal(t, span{-300, 129, false}, spanOf(n, maxSpanDepth))
	require.True(t, whole(n))
	require.False(t, whole(b.Op(kir.Sub, kir.F32, y, b.Float(0.5))))
}
