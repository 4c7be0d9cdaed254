package choose

import (
	"math"

	"github.com/mlxlua/mlxlua/metal/jit/code"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// conversions converts lanes from one type to another.
type conversions struct{ v vector }

// convert computes Convert on one part.
func (x conversions) convert(t, from kir.Type, a [2]operand) unit {
	one := func(r code.R) unit { return unit{r: [2]code.R{r}} }
	switch {
	case from == kir.Bool:
		m := a[0].r
		if m == 0 {
			m = x.v.constant(kir.Bool, a[0].bits)
		}
		if t == kir.Bool {
			return one(x.v.e.copyReg(m))
		}
		return x.boolToNumber(t, m)
	case t == kir.Bool:
		var m [2]code.R
		for h := range x.v.halves(from) {
			m[h] = x.v.comparisons().register(kir.Ne, from, inReg(x.v.in(a[h], wide(from))), konst(0))
		}
		return one(x.v.comparisons().join(from, m))
	}
	var r [2]code.R
	for h := range x.v.halves(from) {
		r[h] = x.v.in(a[h], wide(from))
	}
	switch {
	case t.IsFloat() && from.IsFloat():
		return x.floatToFloat(t, from, r)
	case t.IsFloat() && wide(from):
		return x.int64ToFloat(t, from, r)
	case t.IsFloat():
		return x.int32ToFloat(t, from, r[0])
	case from == kir.F64:
		return x.doubleToInts(t, r)
	case from.IsFloat():
		return x.floatToInt(t, r[0])
	case wide(t) && wide(from):
		return x.v.moveUnit(r)
	case wide(t):
		return unit{r: x.v.wider(r[0], func(h code.R) code.R { return x.v.extend(from, h) })}
	case wide(from):
		return one(x.v.integers().canonMoved(t, x.v.lowHalves(r)))
	}
	if fits(from, t) {
		return one(x.v.move(r[0]))
	}
	return one(x.v.integers().canonMoved(t, r[0]))
}

// fits reports whether lanes of an integer type of up to 32 bits are as another such type keeps the converted
// number.
func fits(from, t kir.Type) bool {
	switch {
	case from == t || t.Bits() == 32:
		return true
	case from.Bits() > t.Bits():
		return false
	case from.IsSigned():
		return t.IsSigned()
	}
	return from.Bits() < t.Bits()
}

// boolToNumber makes 0 and 1 of a mask.
func (x conversions) boolToNumber(t kir.Type, m code.R) (u unit) {
	oneBits, _ := laneBits(t, kirOne(t))
	halves := [2]code.R{m}
	if wide(t) && !x.v.splat {
		halves = x.v.masks().split(m)
	}
	for h := range x.v.halves(t) {
		u.r[h] = x.v.comparisons().chooseRegister(halves[h], konst(oneBits), konst(0), wide(t))
	}
	return u
}

// kirOne is the bits of 1.
func kirOne(t kir.Type) uint64 {
	if t.IsFloat() {
		return kir.FromFloat64(t, 1)
	}
	return 1
}

// floatToFloat converts between float types.
func (x conversions) floatToFloat(t, from kir.Type, r [2]code.R) (u unit) {
	switch {
	case t == from || from == kir.F16 && t == kir.F32 || from == kir.BF16 && t == kir.F32:
		return x.v.moveUnit(r)
	case t == kir.F64:
		return unit{r: x.v.wider(r[0], func(h code.R) code.R { return x.v.op1(code.VCvtPS2PD, h) })}
	case from == kir.F64:
		r[0] = x.v.narrower(r, func(h code.R) code.R { return x.v.op1(code.VCvtPD2PS, h) })
	}
	switch t {
	case kir.F16:
		r[0] = x.v.floats().roundF16(r[0])
	case kir.BF16:
		r[0] = x.v.floats().toBF16(r[0])
	}
	u.r[0] = r[0]
	return u
}

// int32ToFloat converts integers of up to 32 bits.
func (x conversions) int32ToFloat(t, from kir.Type, r code.R) (u unit) {
	if t == kir.F64 {
		return unit{r: x.v.wider(r, func(h code.R) code.R { return x.v.divisions().intToDouble(from, h) })}
	}
	switch {
	case from != kir.U32:
		r = x.v.op1(code.VCvtDQ2PS, r)
	case x.v.extras():
		r = x.v.op1(code.VCvtUDQ2PS, r)
	default:
		// The halves of the number as floats of their own: low in the fraction of 2^23, high in that of 2^39. The
		// subtraction is exact, the addition rounds once.
		low := x.v.or(x.v.and(r, konst(0xffff), false), konst(0x4b000000), false)
		high := x.v.or(x.v.shift(code.VPSrlD, r, 16), konst(0x53000000), false)
		high = x.v.opX(code.VSubPS, high, konst(floatLane(1<<39+1<<23, false)), false)
		r = x.v.op2(code.VAddPS, high, low)
	}
	u.r[0] = x.v.floats().rounded(t, r)
	return u
}

// int64ToFloat converts 64-bit integers.
func (x conversions) int64ToFloat(t, from kir.Type, r [2]code.R) (u unit) {
	if t == kir.F64 {
		for h := range x.v.halves(from) {
			u.r[h] = x.int64ToDouble(from, r[h])
		}
		return u
	}
	f := x.v.narrower(r, func(h code.R) code.R {
		switch {
		case x.v.avx512() && from.IsSigned():
			return x.v.op1(code.VCvtQQ2PS, h)
		case x.v.avx512():
			return x.v.op1(code.VCvtUQQ2PS, h)
		}
		return x.v.op1(code.VCvtPD2PS, x.int64ToDouble(from, x.sticky(from, h)))
	})
	u.r[0] = x.v.floats().rounded(t, f)
	return u
}

// int64ToDouble converts to float64, rounding once.
func (x conversions) int64ToDouble(from kir.Type, r code.R) code.R {
	switch {
	case x.v.extras() && from.IsSigned():
		return x.v.op1(code.VCvtQQ2PD, r)
	case x.v.extras():
		return x.v.op1(code.VCvtUQQ2PD, r)
	}
	// As for U32 above: the low half in the fraction of 2^52, the high half in that of 2^84 (2^63 more for signed
	// numbers, whose top bit is flipped).
	highBits, both := uint64(0x45300000_00000000), math.Float64frombits(0x45300000_00100000)
	if from.IsSigned() {
		highBits, both = 0x45300000_80000000, math.Float64frombits(0x45300000_80100000)
	}
	low := x.v.or(x.v.and(r, konst(1<<32-1), true), konst(0x43300000_00000000), true)
	high := x.v.xor(x.v.shift(code.VPSrlQ, r, 32), konst(highBits), true)
	high = x.v.opX(code.VSubPD, high, konst(math.Float64bits(both)), true)
	return x.v.op2(code.VAddPD, high, low)
}

// sticky replaces the low 11 bits of numbers that need more than 53 bits by one bit that says whether they were
// zero: then float64 holds the number, and rounding it to float32 gives what rounding the original does.
func (x conversions) sticky(from kir.Type, r code.R) code.R {
	const n = 11
	low := x.v.and(r, konst(1<<n-1), true)
	carry := x.v.opX(code.VPAddQ, low, konst(1<<n-1), true) // bit 11: low is not 0
	cut := x.v.and(x.v.or(r, inReg(carry), true), konst(^uint64(1<<n-1)), true)
	top := x.v.shift(code.VPSrlQ, r, 53)
	if from.IsSigned() {
		top = x.v.shift(code.VPSrlQ, x.v.opX(code.VPAddQ, r, konst(1<<53), true), 54)
	}
	small := x.v.opX(code.VPCmpEqQ, top, konst(0), true)
	return x.v.blend(cut, r, small, true)
}

// intLimits returns the bounds of an integer type as floats: the greatest may be one more than the type holds.
func intLimits(t kir.Type) (lo, hi float64) {
	if t.IsSigned() {
		return -math.Ldexp(1, t.Bits()-1), math.Ldexp(1, t.Bits()-1)
	}
	return 0, math.Ldexp(1, t.Bits())
}

// ordered returns r with NaNs replaced by 0.
func (x conversions) ordered(r code.R, big bool) code.R {
	if x.v.avx512() {
		k := x.v.cmpK(by(big, code.VCmpPSK, code.VCmpPDK), r, r, cmpOrd)
		d := x.v.reg(code.Vec)
		x.v.emit(code.Inst{Op: by(big, code.VMovAPS, code.VMovAPD), W: x.v.w, Dst: d, A: r, KM: k, Zero: true})
		return d
	}
	return x.v.and(r, inReg(x.v.op2Imm(by(big, code.VCmpPS, code.VCmpPD), r, r, cmpOrd)), big)
}

// saturate sets lanes of d to a constant where r is at least f, with AVX-512.
func (x conversions) saturate(d, r code.R, f float64, bits uint64, big bool) {
	k := x.v.reg(code.Mask)
	x.v.emit(code.Inst{Op: by(big, code.VCmpPSK, code.VCmpPDK), W: x.v.w, Dst: k, A: r,
		Mem: x.v.constMem(floatLane(f, big), big), Imm: cmpGe})
	size := 4
	if big {
		size = 8
	}
	x.v.emit(code.Inst{Op: by(big, code.VPBroadcastD, code.VPBroadcastQ), W: x.v.w, Dst: d, Mem: x.v.pool(bits, size),
		KM: k})
}

// floatToInt converts F32 lanes to integers: truncated, saturated, NaN to 0.
func (x conversions) floatToInt(t kir.Type, r code.R) (u unit) {
	if wide(t) {
		d := x.v.wider(r, func(h code.R) code.R { return x.v.op1(code.VCvtPS2PD, h) })
		return x.doubleToInts(t, d)
	}
	lo, hi := intLimits(t)
	switch {
	case t.Bits() < 32:
		if t.IsSigned() {
			r = x.v.opX(code.VMaxPS, x.ordered(r, false), konst(floatLane(lo, false)), false)
		} else {
			r = x.v.opX(code.VMaxPS, r, konst(0), false) // NaN too becomes the second operand
		}
		r = x.v.opX(code.VMinPS, r, konst(floatLane(hi-1, false)), false)
		u.r[0] = x.v.op1(code.VCvtTPS2DQ, r)
	case x.v.e.target.Extras: // it saturates
		u.r[0] = x.v.op1(by(t.IsSigned(), code.VCvtTPS2UDQ, code.VCvtTPS2DQ), r)
	case t == kir.I32 && x.v.avx512():
		u.r[0] = x.v.op1(code.VCvtTPS2DQ, x.ordered(r, false)) // MIN where out of range
		x.saturate(u.r[0], r, hi, math.MaxInt32, false)
	case t == kir.I32:
		d := x.v.op1(code.VCvtTPS2DQ, x.ordered(r, false))
		u.r[0] = x.v.xor(d, inReg(x.v.comparisons().atLeast(r, hi, false)), false) // MIN becomes MAX
	case x.v.avx512():
		u.r[0] = x.v.op1(code.VCvtTPS2UDQ, x.v.opX(code.VMaxPS, r, konst(0), false)) // all ones where out of range
	default:
		r = x.v.opX(code.VMaxPS, r, konst(0), false)
		low := x.v.op1(code.VCvtTPS2DQ, r) // MIN from 2^31 on
		high := x.v.op1(code.VCvtTPS2DQ, x.v.opX(code.VSubPS, r, konst(floatLane(1<<31, false)), false))
		d := x.v.or(low, inReg(x.v.and(high, inReg(x.v.shift(code.VPSraD, low, 31)), false)), false)
		u.r[0] = x.v.or(d, inReg(x.v.comparisons().atLeast(r, hi, false)), false)
	}
	return u
}

// doubleToInts converts F64 lanes to integers: truncated, saturated, NaN to 0.
func (x conversions) doubleToInts(t kir.Type, r [2]code.R) (u unit) {
	if wide(t) {
		for h := range x.v.halves(t) {
			u.r[h] = x.doubleToInt64(t, r[h])
		}
		return u
	}
	lo, hi := intLimits(t)
	u.r[0] = x.v.narrower(r, func(h code.R) code.R {
		if t.IsSigned() {
			h = x.v.opX(code.VMaxPD, x.ordered(h, true), konst(math.Float64bits(lo)), true)
		} else {
			h = x.v.opX(code.VMaxPD, h, konst(0), true)
		}
		return x.v.divisions().doubleToInt(t, x.v.opX(code.VMinPD, h, konst(math.Float64bits(hi-1)), true))
	})
	return u
}

// doubleToInt64 converts one register of F64 to I64 or U64.
func (x conversions) doubleToInt64(t kir.Type, r code.R) code.R {
	_, hi := intLimits(t)
	switch {
	case x.v.e.target.Extras: // it saturates
		return x.v.op1(by(t.IsSigned(), code.VCvtTPD2UQQ, code.VCvtTPD2QQ), r)
	case x.v.avx512() && t.IsSigned():
		d := x.v.op1(code.VCvtTPD2QQ, x.ordered(r, true)) // MIN where out of range
		x.saturate(d, r, hi, math.MaxInt64, true)
		return d
	case x.v.avx512():
		return x.v.op1(code.VCvtTPD2UQQ, x.v.opX(code.VMaxPD, r, konst(0), true)) // all ones where out of range
	}
	// The two halves of the whole number, each exact, are in the low bits of sums with a constant whose last place
	// is 1.
	magic := uint64(0x43300000_00000000) // 2^52
	high := magic
	if t.IsSigned() {
		r = x.ordered(r, true)
		high = 0x43380000_00000000 // 2^52 + 2^51, for negative ones
		r = x.v.opX(code.VMaxPD, r, konst(math.Float64bits(-hi)), true)
	} else {
		r = x.v.opX(code.VMaxPD, r, konst(0), true)
	}
	whole := x.v.floats().toIntegral(r, roundZero, true)
	h := x.v.floats().toIntegral(x.v.opX(code.VMulPD, whole, konst(math.Float64bits(0x1p-32)), true), roundDown, true)
	l := x.v.reg(code.Vec)
	x.v.moveTo(l, whole, 0)
	x.v.emit(code.Inst{Op: code.VFNMAdd231PD, W: x.v.w, Dst: l, A: h, Mem: x.v.constMem(math.Float64bits(1<<32), true)})
	hb := x.v.shift(code.VPSllQ, x.v.opX(code.VAddPD, h, konst(high), true), 32)
	lb := x.v.opX(code.VAddPD, l, konst(magic), true)
	d := x.v.op2Imm(code.VPBlendD, hb, lb, 0x55)
	over := x.v.comparisons().atLeast(r, hi, true)
	limit := uint64(math.MaxUint64)
	if t.IsSigned() {
		limit = math.MaxInt64
	}
	return x.v.blend(d, x.v.load(limit, true), over, true)
}

// bitcast computes Bitcast on one part: only the half types are not kept as their bits.
func (x conversions) bitcast(t, from kir.Type, a [2]operand) unit {
	var r [2]code.R
	for h := range x.v.halves(from) {
		r[h] = x.v.in(a[h], wide(from))
	}
	if t == from || t.Size() >= 4 {
		return x.v.moveUnit(r)
	}
	v := r[0]
	if from == kir.F16 || from == kir.BF16 {
		bits := kir.U16
		if t == kir.I16 {
			bits = kir.I16
		}
		v = x.halfBits(bits, from, v)
		from = bits
	}
	switch {
	case t == kir.F16:
		return unit{r: [2]code.R{x.v.op1(code.VCvtPH2PS, x.v.lowWords(from, v))}}
	case t == kir.BF16:
		return unit{r: [2]code.R{x.v.shift(code.VPSllD, v, 16)}}
	}
	return unit{r: [2]code.R{x.v.integers().canonMoved(t, v)}}
}

// halfBits returns the bits of a half type as integers.
func (x conversions) halfBits(t, from kir.Type, v code.R) code.R {
	signed := t.IsSigned()
	if from == kir.BF16 {
		if signed {
			return x.v.shift(code.VPSraD, v, 16)
		}
		return x.v.shift(code.VPSrlD, v, 16)
	}
	h := x.v.op1Imm(code.VCvtPS2PH, v, 0)
	if signed {
		return x.v.op1(code.VPMovSXWD, h)
	}
	return x.v.op1(code.VPMovZXWD, h)
}
