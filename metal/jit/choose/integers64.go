package choose

import (
	"github.com/mlxlua/mlxlua/metal/jit/code"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// op64 computes an operation on one register of 64-bit integers.
func (x integers) op64(op kir.Op, t kir.Type, a [3]operand) code.R {
	switch op {
	case kir.Add:
		return x.v.op2X(code.VPAddQ, a[0], a[1], true, true)
	case kir.Sub:
		return x.v.op2X(code.VPSubQ, a[0], a[1], true, false)
	case kir.Neg:
		return x.v.op2X(code.VPSubQ, konst(0), inReg(x.v.in(a[0], true)), true, false)
	case kir.Mul:
		return x.mul64(a[0], a[1])
	case kir.Min, kir.Max:
		return x.minMax64(op, t, a[0], a[1])
	case kir.And:
		return x.v.op2X(x.v.logic(code.VPAnd, 0, code.VPAndQ, true), a[0], a[1], true, true)
	case kir.Or:
		return x.v.op2X(x.v.logic(code.VPOr, 0, code.VPOrQ, true), a[0], a[1], true, true)
	case kir.Xor:
		return x.v.op2X(x.v.logic(code.VPXor, 0, code.VPXorQ, true), a[0], a[1], true, true)
	case kir.Not:
		return x.v.xor(x.v.in(a[0], true), konst(1<<64-1), true)
	case kir.Shl, kir.Shr:
		return x.shift64(op, t, x.v.in(a[0], true), a[1])
	case kir.Div, kir.Rem:
		return x.v.divisions().div64(op, t, x.v.in(a[0], true), a[1])
	case kir.MulHi:
		return x.mulHi64(t, x.v.in(a[0], true), x.v.in(a[1], true))
	}
	r := x.v.in(a[0], true)
	switch op {
	case kir.Abs:
		if !t.IsSigned() {
			return x.v.move(r)
		}
		if x.v.extras() {
			return x.v.op1(code.VPAbsQ, r)
		}
		sign := x.negative64(r)
		return x.v.op2(code.VPSubQ, x.v.op2(code.VPXor, r, sign), sign)
	case kir.Popcount:
		return x.popcount(r, true)
	case kir.Clz:
		return x.clz64(r)
	case kir.Ctz:
		return x.ctz(r, true)
	case kir.BitReverse:
		return x.reverse(r, true)
	}
	x.v.e.unsupported(&kir.Instr{Op: op}, "not for integers")
	return r
}

// negative64 returns lanes of all ones where r is negative.
func (x integers) negative64(r code.R) code.R {
	if x.v.extras() {
		return x.v.shift(code.VPSraQ, r, 63)
	}
	return x.v.op2(code.VPCmpGtQ, x.v.load(0, true), r)
}

// mul64 multiplies 64-bit lanes.
func (x integers) mul64(a, b operand) code.R {
	if a.k && !b.k {
		a, b = b, a
	}
	if b.k && !a.k && isPow2(b.bits) {
		return x.v.shift(code.VPSllQ, a.r, log2(b.bits))
	}
	if x.v.avx512() {
		return x.v.op2X(code.VPMulLQ, a, b, true, true)
	}
	p, q := x.v.in(a, true), x.v.in(b, true)
	low := x.v.op2(code.VPMulUDQ, p, q)
	cross := x.v.op2(code.VPAddQ, x.v.op2(code.VPMulUDQ, x.v.shift(code.VPSrlQ, p, 32), q),
		x.v.op2(code.VPMulUDQ, p, x.v.shift(code.VPSrlQ, q, 32)))
	return x.v.op2(code.VPAddQ, low, x.v.shift(code.VPSllQ, cross, 32))
}

// minMax64 computes Min and Max.
func (x integers) minMax64(op kir.Op, t kir.Type, a, b operand) code.R {
	if x.v.avx512() {
		return x.v.op2X(minMaxInt(op, t, true), a, b, true, true)
	}
	p, q := x.v.in(a, true), x.v.in(b, true)
	gt := x.v.comparisons().ints(kir.Gt, t, p, inReg(q))
	if op == kir.Min {
		return x.v.blend(p, q, gt, true)
	}
	return x.v.blend(q, p, gt, true)
}

// shift64 computes Shl and Shr; counts are taken modulo 64.
func (x integers) shift64(op kir.Op, t kir.Type, r code.R, b operand) code.R {
	arith := op == kir.Shr && t.IsSigned()
	imm, variable := code.VPSllQ, code.VPSllVQ
	switch {
	case arith && x.v.extras():
		imm, variable = code.VPSraQ, code.VPSraVQ
	case op == kir.Shr:
		imm, variable = code.VPSrlQ, code.VPSrlVQ
	}
	by := func(v code.R) code.R { return x.v.shift(imm, v, int(b.bits&63)) }
	if !b.k {
		n := x.v.and(b.r, konst(63), true)
		by = func(v code.R) code.R { return x.v.op2(variable, v, n) }
	}
	d := by(r)
	if !arith || x.v.extras() {
		return d
	}
	sign := by(x.v.load(signF64, true)) // where the sign has gone
	return x.v.op2(code.VPSubQ, x.v.op2(code.VPXor, d, sign), sign)
}

// sra64 shifts right by a constant, keeping the sign.
func (x integers) sra64(r code.R, n int) code.R {
	return x.shift64(kir.Shr, kir.I64, r, konst(uint64(n)))
}

// mulHi64 computes the high half of 128-bit products.
func (x integers) mulHi64(t kir.Type, a, b code.R) code.R {
	mul := func(p, q code.R) code.R { return x.v.op2(code.VPMulUDQ, p, q) }
	add := func(p, q code.R) code.R { return x.v.op2(code.VPAddQ, p, q) }
	high := func(p code.R) code.R { return x.v.shift(code.VPSrlQ, p, 32) }
	low := func(p code.R) code.R { return x.v.and(p, konst(1<<32-1), true) }
	ah, bh := high(a), high(b)
	// No sum overflows: (2^32-1)^2 + 2 (2^32-1) < 2^64.
	m := add(mul(ah, b), high(mul(a, b)))
	n := add(mul(a, bh), low(m))
	d := add(mul(ah, bh), add(high(m), high(n)))
	if !t.IsSigned() {
		return d
	}
	// From unsigned to signed: what the sign bits added goes.
	d = x.v.op2(code.VPSubQ, d, x.v.and(x.negative64(a), inReg(b), true))
	return x.v.op2(code.VPSubQ, d, x.v.and(x.negative64(b), inReg(a), true))
}
