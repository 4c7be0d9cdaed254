package kir

import "math"

// F16ToF32 returns the float32 equal to an IEEE binary16 number; NaNs stay NaNs.
func F16ToF32(h uint16) float32 {
	bits := uint32(h&0x7fff) << 13
	sign := uint32(h&0x8000) << 16
	if bits >= 0x7c00<<13 { // infinity and NaN: the exponent is all ones in both formats
		return math.Float32frombits(sign | bits | 0x7f800000)
	}
	// The fields line up; only the exponent's bias differs, by 112. Multiplying by 2^112 mends it exactly,
	// denormals included.
	f := math.Float32frombits(bits) * 0x1p112
	return math.Float32frombits(sign | math.Float32bits(f))
}

// F32ToF16 returns the IEEE binary16 number nearest to f, ties to even; what rounds past 65504 is infinity.
func F32ToF16(f float32) uint16 {
	b := math.Float32bits(f)
	sign := uint16(b >> 16 & 0x8000)
	b &= 0x7fffffff
	switch {
	case b > 0x7f800000:
		return sign | 0x7e00 | uint16(b>>13&0x3ff)
	case b >= 0x47800000: // 65536 and more
		return sign | 0x7c00
	case b < 0x38800000: // below 2^-14: adding 1/2 makes the unit in the last place 2^-24, a denormal's
		return sign | uint16(math.Float32bits(math.Float32frombits(b)+0.5)-0x3f000000)
	}
	b += 0xfff + b>>13&1 // a carry into the exponent is right, also into infinity
	return sign | uint16((b-112<<23)>>13)
}

// BF16ToF32 returns the float32 equal to a bfloat16 number.
func BF16ToF32(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }

// F32ToBF16 returns the bfloat16 number nearest to f, ties to even; NaNs stay NaNs (made quiet).
func F32ToBF16(f float32) uint16 {
	b := math.Float32bits(f)
	if b&0x7fffffff > 0x7f800000 {
		return uint16(b>>16) | 0x40
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

// FMA32 returns a*b+c rounded once to float32, ties to even.
func FMA32(a, b, c float32) float32 {
	p := float64(a) * float64(b) // exact: 48 bits of 53
	z := float64(c)
	s := p + z
	u := math.Float64bits(s)
	// Rounding s again to float32 errs only if s lies on a tie of float32 while the true sum does not. For results that
	// are normal in float32 the tie is one pattern of the low 29 bits; denormal results take the slow way.
	if exp := u >> 52 & 0x7ff; u&(1<<29-1) != 1<<28 && exp > 1023-126 {
		return float32(s)
	}
	if math.IsInf(s, 0) || s != s {
		return float32(s)
	}
	// The exact error of the addition (Knuth's TwoSum), then rounding to odd: a tie of float32 has an even last bit
	// in float64, so an inexact s is moved to its odd neighbour towards the true sum.
	t := s - p
	e := float64(p-float64(s-t)) + float64(z-t)
	if e != 0 && u&1 == 0 {
		if (e > 0) == (s > 0) {
			u++
		} else {
			u--
		}
		s = math.Float64frombits(u)
	}
	return float32(s)
}

// PairDot32 is PairDot.
func PairDot32(a, b uint32, c float32) float32 {
	high := flushedFMA(math.Float32frombits(a&^0xffff), math.Float32frombits(b&^0xffff), c)
	return flushedFMA(math.Float32frombits(a<<16), math.Float32frombits(b<<16), high)
}

// flushedFMA returns a*b+c rounded once to float32, of BF16 a and b, with denormals as zeros.
func flushedFMA(a, b, c float32) float32 {
	a, b, c = flushed(a), flushed(b), flushed(c)
	r := FMA32(a, b, c)
	const least = 0x1p-126
	if !(r >= -least && r <= least) {
		return r
	}
	// What float32's precision rounds to a number below the least normal one. Products of BF16 have 16 bits, so float64
	// holds every sum that is near.
	s := float64(float64(a)*float64(b)) + float64(c)
	if s != 0 && math.Abs(s) < least-0x1p-151 {
		return float32(math.Copysign(0, s))
	}
	return r
}

// flushed is x, or a zero of its sign if x is denormal.
func flushed(x float32) float32 {
	if u := math.Float32bits(x); u&0x7f800000 == 0 {
		return math.Float32frombits(u & (1 << 31))
	}
	return x
}
