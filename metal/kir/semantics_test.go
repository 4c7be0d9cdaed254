package kir

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// halfValue is the definition of a small float format: sign, exp bits with the usual bias, man bits.
func halfValue(h uint16, exp, man int) float64 {
	sign := 1.0
	if h>>15 != 0 {
		sign = -1
	}
	e := int(h>>man) & (1<<exp - 1)
	m := float64(int(h) & (1<<man - 1))
	bias := 1<<(exp-1) - 1
	switch {
	case e == 1<<exp-1 && m != 0:
		return math.NaN()
	case e == 1<<exp-1:
		return sign * math.Inf(1)
	case e == 0:
		return sign * math.Ldexp(m, 1-bias-man)
	}
	return sign * math.Ldexp(m+math.Ldexp(1, man), e-bias-man)
}

func TestHalfFormatsExhaustively(t *testing.T) {
	for _, f := range []struct {
		name     string
		t        Type
		exp, man int
		widen    func(uint16) float32
		narrow   func(float32) uint16
	}{{"f16", F16, 5, 10, F16ToF32, F32ToF16}, {"bf16", BF16, 8, 7, BF16ToF32, F32ToBF16}} {
		t.Run(f.name, func(t *testing.T) {
			fail := func(h uint32, what string) { t.Fatalf("%#04x: %s", h, what) }
			inf := uint32(1<<f.exp-1) << f.man
			for h := uint32(0); h < 1<<16; h++ {
				want := halfValue(uint16(h), f.exp, f.man)
				got := f.widen(uint16(h))
				if math.IsNaN(want) {
					back := f.narrow(got)
					if got == got || !math.IsNaN(halfValue(back, f.exp, f.man)) {
						fail(h, "NaN is lost")
					}
					continue
				}
				if float64(got) != want || math.Signbit(want) != math.Signbit(float64(got)) {
					fail(h, "widens wrongly")
				}
				if uint32(f.narrow(got)) != h {
					fail(h, "does not come back")
				}
				if h&0x7fff >= inf {
					continue
				}
				// The tie with the next number away from zero goes to the even one of both, its neighbours to the
				// nearer one.
				ulp := math.Ldexp(1, max(int(h>>f.man)&(1<<f.exp-1), 1)-(1<<(f.exp-1)-1)-f.man)
				tie := float32(want + math.Copysign(ulp/2, want))
				away := math.Copysign(math.Inf(1), want)
				even := h + h&1
				if uint32(f.narrow(tie)) != even {
					fail(h, "tie goes the wrong way")
				}
				if uint32(f.narrow(math.Nextafter32(tie, 0))) != h {
					fail(h, "below the tie")
				}
				if uint32(f.narrow(math.Nextafter32(tie, float32(away)))) != h+1 {
					fail(h, "above the tie")
				}
			}
		})
	}
}

// bigF returns x exactly.
func bigF(x float32) *big.Float { return new(big.Float).SetPrec(1000).SetFloat64(float64(x)) }

// randF32 draws bits such that exponents are often close to each other or denormal.
func randF32(r *rand.Rand) float32 {
	b := r.Uint32()
	switch r.IntN(4) {
	case 0:
		b = b&0x807fffff | uint32(110+r.IntN(30))<<23
	case 1:
		b = b & 0x80ffffff
	case 2:
		b &= 0xfff00003 // few bits: exact ties
	}
	f := math.Float32frombits(b)
	if f != f || math.IsInf(float64(f), 0) {
		return 1
	}
	return f
}

func TestFMA32IsCorrectlyRounded(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	check := func(a, b, c float32) {
		sum := new(big.Float).SetPrec(1000).Mul(bigF(a), bigF(b))
		sum.Add(sum, bigF(c))
		want, _ := sum.Float32()
		got := FMA32(a, b, c)
		if got != want {
			t.Fatalf("fma(%x, %x, %x) = %x, want %x", a, b, c, got, want)
		}
	}
	for i := 0; i < 300000; i++ {
		check(randF32(r), randF32(r), randF32(r))
	}
	// Double rounding: a*b is a tie at float32's last bit, c far below decides.
	check(1+0x1p-12, 1+0x1p-12, 0x1p-80)
	check(1+0x1p-12, 1+0x1p-12, -0x1p-80)
	check(1+0x1p-23, 0.5+0x1p-24, 0x1p-100)
	check(0x1p-126, 0.5+0x1p-24, 0x1p-149)
	require.True(t, math.IsNaN(float64(FMA32(float32(math.Inf(1)), 0, 1))))
	require.True(t, math.IsInf(float64(FMA32(math.MaxFloat32, 2, 0)), 1))
	require.True(t, math.Signbit(float64(FMA32(-1, 0, float32(math.Copysign(0, -1))))))
}

// TestPairDot compares with exact arithmetic that rounds to 24 bits whatever the exponent, and drops what is below the
// least normal number.
func TestPairDot(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	normal := func(x float32) *big.Float {
		if math.Abs(float64(x)) < 0x1p-126 {
			return bigF(float32(math.Copysign(0, float64(x))))
		}
		return bigF(x)
	}
	step := func(a, b, c float32) float32 {
		sum := new(big.Float).SetPrec(1000).Mul(normal(a), normal(b))
		sum.Add(sum, normal(c)).SetMode(big.ToNearestEven).SetPrec(24)
		want, _ := sum.Float32()
		return flushed(want) // denormal only where sum is below 2^-126
	}
	tiny := 0
	for range 300000 {
		a, b, c := randF32(r), randF32(r), randF32(r)
		if r.IntN(2) == 0 { // products near the least normal number
			exponents := func() uint32 { return uint32(63+r.IntN(3))<<23 | uint32(63+r.IntN(3))<<7 }
			a = math.Float32frombits(r.Uint32()&0x807f807f | exponents())
			b = math.Float32frombits(r.Uint32()&0x807f807f | exponents())
			c = math.Float32frombits(math.Float32bits(c)&0x807fffff | uint32(r.IntN(4))<<23)
		}
		u, v := math.Float32bits(a), math.Float32bits(b)
		if u>>7&0xff == 0xff || v>>7&0xff == 0xff {
			continue // infinities and NaNs: metal/jit/choose compares them with the processor
		}
		high := step(math.Float32frombits(u&^0xffff), math.Float32frombits(v&^0xffff), c)
		if math.IsInf(float64(high), 0) {
			continue
		}
		want := step(math.Float32frombits(u<<16), math.Float32frombits(v<<16), high)
		require.Equal(t, want, PairDot32(u, v, c), "%#x %#x %x", u, v, c)
		if want == 0 {
			tiny++
		}
	}
	require.Greater(t, tiny, 1000)
}

func TestFloat32OpsAgainstExactArithmetic(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	f := func(x float32) uint64 { return uint64(math.Float32bits(x)) }
	for i := 0; i < 50000; i++ {
		a, b := randF32(r), randF32(r)
		for _, c := range []struct {
			op  Op
			res *big.Float
		}{
			{Add, new(big.Float).SetPrec(1000).Add(bigF(a), bigF(b))},
			{Sub, new(big.Float).SetPrec(1000).Sub(bigF(a), bigF(b))},
			{Mul, new(big.Float).SetPrec(1000).Mul(bigF(a), bigF(b))},
		} {
			want, _ := c.res.Float32()
			got, ok := Eval(c.op, F32, F32, f(a), f(b))
			if !ok || math.Float32frombits(uint32(got)) != want {
				t.Fatalf("%s(%x, %x) = %#x, want %x", c.op, a, b, got, want)
			}
		}
		if b != 0 { // the quotient q is right if |a - q*b| is at most half an ulp of q times |b|
			want, _ := new(big.Float).SetPrec(200).Quo(bigF(a), bigF(b)).Float32()
			got, _ := Eval(Div, F32, F32, f(a), f(b))
			if math.Float32frombits(uint32(got)) != want {
				t.Fatalf("div(%x, %x) = %#x, want %x", a, b, got, want)
			}
		}
		n := r.IntN(700) - 350
		want, _ := new(big.Float).SetMantExp(bigF(a), n).Float32()
		got, ok := Eval(Scale, F32, F32, f(a), f(float32(n)+r.Float32()/2))
		if !ok || math.Float32frombits(uint32(got)) != want {
			t.Fatalf("scale(%x, %d) = %#x, want %x", a, n, got, want)
		}
		x := float32(math.Abs(float64(a)))
		want, _ = new(big.Float).SetPrec(200).Sqrt(bigF(x)).Float32()
		got, _ = Eval(Sqrt, F32, F32, f(x))
		if math.Float32frombits(uint32(got)) != want {
			t.Fatalf("sqrt(%x) = %#x, want %x", x, got, want)
		}
	}
}

// wrap cuts an exact integer to a type's bits.
func wrap(t Type, x *big.Int) uint64 {
	m := new(big.Int).SetUint64(t.Mask())
	return new(big.Int).And(x, m).Uint64()
}

func exact(t Type, bits uint64) *big.Int {
	if t.IsSigned() {
		return big.NewInt(signExtend(t, bits))
	}
	return new(big.Int).SetUint64(bits)
}

func TestIntegerOpsAgainstExactArithmetic(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	types := []Type{I8, U8, I16, U16, I32, U32, I64, U64}
	draw := func(ty Type) uint64 {
		m := ty.Mask()
		return []uint64{r.Uint64() & m, r.Uint64() & 7, m - r.Uint64()&3, m>>1 + r.Uint64()&1, 0}[r.IntN(5)]
	}
	for i := 0; i < 20000; i++ {
		ty := types[i%len(types)]
		a, b := draw(ty), draw(ty)
		x, y := exact(ty, a), exact(ty, b)
		n := new(big.Int)
		w := uint(ty.Bits())
		sh := uint(b % uint64(w))
		want := map[Op]uint64{
			Add: wrap(ty, n.Add(x, y)), Sub: wrap(ty, n.Sub(x, y)), Mul: wrap(ty, n.Mul(x, y)),
			MulHi: wrap(ty, n.Rsh(n.Mul(x, y), w)), Neg: wrap(ty, n.Neg(x)), Abs: wrap(ty, n.Abs(x)),
			And: wrap(ty, n.And(x, y)), Or: wrap(ty, n.Or(x, y)), Xor: wrap(ty, n.Xor(x, y)), Not: wrap(ty, n.Not(x)),
			Shl: wrap(ty, n.Lsh(x, sh)), Shr: wrap(ty, n.Rsh(x, sh)), Min: a, Max: b,
		}
		if x.Cmp(y) > 0 {
			want[Min], want[Max] = b, a
		}
		if b == 0 {
			want[Div], want[Rem] = 0, a
		} else {
			want[Div], want[Rem] = wrap(ty, n.Quo(x, y)), wrap(ty, new(big.Int).Rem(x, y))
		}
		ones, lead, trail, rev := uint64(0), uint64(w), uint64(w), uint64(0)
		for j := uint(0); j < w; j++ {
			if a>>j&1 != 0 {
				ones++
				lead = uint64(w - 1 - j)
				trail = min(trail, uint64(j))
				rev |= 1 << (w - 1 - j)
			}
		}
		want[Popcount], want[Clz], want[Ctz], want[BitReverse] = ones, lead, trail, rev
		for op, bits := range want {
			args := []uint64{a, b}
			switch opDescs[op].kind {
			case arith1, int1, bits1:
				args = args[:1]
			}
			got, ok := Eval(op, ty, ty, args...)
			if !ok || got != bits {
				t.Fatalf("%s %s(%#x, %#x) = %#x %v, want %#x", op, ty, a, b, got, ok, bits)
			}
		}
		cmp := x.Cmp(y)
		for op, w := range map[Op]bool{Eq: cmp == 0, Ne: cmp != 0, Lt: cmp < 0, Le: cmp <= 0, Gt: cmp > 0,
			Ge: cmp >= 0} {
			got, ok := Eval(op, Bool, ty, a, b)
			if !ok || got != b2u(w) {
				t.Fatalf("%s %s(%#x, %#x) = %d", op, ty, a, b, got)
			}
		}
		for _, to := range types {
			got, ok := Eval(Convert, to, ty, a)
			if !ok || got != wrap(to, x) {
				t.Fatalf("convert %s(%#x) to %s = %#x", ty, a, to, got)
			}
		}
		wantF, _ := new(big.Float).SetInt(x).Float32()
		gotF, _ := Eval(Convert, F32, ty, a)
		require.Equal(t, uint64(math.Float32bits(wantF)), gotF)
		wantD, _ := new(big.Float).SetInt(x).Float64()
		gotD, _ := Eval(Convert, F64, ty, a)
		require.Equal(t, math.Float64bits(wantD), gotD)
	}
}

func TestFloatToInteger(t *testing.T) {
	for _, c := range []struct {
		to   Type
		f    float32
		want uint64
	}{
		{I32, 2.9, 2}, {I32, -2.9, 0xfffffffe}, {I32, 3e9, 0x7fffffff}, {I32, -3e9, 0x80000000}, {U32, -1, 0},
		{U32, 3e9, 3000000000}, {U32, 5e9, 0xffffffff}, {U8, 255.9, 255}, {U8, 256, 255}, {I8, -128.9,
			0x80}, {I8, -1, 0xff},
		{I16, 1e9, 0x7fff}, {U64, 0x1.8p63, 0xc << 60}, {U64, 1e30, ^uint64(0)}, {I64, 1e30, 1<<63 - 1}, {I64,
			-1e30, 1 << 63},
		{I32, float32(math.NaN()), 0}, {U64, float32(math.NaN()), 0}, {I64, float32(math.Inf(-1)), 1 << 63},
		{Bool, float32(math.NaN()), 1}, {Bool, 0, 0}, {Bool, float32(math.Copysign(0, -1)), 0}, {Bool, 1e-45, 1},
	} {
		got, ok := Eval(Convert, c.to, F32, uint64(math.Float32bits(c.f)))
		require.True(t, ok)
		require.Equal(t, c.want, got, "%v to %s", c.f, c.to)
	}
}

func TestMinMaxAndSpecials(t *testing.T) {
	nan, inf, nzero := math.NaN(), math.Inf(1), math.Copysign(0, -1)
	for _, ty := range []Type{F16, BF16, F32, F64} {
		ev := func(op Op, args ...float64) float64 {
			var bits []uint64
			for _, a := range args {
				bits = append(bits, FromFloat64(ty, a))
			}
			r, ok := Eval(op, ty, ty, bits...)
			require.True(t, ok)
			return ToFloat64(ty, r)
		}
		require.Equal(t, 1.0, ev(Min, nan, 1))
		require.Equal(t, 1.0, ev(Max, 1, nan))
		require.True(t, math.IsNaN(ev(Max, nan, nan)))
		require.True(t, math.Signbit(ev(Min, 0, nzero)) && math.Signbit(ev(Min, nzero, 0)))
		require.False(t, math.Signbit(ev(Max, 0, nzero)) || math.Signbit(ev(Max, nzero, 0)))
		require.Equal(t, -inf, ev(Min, -inf, inf))
		require.Equal(t, 2.0, ev(Rint, 2.5))
		require.Equal(t, -2.0, ev(Trunc, -2.5))
		require.True(t, math.Signbit(ev(Ceil, -0.5)))
		require.Equal(t, -1.5, ev(Rem, -5.5, 2))
		require.True(t, math.IsNaN(ev(Rem, 1, 0)))
		require.Equal(t, 1.0, ev(Rem, 1, inf))
		require.Equal(t, inf, ev(Div, 1, 0))
		require.Equal(t, 7.0, ev(Fma, 2, 3, 1))
		require.Equal(t, 0.375, ev(Scale, 3, -2.5))
		require.True(t, ev(Scale, 0, inf) == 0 && math.Signbit(ev(Scale, nzero, inf)))
		require.Equal(t, []float64{inf, -inf, 0}, []float64{ev(Scale, 1, inf), ev(Scale, -inf, -inf), ev(Scale, 1, -inf)})
		require.True(t, math.IsNaN(ev(Scale, nan, inf)) && math.IsNaN(ev(Scale, 1, nan)))
	}
	// One rounding of the float32 result: 2049 is no half, the tie goes to 2048.
	one, two := FromFloat64(F16, 1), FromFloat64(F16, 2048)
	r, _ := Eval(Add, F16, F16, one, two)
	require.Equal(t, 2048.0, ToFloat64(F16, r))
	// Denormals are kept.
	r, _ = Eval(Mul, F32, F32, uint64(math.Float32bits(0x1p-100)), uint64(math.Float32bits(0x1p-40)))
	require.Equal(t, 0x1p-140, ToFloat64(F32, r))
	// 0 times anything keeps its sign rules.
	r, _ = Eval(Neg, F32, F32, 0)
	require.Equal(t, uint64(0x80000000), r)
}

func TestEvalRefuses(t *testing.T) {
	for _, c := range []struct {
		op       Op
		t, arg   Type
		nargs    int
		accepted bool
	}{
		{Sqrt, I32, I32, 1, false}, {Add, F32, F32, 1, false}, {Load, F32, PtrDevice, 1, false}, {Shl, Bool,
			Bool, 2, false},
		{Op(250), F32, F32, 1, false}, {Add, Type(99), F32, 2, false}, {Bitcast, U32, U64, 1, false}, {Add, F32,
			F32, 2, true},
	} {
		_, ok := Eval(c.op, c.t, c.arg, make([]uint64, c.nargs)...)
		require.Equal(t, c.accepted, ok, c.op.String())
	}
}

func TestReduceAndScanLanes(t *testing.T) {
	var v [Lanes]uint64
	fill := func(ty Type, f func(i int) float64) {
		for i := range v {
			v[i] = FromFloat64(ty, f(i))
		}
	}
	fill(F32, func(i int) float64 { return float64(i) })
	require.True(t, ReduceLanes(ModeAdd, F32, 32, ^uint32(0), &v))
	require.Equal(t, 496.0, ToFloat64(F32, v[17]))
	fill(F32, func(i int) float64 { return float64(i) })
	require.True(t, ReduceLanes(ModeAdd, F32, 4, ^uint32(0), &v))
	require.Equal(t, 4.0+5+6+7, ToFloat64(F32, v[6]))
	// -0 is the sum of nothing but -0: the identity must not turn it into +0.
	fill(F32, func(int) float64 { return math.Copysign(0, -1) })
	require.True(t, ReduceLanes(ModeAdd, F32, 32, 7, &v))
	require.Equal(t, uint64(0x80000000), v[2])
	require.Zero(t, v[3])
	// The tree is fixed: 2^24 + 1 + ... + 1 in halves of the lanes.
	fill(F32, func(i int) float64 {
		if i == 0 {
			return 0x1p24
		}
		return 1
	})
	require.True(t, ReduceLanes(ModeAdd, F32, 32, ^uint32(0), &v))
	// Lane 0 loses one unit to rounding in every of five steps; its partners add 2, 4, 8, 16: only the first 1 is
	// lost.
	require.Equal(t, 0x1p24+2+4+8+16, ToFloat64(F32, v[0]))
	fill(F32, func(int) float64 { return math.NaN() })
	require.True(t, ReduceLanes(ModeMin, F32, 32, 0xff, &v))
	require.True(t, math.IsNaN(ToFloat64(F32, v[0])))

	for i := range v {
		v[i] = uint64(i + 1)
	}
	require.True(t, ScanLanes(ScanExclusive, ModeAdd, I32, 32, 0xfffffff0, &v))
	require.Equal(t, []uint64{0, 0, 0, 0, 0, 5, 11, 18}, v[:8])
	for i := range v {
		v[i] = uint64(i + 1)
	}
	require.True(t, ScanLanes(ScanInclusive, ModeMul, I32, 4, ^uint32(0), &v))
	require.Equal(t, []uint64{1, 2, 6, 24, 5, 30, 210, 1680}, v[:8])
	require.False(t, ScanLanes(ScanInclusive, ModeMin, Bool, 32, 1, &v))
	require.False(t, ReduceLanes(ModeAdd, Bool, 32, 1, &v))
	require.False(t, ReduceLanes(ModeAdd, F32, 8, 1, &v))
}

// TestMatMulLanes multiplies matrices of small integers, whose products are exact, as matrices; and looks at the order
// of a sum that depends on it.
func TestMatMulLanes(t *testing.T) {
	var a, b, c [8][8]float64
	for i := range 8 {
		for j := range 8 {
			a[i][j], b[i][j], c[i][j] = float64(3*i-j), float64(i*j%7-2), float64(10*i+j)
		}
	}
	b[0][5], b[7][5] = 1<<24, 0.5 // in column 5 the first product is so large that the last ones vanish beside it
	for _, ty := range []Type{F32, F64} {
		var x, y [2][Lanes]uint64
		var z [2][Lanes]uint64
		for lane := range Lanes {
			row, col := MatrixPlace(lane)
			for e := range 2 {
				require.Equal(t, lane, MatrixLane(row, col+e))
				x[e][lane], y[e][lane] = FromFloat64(ty, a[row][col+e]), FromFloat64(ty, b[row][col+e])
				z[e][lane] = FromFloat64(ty, c[row][col+e])
			}
		}
		for e := range 2 {
			MatMulLanes(ty, e, &x, &y, &z[e])
			for lane := range Lanes {
				row, col := MatrixPlace(lane)
				want := c[row][col+e]
				for k := range 8 {
					if want += a[row][k] * b[k][col+e]; ty == F32 {
						want = float64(float32(want)) // a product of these is exact in float64, and so is the sum
					}
				}
				require.Equal(t, want, ToFloat64(ty, z[e][lane]), "%s row %d column %d", ty, row, col+e)
			}
		}
	}
}
