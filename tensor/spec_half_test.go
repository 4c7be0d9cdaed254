package tensor

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every half is what IEEE 754 says its bits mean, and comes back from its value; values between two neighbours go
// to the nearer one, halfway to the one with an even last bit.
func TestHalfTypesExhaustively(t *testing.T) {
	for _, h := range []struct {
		name       string
		exp, frac  int
		bits       func(float32) uint16
		value      func(uint16) float32
		overflowAt uint16
	}{
		{"float16", 5, 10, Float16Bits, Float16Value, 0x7c00},
		{"bfloat16", 8, 7, BFloat16Bits, BFloat16Value, 0x7f80},
	} {
		t.Run(h.name, func(t *testing.T) {
			meaning := func(b uint16) float64 {
				bias := 1<<(h.exp-1) - 1
				e, f := int(b&0x7fff)>>h.frac, float64(b&(1<<h.frac-1))
				v := math.Ldexp(1+f/float64(int(1)<<h.frac), e-bias)
				if e == 0 {
					v = math.Ldexp(f/float64(int(1)<<h.frac), 1-bias)
				}
				if b&0x8000 != 0 {
					v = -v
				}
				return v
			}
			for b := range uint16(h.overflowAt) {
				for _, s := range []uint16{0, 0x8000} {
					want := meaning(b | s)
					require.Equal(t, want, float64(h.value(b|s)), "%#x", b|s)
					require.Equal(t, b|s, h.bits(float32(want)), "%#x", b|s)
				}
				lo, hi := meaning(b), meaning(b+1)
				mid := (lo + hi) / 2
				if float64(float32(mid)) == mid {
					even := b + b&1
					require.Equal(t, even, h.bits(float32(mid)), "halfway above %#x", b)
					require.Equal(t, b, h.bits(math.Nextafter32(float32(mid), 0)))
					require.Equal(t, b+1, h.bits(math.Nextafter32(float32(mid), float32(math.Inf(1)))))
				}
			}
			require.Equal(t, h.overflowAt, h.bits(float32(math.Inf(1))))
			require.Equal(t, h.overflowAt|0x8000, h.bits(float32(math.Inf(-1))))
			require.True(t, math.IsInf(float64(h.value(h.overflowAt)), 1))
			nan := h.bits(float32(math.NaN()))
			require.True(t, nan&0x7fff > h.overflowAt && h.value(nan) != h.value(nan))
		})
	}
}
