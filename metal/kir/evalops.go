package kir

import (
	"math"
	"math/bits"
)

func evalCompare(op Op, t Type, a, b uint64) (uint64, bool) {
	var lt, eq, unordered bool
	switch {
	case t.IsFloat():
		x, y := ToFloat64(t, a), ToFloat64(t, b)
		lt, eq, unordered = x < y, x == y, x != x || y != y
	case t.IsSigned():
		x, y := signExtend(t, a), signExtend(t, b)
		lt, eq = x < y, x == y
	default:
		lt, eq = a < b, a == b
	}
	switch op {
	case Eq:
		return b2u(eq), true
	case Ne:
		return b2u(!eq), true
	case Lt:
		return b2u(lt), true
	case Le:
		return b2u(lt || eq), true
	case Gt:
		return b2u(!lt && !eq && !unordered), true
	case Ge:
		return b2u(!lt && !unordered), true
	}
	return 0, false
}

// evalInt evaluates on integers and Bool; a and b are canonical, the result is cut to the width by the caller.
func evalInt(op Op, t Type, a, b uint64) (uint64, bool) {
	w := uint64(t.Bits())
	sa, sb := signExtend(t, a), signExtend(t, b)
	switch op {
	case Add:
		return a + b, true
	case Sub:
		return a - b, true
	case Mul:
		return a * b, true
	case Div, Rem:
		return divRem(op, t, a, b), true
	case Neg:
		return -a, true
	case Abs:
		if t.IsSigned() && sa < 0 {
			return -a, true
		}
		return a, true
	case Min, Max:
		less := a < b
		if t.IsSigned() {
			less = sa < sb
		}
		if less == (op == Min) {
			return a, true
		}
		return b, true
	case MulHi:
		return mulHi(t, a, b), true
	case And:
		return a & b, true
	case Or:
		return a | b, true
	case Xor:
		return a ^ b, true
	case Not:
		return ^a, true
	case Shl:
		return a << (b % w), true
	case Shr:
		if t.IsSigned() {
			return uint64(sa >> (b % w)), true
		}
		return a >> (b % w), true
	case Popcount:
		return uint64(bits.OnesCount64(a)), true
	case Clz:
		return uint64(bits.LeadingZeros64(a)) - (64 - w), true
	case Ctz:
		return min(uint64(bits.TrailingZeros64(a)), w), true
	case BitReverse:
		return bits.Reverse64(a) >> (64 - w), true
	}
	return 0, false
}

func divRem(op Op, t Type, a, b uint64) uint64 {
	sa, sb := signExtend(t, a), signExtend(t, b)
	switch {
	case b == 0 && op == Div:
		return 0
	case b == 0:
		return a
	case t.IsSigned() && op == Div: // Go defines MIN / -1 as MIN, and MIN % -1 as 0
		return uint64(sa / sb)
	case t.IsSigned():
		return uint64(sa % sb)
	case op == Div:
		return a / b
	}
	return a % b
}

func mulHi(t Type, a, b uint64) uint64 {
	w := t.Bits()
	if w < 64 {
		if t.IsSigned() {
			return uint64(signExtend(t, a) * signExtend(t, b) >> w)
		}
		return a * b >> w
	}
	hi, _ := bits.Mul64(a, b)
	if t.IsSigned() { // unsigned to signed: subtract what the sign bits added
		hi -= uint64(int64(a)>>63)&b + uint64(int64(b)>>63)&a
	}
	return hi
}

// evalFloat evaluates on a float type.
func evalFloat(op Op, t Type, a [3]uint64) (uint64, bool) {
	m := t.Mask()
	sign := m ^ m>>1
	switch op { // on the bits
	case Neg:
		return (a[0] ^ sign) & m, true
	case Abs:
		return a[0] & m &^ sign, true
	case PairDot:
		r := PairDot32(uint32(a[0]), uint32(a[1]), math.Float32frombits(uint32(a[2])))
		return uint64(math.Float32bits(r)), true
	}
	x, y, z := ToFloat64(t, a[0]), ToFloat64(t, a[1]), ToFloat64(t, a[2])
	if t == F64 {
		r, ok := eval64(op, x, y, z)
		return math.Float64bits(r), ok
	}
	r, ok := eval32(op, float32(x), float32(y), float32(z))
	return FromFloat64(t, float64(r)), ok
}

// arithmetic computes what rounds in its operands' own type.
func arithmetic[T float32 | float64](op Op, x, y T) (T, bool) {
	switch op {
	case Add:
		return x + y, true
	case Sub:
		return x - y, true
	case Mul:
		return x * y, true
	case Div:
		return x / y, true
	}
	return 0, false
}

func eval32(op Op, x, y, z float32) (float32, bool) {
	switch op {
	case Fma:
		return FMA32(x, y, z), true
	case Sqrt: // the float64 root rounds to the correct float32: 53 >= 2*24+2
		return float32(math.Sqrt(float64(x))), true
	// Exact, so float64's result is float32's. Scale is exact down to half of float32's least number, and below.
	case Rem, Min, Max, Floor, Ceil, Trunc, Rint, Scale:
		r, ok := eval64(op, float64(x), float64(y), 0)
		return float32(r), ok
	}
	return arithmetic(op, x, y)
}

func eval64(op Op, x, y, z float64) (float64, bool) {
	switch op {
	case Rem:
		return math.Mod(x, y), true
	case Min:
		if y != y || x < y || x == y && math.Signbit(x) {
			return x, true
		}
		return y, true
	case Max:
		if y != y || x > y || x == y && !math.Signbit(x) {
			return x, true
		}
		return y, true
	case Fma:
		return math.FMA(x, y, z), true
	case Sqrt:
		return math.Sqrt(x), true
	case Floor:
		return math.Floor(x), true
	case Ceil:
		return math.Ceil(x), true
	case Trunc:
		return math.Trunc(x), true
	case Rint:
		return math.RoundToEven(x), true
	case Scale:
		return ScaleFloat(x, y), true
	}
	return arithmetic(op, x, y)
}

// ScaleFloat is Scale on float64, and on float32 if its result is rounded to that. Exponents past most are as good as
// infinite.
func ScaleFloat(x, n float64) float64 {
	const most = 4096
	if n != n {
		return n
	}
	return math.Ldexp(x, int(math.Floor(max(-most, min(most, n)))))
}
