package tensor

import "math"

// Float16Bits is v rounded to the nearest float16, ties to even; what is over 65519 becomes infinity.
func Float16Bits(v float32) uint16 {
	b := math.Float32bits(v)
	sign := uint16(b >> 16 & 0x8000)
	switch abs := b & 0x7fffffff; {
	case abs > 0x7f800000: // NaN stays a quiet NaN
		return sign | 0x7e00
	case abs >= 0x477ff000: // from 65520 on
		return sign | 0x7c00
	case abs < 0x38800000: // below 2^-14: subnormal, in units of 2^-24
		return sign | uint16(math.RoundToEven(float64(math.Float32frombits(abs))*(1<<24)))
	default: // move the exponent's bias from 127 to 15 and round the 13 bits that do not fit
		return sign | uint16((abs-0x38000000+0xfff+(abs>>13&1))>>13)
	}
}

// Float16Value is the number that float16 bits stand for.
func Float16Value(h uint16) float32 {
	sign := uint32(h&0x8000) << 16
	exp, frac := uint32(h>>10&31), uint32(h&0x3ff)
	switch exp {
	case 0:
		v := float32(frac) / (1 << 24)
		return math.Float32frombits(math.Float32bits(v) | sign)
	case 31:
		return math.Float32frombits(sign | 0x7f800000 | frac<<13)
	}
	return math.Float32frombits(sign | (exp+112)<<23 | frac<<13)
}

// BFloat16Bits is v rounded to the nearest bfloat16, ties to even.
func BFloat16Bits(v float32) uint16 {
	b := math.Float32bits(v)
	if b&0x7fffffff > 0x7f800000 {
		return uint16(b>>16) | 0x40
	}
	return uint16((b + 0x7fff + (b >> 16 & 1)) >> 16)
}

// BFloat16Value is the number that bfloat16 bits stand for.
func BFloat16Value(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }
