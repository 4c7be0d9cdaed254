package drivertest_test

import (
	"encoding/binary"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/drivertest"
)

// TestProductsRoundOnce: a product of one place along depth, added to another one, is the exact number rounded to
// float32, also where the exact one lies next to the middle of two.
func TestProductsRoundOnce(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	float := func() float32 {
		sign, exponent, few := uint32(r.IntN(2)), uint32(100+r.IntN(56)), uint32(r.IntN(1<<23))
		return math.Float32frombits(sign<<31 | exponent<<23 | uint32(r.IntN(1<<23))&^few)
	}
	m := metal.MatMul{M: 1, N: 1, K: 2, Batch: 1, A: metal.Matrix{Lead: 2}, B: metal.Matrix{Lead: 1}}
	require.True(t, drivertest.Products{}.Offers(m))
	bytes := func(v ...float32) (b []byte) {
		for _, x := range v {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
		}
		return b
	}
	exact := func(x float32) *big.Float { return new(big.Float).SetPrec(2000).SetFloat64(float64(x)) }
	for range 200_000 {
		c, a, b := float(), float(), float()
		out := make([]byte, 4)
		require.NoError(t, drivertest.Products{}.Call(m, [][]byte{bytes(c, a), bytes(1, b)}, [][]byte{out}))
		sum := new(big.Float).SetPrec(2000).Mul(exact(a), exact(b))
		want, _ := sum.Add(sum, exact(c)).Float32()
		got := math.Float32frombits(binary.LittleEndian.Uint32(out))
		if want != got {
			require.Equal(t, want, got, "%v*%v + %v", a, b, c)
		}
	}
}

// TestProductsOfHalves: every float16 times one is itself, and a number between two goes to the nearer one, or the even
// one.
func TestProductsOfHalves(t *testing.T) {
	product := func(e metal.Element, a, b uint16) uint16 {
		word := func(v uint16) []byte { return binary.LittleEndian.AppendUint16(nil, v) }
		m := metal.MatMul{Element: e, M: 1, N: 1, K: 1, Batch: 1, A: metal.Matrix{Lead: 1}, B: metal.Matrix{Lead: 1}}
		out := word(0)
		require.NoError(t, drivertest.Products{}.Call(m, [][]byte{word(a), word(b)}, [][]byte{out}))
		return binary.LittleEndian.Uint16(out)
	}
	for i := range 1 << 16 {
		v := uint16(i)
		if v&0x7C00 != 0x7C00 || v&0x3FF == 0 { // no NaN
			if got := product(metal.Float16, v, 0x3C00); got != v && v != 0x8000 { // 0 + -0 is 0
				require.Equal(t, v, got, "float16")
			}
		}
		if v&0x7F80 != 0x7F80 || v&0x7F == 0 {
			if got := product(metal.BFloat16, v, 0x3F80); got != v && v != 0x8000 {
				require.Equal(t, v, got, "bfloat16")
			}
		}
	}
	require.Equal(t, uint16(0x0001), product(metal.Float16, 0x0001, 0x3A00), "0.75 of the least")
	require.Equal(t, uint16(0x0000), product(metal.Float16, 0x0001, 0x3800), "half of it: to the even one")
	require.Equal(t, uint16(0x0002), product(metal.Float16, 0x0003, 0x3800), "1.5 of it")
	require.Equal(t, uint16(0x0400), product(metal.Float16, 0x07FF, 0x3800), "it carries over")
	require.Equal(t, uint16(0x7C00), product(metal.Float16, 0x7BFF, 0x4000), "too large")
	require.Equal(t, uint16(0x3F82), product(metal.BFloat16, 0x3F81, 0x3F81), "1.0157 squared")
}
