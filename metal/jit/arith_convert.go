package jit

import (
	"math"

	"github.com/mlxlua/mlxlua/metal/jit/amd64"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// convert computes Convert on one part.
func (x lane) convert(t, from kir.Type, a [2]operand) unit {
	one := func(r amd64.R) unit { return unit{r: [2]amd64.R{r}} }
	switch {
	case from == kir.Bool:
		m := a[0].r
		if m == 0 {
			m = x.constant(kir.Bool, a[0].bits)
		}
		if t == kir.Bool {
			return one(x.maskCopy(m))
		}
		return x.boolToNumber(t, m)
	case t == kir.Bool:
		var m [2]amd64.R
		for h := range x.halves(from) {
			m[h] = x.compare1(kir.Ne, from, inReg(x.in(a[h], wide(from))), konst(0))
		}
		return one(x.joinMasks(from, m))
	}
	var r [2]amd64.R
	for h := range x.halves(from) {
		r[h] = x.in(a[h], wide(from))
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
		return x.moveUnit(r)
	case wide(t):
		return unit{r: x.wider(r[0], func(h amd64.R) amd64.R { return x.extend(from, h) })}
	case wide(from):
		return one(x.canonMoved(t, x.lowHalves(r)))
	}
	if fits(from, t) {
		return one(x.move(r[0]))
	}
	return one(x.canonMoved(t, r[0]))
}

// canonMoved is canon, in a register of its own.
func (x lane) canonMoved(t kir.Type, r amd64.R) amd64.R {
	if c := x.canon(t, r); c != r {
		return c
	}
	return x.move(r)
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

// moveUnit copies both registers of a part.
func (x lane) moveUnit(r [2]amd64.R) (u unit) {
	for h := range r {
		if r[h] != 0 {
			u.r[h] = x.move(r[h])
		}
	}
	return u
}

// extend makes 64-bit lanes of the lower half of 32-bit integer lanes.
func (x lane) extend(from kir.Type, r amd64.R) amd64.R {
	if from.IsSigned() {
		return x.op1(amd64.VPMovSXDQ, r)
	}
	return x.op1(amd64.VPMovZXDQ, r)
}

// lowHalves makes 32-bit lanes of the lower halves of 64-bit ones.
func (x lane) lowHalves(r [2]amd64.R) amd64.R {
	switch {
	case x.splat:
		return x.first(r[0], false)
	case x.level == amd64.AVX2:
		return x.evenDwords(r[0], r[1])
	}
	return x.evens(r[0], r[1], 0)
}

// evens takes the dwords first, first+2, ... of two AVX-512 registers.
func (x lane) evens(lo, hi amd64.R, first int) amd64.R {
	var table []byte
	for l := range 16 {
		table = appendBits(table, uint64(2*l+first), 4)
	}
	d := x.reg(amd64.Vec)
	x.emit(amd64.Inst{Op: amd64.VMovUPS, W: 64, Dst: d, Mem: x.pattern(table)})
	x.emit(amd64.Inst{Op: amd64.VPermI2D, W: 64, Dst: d, A: lo, B: hi})
	return d
}

// boolToNumber makes 0 and 1 of a mask.
func (x lane) boolToNumber(t kir.Type, m amd64.R) (u unit) {
	oneBits, _ := laneBits(t, kirOne(t))
	halves := [2]amd64.R{m}
	if wide(t) && !x.splat {
		halves = x.splitMask(m)
	}
	for h := range x.halves(t) {
		u.r[h] = x.choose1(halves[h], konst(oneBits), konst(0), wide(t))
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
func (x lane) floatToFloat(t, from kir.Type, r [2]amd64.R) (u unit) {
	switch {
	case t == from || from == kir.F16 && t == kir.F32 || from == kir.BF16 && t == kir.F32:
		return x.moveUnit(r)
	case t == kir.F64:
		return unit{r: x.wider(r[0], func(h amd64.R) amd64.R { return x.op1(amd64.VCvtPS2PD, h) })}
	case from == kir.F64:
		r[0] = x.narrower(r, func(h amd64.R) amd64.R { return x.op1(amd64.VCvtPD2PS, h) })
	}
	switch t {
	case kir.F16:
		r[0] = x.roundF16(r[0])
	case kir.BF16:
		r[0] = x.toBF16(r[0])
	}
	u.r[0] = r[0]
	return u
}

// int32ToFloat converts integers of up to 32 bits.
func (x lane) int32ToFloat(t, from kir.Type, r amd64.R) (u unit) {
	if t == kir.F64 {
		return unit{r: x.wider(r, func(h amd64.R) amd64.R { return x.intToDouble(from, h) })}
	}
	switch {
	case from != kir.U32:
		r = x.op1(amd64.VCvtDQ2PS, r)
	case x.level == amd64.AVX512:
		r = x.op1(amd64.VCvtUDQ2PS, r)
	default:
		// The halves of the number as floats of their own: low in the fraction of 2^23, high in that of 2^39. The
		// subtraction is exact, the addition rounds once.
		low := x.or(x.and(r, konst(0xffff), false), konst(0x4b000000), false)
		high := x.or(x.shift(amd64.VPSrlD, r, 16), konst(0x53000000), false)
		high = x.opX(amd64.VSubPS, high, konst(floatLane(1<<39+1<<23, false)), false)
		r = x.op2(amd64.VAddPS, high, low)
	}
	u.r[0] = x.rounded(t, r)
	return u
}

// int64ToFloat converts 64-bit integers.
func (x lane) int64ToFloat(t, from kir.Type, r [2]amd64.R) (u unit) {
	if t == kir.F64 {
		for h := range x.halves(from) {
			u.r[h] = x.int64ToDouble(from, r[h])
		}
		return u
	}
	f := x.narrower(r, func(h amd64.R) amd64.R {
		switch {
		case x.level == amd64.AVX512 && from.IsSigned():
			return x.op1(amd64.VCvtQQ2PS, h)
		case x.level == amd64.AVX512:
			return x.op1(amd64.VCvtUQQ2PS, h)
		}
		return x.op1(amd64.VCvtPD2PS, x.int64ToDouble(from, x.sticky(from, h)))
	})
	u.r[0] = x.rounded(t, f)
	return u
}

// int64ToDouble converts to float64, rounding once.
func (x lane) int64ToDouble(from kir.Type, r amd64.R) amd64.R {
	switch {
	case x.level == amd64.AVX512 && from.IsSigned():
		return x.op1(amd64.VCvtQQ2PD, r)
	case x.level == amd64.AVX512:
		return x.op1(amd64.VCvtUQQ2PD, r)
	}
	// As for U32 above: the low half in the fraction of 2^52, the high half in that of 2^84 (2^63 more for signed
	// numbers, whose top bit is flipped).
	highBits, both := uint64(0x45300000_00000000), math.Float64frombits(0x45300000_00100000)
	if from.IsSigned() {
		highBits, both = 0x45300000_80000000, math.Float64frombits(0x45300000_80100000)
	}
	low := x.or(x.and(r, konst(1<<32-1), true), konst(0x43300000_00000000), true)
	high := x.xor(x.shift(amd64.VPSrlQ, r, 32), konst(highBits), true)
	high = x.opX(amd64.VSubPD, high, konst(math.Float64bits(both)), true)
	return x.op2(amd64.VAddPD, high, low)
}

// sticky replaces the low 11 bits of numbers that need more than 53 bits by one bit that says whether they were
// zero: then float64 holds the number, and rounding it to float32 gives what rounding the original does.
func (x lane) sticky(from kir.Type, r amd64.R) amd64.R {
	const n = 11
	low := x.and(r, konst(1<<n-1), true)
	carry := x.opX(amd64.VPAddQ, low, konst(1<<n-1), true) // bit 11: low is not 0
	cut := x.and(x.or(r, inReg(carry), true), konst(^uint64(1<<n-1)), true)
	top := x.shift(amd64.VPSrlQ, r, 53)
	if from.IsSigned() {
		top = x.shift(amd64.VPSrlQ, x.opX(amd64.VPAddQ, r, konst(1<<53), true), 54)
	}
	small := x.opX(amd64.VPCmpEqQ, top, konst(0), true)
	return x.blend(cut, r, small, true)
}

// intLimits returns the bounds of an integer type as floats: the greatest may be one more than the type holds.
func intLimits(t kir.Type) (lo, hi float64) {
	if t.IsSigned() {
		return -math.Ldexp(1, t.Bits()-1), math.Ldexp(1, t.Bits()-1)
	}
	return 0, math.Ldexp(1, t.Bits())
}

// ordered returns r with NaNs replaced by 0.
func (x lane) ordered(r amd64.R, big bool) amd64.R {
	if x.level == amd64.AVX512 {
		k := x.cmpK(by(big, amd64.VCmpPSK, amd64.VCmpPDK), r, r, cmpOrd)
		d := x.reg(amd64.Vec)
		x.emit(amd64.Inst{Op: by(big, amd64.VMovAPS, amd64.VMovAPD), W: x.w, Dst: d, A: r, KM: k, Zero: true})
		return d
	}
	return x.and(r, inReg(x.op2i(by(big, amd64.VCmpPS, amd64.VCmpPD), r, r, cmpOrd)), big)
}

// atLeast returns the AVX2 mask of lanes that are at least a constant.
func (x lane) atLeast(r amd64.R, f float64, big bool) amd64.R {
	d := x.reg(amd64.Vec)
	x.emit(amd64.Inst{Op: by(big, amd64.VCmpPS, amd64.VCmpPD), W: x.w, Dst: d, A: r,
		Mem: x.constMem(floatLane(f, big), big), Imm: cmpGe})
	return d
}

// saturate sets lanes of d to a constant where r is at least f, with AVX-512.
func (x lane) saturate(d, r amd64.R, f float64, bits uint64, big bool) {
	k := x.reg(amd64.Mask)
	x.emit(amd64.Inst{Op: by(big, amd64.VCmpPSK, amd64.VCmpPDK), W: x.w, Dst: k, A: r,
		Mem: x.constMem(floatLane(f, big), big), Imm: cmpGe})
	size := 4
	if big {
		size = 8
	}
	x.emit(amd64.Inst{Op: by(big, amd64.VPBroadcastD, amd64.VPBroadcastQ), W: x.w, Dst: d, Mem: x.pool(bits, size),
		KM: k})
}

// floatToInt converts F32 lanes to integers: truncated, saturated, NaN to 0.
func (x lane) floatToInt(t kir.Type, r amd64.R) (u unit) {
	if wide(t) {
		d := x.wider(r, func(h amd64.R) amd64.R { return x.op1(amd64.VCvtPS2PD, h) })
		return x.doubleToInts(t, d)
	}
	lo, hi := intLimits(t)
	switch {
	case t.Bits() < 32:
		if t.IsSigned() {
			r = x.opX(amd64.VMaxPS, x.ordered(r, false), konst(floatLane(lo, false)), false)
		} else {
			r = x.opX(amd64.VMaxPS, r, konst(0), false) // NaN too becomes the second operand
		}
		r = x.opX(amd64.VMinPS, r, konst(floatLane(hi-1, false)), false)
		u.r[0] = x.op1(amd64.VCvtTPS2DQ, r)
	case t == kir.I32 && x.level == amd64.AVX512:
		u.r[0] = x.op1(amd64.VCvtTPS2DQ, x.ordered(r, false)) // MIN where out of range
		x.saturate(u.r[0], r, hi, math.MaxInt32, false)
	case t == kir.I32:
		d := x.op1(amd64.VCvtTPS2DQ, x.ordered(r, false))
		u.r[0] = x.xor(d, inReg(x.atLeast(r, hi, false)), false) // MIN becomes MAX
	case x.level == amd64.AVX512:
		u.r[0] = x.op1(amd64.VCvtTPS2UDQ, x.opX(amd64.VMaxPS, r, konst(0), false)) // all ones where out of range
	default:
		r = x.opX(amd64.VMaxPS, r, konst(0), false)
		low := x.op1(amd64.VCvtTPS2DQ, r) // MIN from 2^31 on
		high := x.op1(amd64.VCvtTPS2DQ, x.opX(amd64.VSubPS, r, konst(floatLane(1<<31, false)), false))
		d := x.or(low, inReg(x.and(high, inReg(x.shift(amd64.VPSraD, low, 31)), false)), false)
		u.r[0] = x.or(d, inReg(x.atLeast(r, hi, false)), false)
	}
	return u
}

// doubleToInts converts F64 lanes to integers: truncated, saturated, NaN to 0.
func (x lane) doubleToInts(t kir.Type, r [2]amd64.R) (u unit) {
	if wide(t) {
		for h := range x.halves(t) {
			u.r[h] = x.doubleToInt64(t, r[h])
		}
		return u
	}
	lo, hi := intLimits(t)
	u.r[0] = x.narrower(r, func(h amd64.R) amd64.R {
		if t.IsSigned() {
			h = x.opX(amd64.VMaxPD, x.ordered(h, true), konst(math.Float64bits(lo)), true)
		} else {
			h = x.opX(amd64.VMaxPD, h, konst(0), true)
		}
		return x.doubleToInt(t, x.opX(amd64.VMinPD, h, konst(math.Float64bits(hi-1)), true))
	})
	return u
}

// doubleToInt64 converts one register of F64 to I64 or U64.
func (x lane) doubleToInt64(t kir.Type, r amd64.R) amd64.R {
	_, hi := intLimits(t)
	switch {
	case x.level == amd64.AVX512 && t.IsSigned():
		d := x.op1(amd64.VCvtTPD2QQ, x.ordered(r, true)) // MIN where out of range
		x.saturate(d, r, hi, math.MaxInt64, true)
		return d
	case x.level == amd64.AVX512:
		return x.op1(amd64.VCvtTPD2UQQ, x.opX(amd64.VMaxPD, r, konst(0), true)) // all ones where out of range
	}
	// The two halves of the whole number, each exact, are in the low bits of sums with a constant whose last place
	// is 1.
	magic := uint64(0x43300000_00000000) // 2^52
	high := magic
	if t.IsSigned() {
		r = x.ordered(r, true)
		high = 0x43380000_00000000 // 2^52 + 2^51, for negative ones
		r = x.opX(amd64.VMaxPD, r, konst(math.Float64bits(-hi)), true)
	} else {
		r = x.opX(amd64.VMaxPD, r, konst(0), true)
	}
	whole := x.toIntegral(r, roundZero, true)
	h := x.toIntegral(x.opX(amd64.VMulPD, whole, konst(math.Float64bits(0x1p-32)), true), roundDown, true)
	l := x.reg(amd64.Vec)
	x.moveTo(l, whole, 0)
	x.emit(amd64.Inst{Op: amd64.VFNMAdd231PD, W: x.w, Dst: l, A: h, Mem: x.constMem(math.Float64bits(1<<32), true)})
	hb := x.shift(amd64.VPSllQ, x.opX(amd64.VAddPD, h, konst(high), true), 32)
	lb := x.opX(amd64.VAddPD, l, konst(magic), true)
	d := x.op2i(amd64.VPBlendD, hb, lb, 0x55)
	over := x.atLeast(r, hi, true)
	limit := uint64(math.MaxUint64)
	if t.IsSigned() {
		limit = math.MaxInt64
	}
	return x.blend(d, x.load(limit, true), over, true)
}

// bitcast computes Bitcast on one part: only the half types are not kept as their bits.
func (x lane) bitcast(t, from kir.Type, a [2]operand) unit {
	var r [2]amd64.R
	for h := range x.halves(from) {
		r[h] = x.in(a[h], wide(from))
	}
	if t == from || t.Size() >= 4 {
		return x.moveUnit(r)
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
		return unit{r: [2]amd64.R{x.op1(amd64.VCvtPH2PS, x.lowWords(from, v))}}
	case t == kir.BF16:
		return unit{r: [2]amd64.R{x.shift(amd64.VPSllD, v, 16)}}
	}
	return unit{r: [2]amd64.R{x.canonMoved(t, v)}}
}

// halfBits returns the bits of a half type as integers.
func (x lane) halfBits(t, from kir.Type, v amd64.R) amd64.R {
	signed := t.IsSigned()
	if from == kir.BF16 {
		if signed {
			return x.shift(amd64.VPSraD, v, 16)
		}
		return x.shift(amd64.VPSrlD, v, 16)
	}
	h := x.op1i(amd64.VCvtPS2PH, v, 0)
	if signed {
		return x.op1(amd64.VPMovSXWD, h)
	}
	return x.op1(amd64.VPMovZXWD, h)
}

// lowWords packs 16-bit integers into the lower half of a register.
func (x lane) lowWords(from kir.Type, v amd64.R) amd64.R {
	if x.level == amd64.AVX512 {
		return x.op1(amd64.VPMovDW, v)
	}
	pack := amd64.VPackUSDW
	if from.IsSigned() {
		pack = amd64.VPackSSDW
	}
	return x.op1i(amd64.VPermQ, x.op2(pack, v, v), 0x08)
}

// fewBits reports whether i makes floats of a few low bits of 32-bit integers, as unpacking does: of which bits, and of
// what.
func (s *selector) fewBits(i *kir.Instr) (of *kir.Instr, mask uint64) {
	if i.Op != kir.Convert || !i.Type.IsFloat() || wide(i.Type) {
		return nil, 0
	}
	a := i.Args[0]
	if a.Op != kir.And || a.Type != kir.U32 && a.Type != kir.I32 {
		return nil, 0
	}
	x, c := a.Args[0], a.Args[1]
	if x.Op == kir.Const {
		x, c = c, x
	}
	if c.Op != kir.Const || c.Imm >= uint64(s.per) {
		return nil, 0
	}
	return x, c.Imm
}

// fewBitsToFloat looks the floats up in a register's worth of them: the lookup takes no more of its index than the low
// bits.
func (s *selector) fewBitsToFloat(t kir.Type, x val, mask uint64) val {
	var table []byte
	for n := range uint64(s.per) {
		table = appendBits(table, uint64(math.Float32bits(float32(n&mask))), 4)
	}
	v, m := val{typ: t}, amd64.Mem{Const: s.f.Const(table)}
	for p := range s.parts {
		v.vec[p] = s.reg(amd64.Vec)
		s.emit(amd64.Inst{Op: amd64.VPermPS, W: s.w, Dst: v.vec[p], A: x.unitOf(p).r[0], Mem: m})
	}
	return v
}
