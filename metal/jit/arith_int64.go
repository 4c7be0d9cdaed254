package jit

import (
	"github.com/mlxlua/mlxlua/metal/jit/amd64"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// int64Op computes an operation on one register of 64-bit integers.
func (x lane) int64Op(op kir.Op, t kir.Type, a [3]operand) amd64.R {
	switch op {
	case kir.Add:
		return x.op2x(amd64.VPAddQ, a[0], a[1], true, true)
	case kir.Sub:
		return x.op2x(amd64.VPSubQ, a[0], a[1], true, false)
	case kir.Neg:
		return x.op2x(amd64.VPSubQ, konst(0), inReg(x.in(a[0], true)), true, false)
	case kir.Mul:
		return x.mul64(a[0], a[1])
	case kir.Min, kir.Max:
		return x.minMax64(op, t, a[0], a[1])
	case kir.And:
		return x.op2x(x.logic(amd64.VPAnd, 0, amd64.VPAndQ, true), a[0], a[1], true, true)
	case kir.Or:
		return x.op2x(x.logic(amd64.VPOr, 0, amd64.VPOrQ, true), a[0], a[1], true, true)
	case kir.Xor:
		return x.op2x(x.logic(amd64.VPXor, 0, amd64.VPXorQ, true), a[0], a[1], true, true)
	case kir.Not:
		return x.xor(x.in(a[0], true), konst(1<<64-1), true)
	case kir.Shl, kir.Shr:
		return x.shift64(op, t, x.in(a[0], true), a[1])
	case kir.Div, kir.Rem:
		return x.div64(op, t, x.in(a[0], true), a[1])
	case kir.MulHi:
		return x.mulHi64(t, x.in(a[0], true), x.in(a[1], true))
	}
	r := x.in(a[0], true)
	switch op {
	case kir.Abs:
		if !t.IsSigned() {
			return x.move(r)
		}
		if x.level == amd64.AVX512 {
			return x.op1(amd64.VPAbsQ, r)
		}
		sign := x.negative64(r)
		return x.op2(amd64.VPSubQ, x.op2(amd64.VPXor, r, sign), sign)
	case kir.Popcount:
		return x.popcount(r, true)
	case kir.Clz:
		return x.clz64(r)
	case kir.Ctz:
		return x.ctz(r, true)
	case kir.BitReverse:
		return x.reverse(r, true)
	}
	x.unsupported(&kir.Instr{Op: op}, "not for integers")
	return r
}

// negative64 returns lanes of all ones where r is negative.
func (x lane) negative64(r amd64.R) amd64.R {
	if x.level == amd64.AVX512 {
		return x.shift(amd64.VPSraQ, r, 63)
	}
	return x.op2(amd64.VPCmpGtQ, x.load(0, true), r)
}

func (x lane) mul64(a, b operand) amd64.R {
	if a.k && !b.k {
		a, b = b, a
	}
	if b.k && !a.k && isPow2(b.bits) {
		return x.shift(amd64.VPSllQ, a.r, log2u(b.bits))
	}
	if x.level == amd64.AVX512 {
		return x.op2x(amd64.VPMulLQ, a, b, true, true)
	}
	p, q := x.in(a, true), x.in(b, true)
	low := x.op2(amd64.VPMulUDQ, p, q)
	cross := x.op2(amd64.VPAddQ, x.op2(amd64.VPMulUDQ, x.shift(amd64.VPSrlQ, p, 32), q),
		x.op2(amd64.VPMulUDQ, p, x.shift(amd64.VPSrlQ, q, 32)))
	return x.op2(amd64.VPAddQ, low, x.shift(amd64.VPSllQ, cross, 32))
}

// shortProduct reports whether a product of 64-bit integers is that of their lower halves, and which instruction does
// it.
func (s *selector) shortProduct(i *kir.Instr) (op amd64.Opcode, ok bool) {
	if i.Op != kir.Mul || !i.Type.IsInt() || !wide(i.Type) {
		return 0, false
	}
	unsigned, signed := true, true
	for _, a := range i.Args {
		if a.Op == kir.Const && isPow2(a.Imm) {
			return 0, false // a shift
		}
		bits := s.info.Bits[a.ID]
		unsigned = unsigned && bits <= 32
		extended := a.Op == kir.Convert && a.Args[0].Type.IsInt() && a.Args[0].Type.IsSigned() &&
			a.Args[0].Type.Size() <= 4
		signed = signed && (bits <= 31 || extended)
	}
	if signed {
		return amd64.VPMulDQ, true
	}
	return amd64.VPMulUDQ, unsigned
}

// multiplyShort computes a product of lower halves.
func (s *selector) multiplyShort(i *kir.Instr, op amd64.Opcode) val {
	a, b := s.laneVal(i.Args[0]), s.laneVal(i.Args[1])
	v := val{typ: i.Type}
	for p := range s.parts {
		x, y, u := a.unitOf(p), b.unitOf(p), unit{}
		for h := range u.r {
			u.r[h] = s.vop(op, x.r[h], y.r[h])
		}
		v.setUnit(p, u)
	}
	return v
}

func log2u(n uint64) int {
	k := 0
	for n > 1 {
		n, k = n>>1, k+1
	}
	return k
}

func (x lane) minMax64(op kir.Op, t kir.Type, a, b operand) amd64.R {
	if x.level == amd64.AVX512 {
		return x.op2x(minMaxInt(op, t, true), a, b, true, true)
	}
	p, q := x.in(a, true), x.in(b, true)
	gt := x.compareInts(kir.Gt, t, p, inReg(q))
	if op == kir.Min {
		return x.blend(p, q, gt, true)
	}
	return x.blend(q, p, gt, true)
}

// shift64 computes Shl and Shr; counts are taken modulo 64.
func (x lane) shift64(op kir.Op, t kir.Type, r amd64.R, b operand) amd64.R {
	arith := op == kir.Shr && t.IsSigned()
	imm, variable := amd64.VPSllQ, amd64.VPSllVQ
	switch {
	case arith && x.level == amd64.AVX512:
		imm, variable = amd64.VPSraQ, amd64.VPSraVQ
	case op == kir.Shr:
		imm, variable = amd64.VPSrlQ, amd64.VPSrlVQ
	}
	by := func(v amd64.R) amd64.R { return x.shift(imm, v, int(b.bits&63)) }
	if !b.k {
		n := x.and(b.r, konst(63), true)
		by = func(v amd64.R) amd64.R { return x.op2(variable, v, n) }
	}
	d := by(r)
	if !arith || x.level == amd64.AVX512 {
		return d
	}
	sign := by(x.load(signF64, true)) // where the sign has gone
	return x.op2(amd64.VPSubQ, x.op2(amd64.VPXor, d, sign), sign)
}

// sra64 shifts right by a constant, keeping the sign.
func (x lane) sra64(r amd64.R, n int) amd64.R {
	return x.shift64(kir.Shr, kir.I64, r, konst(uint64(n)))
}

// mulHi64 computes the high half of 128-bit products.
func (x lane) mulHi64(t kir.Type, a, b amd64.R) amd64.R {
	mul := func(p, q amd64.R) amd64.R { return x.op2(amd64.VPMulUDQ, p, q) }
	add := func(p, q amd64.R) amd64.R { return x.op2(amd64.VPAddQ, p, q) }
	high := func(p amd64.R) amd64.R { return x.shift(amd64.VPSrlQ, p, 32) }
	low := func(p amd64.R) amd64.R { return x.and(p, konst(1<<32-1), true) }
	ah, bh := high(a), high(b)
	// No sum overflows: (2^32-1)^2 + 2 (2^32-1) < 2^64.
	m := add(mul(ah, b), high(mul(a, b)))
	n := add(mul(a, bh), low(m))
	d := add(mul(ah, bh), add(high(m), high(n)))
	if !t.IsSigned() {
		return d
	}
	// From unsigned to signed: what the sign bits added goes.
	d = x.op2(amd64.VPSubQ, d, x.and(x.negative64(a), inReg(b), true))
	return x.op2(amd64.VPSubQ, d, x.and(x.negative64(b), inReg(a), true))
}
