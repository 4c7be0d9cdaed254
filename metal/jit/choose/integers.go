package choose

import (
	"github.com/mlxlua/mlxlua/metal/jit/code"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// integers computes on lanes of integers. Those of up to 32 bits are kept extended to 32-bit lanes by their type's
// sign.
type integers struct{ v vector }

// canon cuts 32-bit lanes to an integer type and extends them again.
func (x integers) canon(t kir.Type, r code.R) code.R {
	switch t {
	case kir.I8, kir.I16:
		n := 32 - t.Bits()
		return x.v.shift(code.VPSraD, x.v.shift(code.VPSllD, r, n), n)
	case kir.U8, kir.U16:
		return x.v.and(r, konst(t.Mask()), false)
	}
	return r
}

// canonMoved is canon, in a register of its own.
func (x integers) canonMoved(t kir.Type, r code.R) code.R {
	if c := x.canon(t, r); c != r {
		return c
	}
	return x.v.move(r)
}

// zeroExtended returns lanes whose bits above the type's width are zero.
func (x integers) zeroExtended(t kir.Type, r code.R) code.R {
	if t.IsSigned() && t.Size() < 4 {
		return x.v.and(r, konst(t.Mask()), false)
	}
	return r
}

// op32 computes an operation on one register of integers of up to 32 bits.
func (x integers) op32(op kir.Op, t kir.Type, a [3]operand) code.R {
	switch op {
	case kir.Add:
		return x.canon(t, x.v.op2X(code.VPAddD, a[0], a[1], false, true))
	case kir.Sub:
		return x.canon(t, x.v.op2X(code.VPSubD, a[0], a[1], false, false))
	case kir.Mul:
		return x.canon(t, x.mul32(a[0], a[1]))
	case kir.Neg:
		return x.canon(t, x.v.op2X(code.VPSubD, konst(0), inReg(x.v.in(a[0], false)), false, false))
	case kir.Min, kir.Max:
		return x.v.op2X(minMaxInt(op, t, false), a[0], a[1], false, true)
	case kir.And:
		return x.v.op2X(x.v.logic(code.VPAnd, code.VPAndD, 0, false), a[0], a[1], false, true)
	case kir.Or:
		return x.v.op2X(x.v.logic(code.VPOr, code.VPOrD, 0, false), a[0], a[1], false, true)
	case kir.Xor:
		return x.v.op2X(x.v.logic(code.VPXor, code.VPXorD, 0, false), a[0], a[1], false, true)
	case kir.Shl, kir.Shr:
		return x.shift32(op, t, a[0], a[1])
	case kir.Div, kir.Rem:
		return x.v.divisions().div32(op, t, a[0], a[1])
	case kir.MulHi:
		return x.mulHi32(t, x.v.in(a[0], false), x.v.in(a[1], false))
	}
	r := x.v.in(a[0], false)
	switch op {
	case kir.Abs:
		if !t.IsSigned() {
			return x.v.move(r)
		}
		return x.canon(t, x.v.op1(code.VPAbsD, r))
	case kir.Not:
		m := uint64(1<<32 - 1)
		if !t.IsSigned() {
			m = t.Mask()
		}
		return x.v.xor(r, konst(m), false)
	case kir.Popcount:
		return x.popcount(x.zeroExtended(t, r), false)
	case kir.Clz:
		c := x.clz32(x.zeroExtended(t, r))
		if n := 32 - t.Bits(); n > 0 {
			c = x.v.opX(code.VPSubD, c, konst(uint64(n)), false)
		}
		return c
	case kir.Ctz:
		if t.Bits() < 32 { // a bit just above the width ends the search
			r = x.v.or(r, konst(1<<t.Bits()), false)
		}
		return x.ctz(r, false)
	case kir.BitReverse:
		right := code.VPSrlD
		if t.IsSigned() {
			right = code.VPSraD
		}
		r = x.reverse(r, false)
		if n := 32 - t.Bits(); n > 0 {
			r = x.v.shift(right, r, n)
		}
		return r
	}
	x.v.e.unsupported(&kir.Instr{Op: op}, "not for integers")
	return r
}

// minMaxInt is the instruction that computes Min or Max.
func minMaxInt(op kir.Op, t kir.Type, big bool) code.Opcode {
	switch {
	case op == kir.Min && t.IsSigned():
		return by(big, code.VPMinSD, code.VPMinSQ)
	case op == kir.Min:
		return by(big, code.VPMinUD, code.VPMinUQ)
	case t.IsSigned():
		return by(big, code.VPMaxSD, code.VPMaxSQ)
	}
	return by(big, code.VPMaxUD, code.VPMaxUQ)
}

// mul32 multiplies 32-bit lanes; powers of two are shifts, as the processor's instruction is slow.
func (x integers) mul32(a, b operand) code.R {
	if a.k && !b.k {
		a, b = b, a
	}
	if b.k && !a.k && isPow2(b.bits) {
		return x.v.shift(code.VPSllD, a.r, log2(int(b.bits)))
	}
	return x.v.op2X(code.VPMulLD, a, b, false, true)
}

// shift32 computes Shl and Shr; counts are taken modulo the width.
func (x integers) shift32(op kir.Op, t kir.Type, a, b operand) code.R {
	m := uint64(t.Bits() - 1)
	imm, variable := code.VPSllD, code.VPSllVD
	switch {
	case op == kir.Shr && t.IsSigned():
		imm, variable = code.VPSraD, code.VPSraVD
	case op == kir.Shr:
		imm, variable = code.VPSrlD, code.VPSrlVD
	}
	r := x.v.in(a, false)
	if b.k {
		r = x.v.shift(imm, r, int(b.bits&m))
	} else {
		r = x.v.op2(variable, r, x.v.and(b.r, konst(m), false))
	}
	if op == kir.Shl {
		r = x.canon(t, r)
	}
	return r
}

// mulHi32 computes the high half of products.
func (x integers) mulHi32(t kir.Type, a, b code.R) code.R {
	right, mul := code.VPSrlD, code.VPMulUDQ
	if t.IsSigned() {
		right, mul = code.VPSraD, code.VPMulDQ
	}
	if n := t.Bits(); n < 32 {
		return x.v.shift(right, x.v.op2(code.VPMulLD, a, b), n)
	}
	even := x.v.shift(code.VPSrlQ, x.v.op2(mul, a, b), 32)
	odd := x.v.op2(mul, x.v.shift(code.VPSrlQ, a, 32), x.v.shift(code.VPSrlQ, b, 32))
	if x.v.avx512() {
		k, g := x.v.reg(code.Mask), x.v.reg(code.GPR)
		x.v.emit(code.Inst{Op: code.Mov, W: 4, Dst: g, Imm: 0xaaaa})
		x.v.emit(code.Inst{Op: code.KMov, W: 2, Dst: k, A: g})
		x.v.emit(code.Inst{Op: code.VMovDQA32, W: x.v.w, Dst: even, A: odd, KM: k})
		return even
	}
	return x.v.op2Imm(code.VPBlendD, even, odd, 0xaa)
}

// nibbles looks up both nibbles of each byte: low[low nibble] and high[high nibble].
func (x integers) nibbles(r code.R, low, high func(n int) byte, big bool) (lo, hi code.R) {
	lut := func(table func(n int) byte) code.R {
		var t []byte
		for n := range 16 {
			t = append(t, table(n))
		}
		d := x.v.reg(code.Vec)
		x.v.emit(code.Inst{Op: code.VMovUPS, W: x.v.w, Dst: d, Mem: x.v.repeated(t)})
		return d
	}
	m := uint64(0x0f0f0f0f0f0f0f0f)
	if !big {
		m &= 1<<32 - 1
	}
	l := x.v.and(r, konst(m), big)
	h := x.v.and(x.v.shift(code.VPSrlQ, r, 4), konst(m), big)
	return x.v.op2(code.VPShufB, lut(low), l), x.v.op2(code.VPShufB, lut(high), h)
}

// popcount counts ones in lanes of 32 or 64 bits.
func (x integers) popcount(r code.R, big bool) code.R {
	if x.v.extras() && !x.v.avx512() { // which has it in some processors only
		return x.v.op1(by(big, code.VPopCntD, code.VPopCntQ), r)
	}
	ones := func(n int) byte { return byte(n&1 + n>>1&1 + n>>2&1 + n>>3) }
	lo, hi := x.nibbles(r, ones, ones, big)
	bytes := x.v.op2(code.VPAddB, lo, hi)
	if big {
		zero := x.v.load(0, true)
		return x.v.op2(code.VPSADBW, bytes, zero)
	}
	words := x.v.op2Mem(code.VPMAddUBS, bytes, x.v.repeated([]byte{1}))
	return x.v.op2Mem(code.VPMAddWD, words, x.v.repeated([]byte{1, 0}))
}

// reverse reverses the bits of lanes of 32 or 64 bits.
func (x integers) reverse(r code.R, big bool) code.R {
	turn := func(n int) byte { return byte(n&1<<3 | n&2<<1 | n&4>>1 | n&8>>3) }
	up := func(n int) byte { return turn(n) << 4 }
	lo, hi := x.nibbles(r, up, turn, big)
	bytes := x.v.or(lo, inReg(hi), big)
	size := 4
	if big {
		size = 8
	}
	var order []byte
	for n := range 16 {
		order = append(order, byte(n/size*size+size-1-n%size))
	}
	return x.v.op2Mem(code.VPShufB, bytes, x.v.repeated(order))
}

// clz32 counts leading zeros of 32-bit lanes.
func (x integers) clz32(r code.R) code.R {
	if x.v.extras() {
		return x.v.op1(code.VPLZCntD, r)
	}
	// The exponent of the number as a float. Without the bit below each one, rounding cannot carry past the
	// highest.
	r = x.v.andNot(x.v.shift(code.VPSrlD, r, 1), inReg(r), false)
	e := x.v.shift(code.VPSrlD, x.v.op1(code.VCvtDQ2PS, r), 23) // negative numbers: sign and exponent, more than 158
	c := x.v.op2(code.VPSubD, x.v.load(127+31, false), e)
	c = x.v.opX(code.VPMinSD, c, konst(32), false)
	return x.v.opX(code.VPMaxSD, c, konst(0), false)
}

// clz64 counts leading zeros of 64-bit lanes.
func (x integers) clz64(r code.R) code.R {
	if x.v.avx512() {
		return x.v.op1(code.VPLZCntQ, r)
	}
	c := x.clz32(r)
	hi := x.v.shift(code.VPSrlQ, c, 32)
	lo := x.v.and(c, konst(1<<32-1), true)
	none := x.v.opX(code.VPCmpEqQ, hi, konst(32), true)
	return x.v.op2(code.VPAddQ, hi, x.v.and(lo, inReg(none), true))
}

// ctz counts trailing zeros of lanes of 32 or 64 bits.
func (x integers) ctz(r code.R, big bool) code.R {
	add, sub := by(big, code.VPAddD, code.VPAddQ), by(big, code.VPSubD, code.VPSubQ)
	minus1, width, clz := uint64(1<<32-1), uint64(32), x.clz32
	if big {
		minus1, width, clz = 1<<64-1, 64, x.clz64
	}
	below := x.v.andNot(r, inReg(x.v.opX(add, r, konst(minus1), big)), big) // ones where the zeros are
	return x.v.op2(sub, x.v.load(width, big), clz(below))
}
