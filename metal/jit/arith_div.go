package jit

import (
	"math"

	"github.com/mlxlua/mlxlua/metal/jit/amd64"
	"github.com/mlxlua/mlxlua/metal/jit/lanes"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// Division of integers: x / 0 is 0, x % 0 is x, MIN / -1 is MIN. Remainders are a - (a/b)*b, which then gives what
// kir wants.

// div32 computes Div and Rem of integers of up to 32 bits.
func (x lane) div32(op kir.Op, t kir.Type, a, b operand) amd64.R {
	p := x.in(a, false)
	if b.k {
		if r, ok := x.divPow2(op, t, p, b.bits, false); ok {
			return r
		}
	}
	var q amd64.R
	switch {
	case t.Bits() < 32:
		q = x.divNarrow(t, p, b)
	default:
		q = x.divDouble(t, p, b)
	}
	if op == kir.Div {
		return x.canon(t, q)
	}
	return x.canon(t, x.op2(amd64.VPSubD, p, x.opX(amd64.VPMulLD, q, b, false)))
}

// divPow2 divides by constants that are powers of two, and by 0.
func (x lane) divPow2(op kir.Op, t kir.Type, p amd64.R, c uint64, big bool) (r amd64.R, ok bool) {
	if c == 0 {
		if op == kir.Rem {
			return x.move(p), true
		}
		return x.load(0, big), true
	}
	limit := uint64(1) << (t.Bits() - 1) // as a signed number this one is negative
	if !isPow2(c) || t.IsSigned() && c >= limit {
		return 0, false
	}
	n := log2u(c)
	srl, sll := by(big, amd64.VPSrlD, amd64.VPSrlQ), by(big, amd64.VPSllD, amd64.VPSllQ)
	if !t.IsSigned() {
		if op == kir.Rem {
			return x.and(p, konst(c-1), big), true
		}
		return x.shift(srl, p, n), true
	}
	if n == 0 {
		if op == kir.Rem {
			return x.load(0, big), true
		}
		return x.move(p), true
	}
	width := 32
	sign := func(v amd64.R) amd64.R { return x.shift(amd64.VPSraD, v, 31) }
	sra := func(v amd64.R) amd64.R { return x.shift(amd64.VPSraD, v, n) }
	if big {
		width = 64
		sign = x.negative64
		sra = func(v amd64.R) amd64.R { return x.sra64(v, n) }
	}
	// Negative numbers get c-1 added, so that the shift truncates.
	q := sra(x.op2(by(big, amd64.VPAddD, amd64.VPAddQ), p, x.shift(srl, sign(p), width-n)))
	if op == kir.Div {
		return q, true
	}
	return x.op2(by(big, amd64.VPSubD, amd64.VPSubQ), p, x.shift(sll, q, n)), true
}

// whereNonZero calls f to compute quotients and clears those whose divisor is 0. f's mask is one to compute under,
// or 0.
func (x lane) whereNonZero(b operand, f func(k amd64.R) amd64.R) amd64.R {
	if b.k { // constants that come here are not 0
		return f(0)
	}
	if x.level == amd64.AVX512 {
		k := x.reg(amd64.Mask)
		x.emit(amd64.Inst{Op: amd64.VPTestMD, W: x.w, Dst: k, A: b.r, B: b.r})
		return f(k)
	}
	zero := x.opX(amd64.VPCmpEqD, b.r, konst(0), false)
	return x.op2(amd64.VPAndN, zero, f(0))
}

// divNarrow divides integers of 8 or 16 bits: the quotient of floats is never so near to the next integer that
// rounding reaches it.
func (x lane) divNarrow(t kir.Type, p amd64.R, b operand) amd64.R {
	f := x.op1(amd64.VCvtDQ2PS, p)
	if b.k {
		f = x.opX(amd64.VDivPS, f, konst(floatLane(float64(int32(b.bits)), false)), false)
	} else {
		f = x.op2(amd64.VDivPS, f, x.op1(amd64.VCvtDQ2PS, b.r))
	}
	return x.whereNonZero(b, func(k amd64.R) amd64.R {
		d := x.reg(amd64.Vec)
		x.emit(amd64.Inst{Op: amd64.VCvtTPS2DQ, W: x.w, Dst: d, A: f, KM: k, Zero: k != 0})
		return d
	})
}

// divDouble divides 32-bit integers as float64, whose quotient too is never rounded up to an integer.
func (x lane) divDouble(t kir.Type, p amd64.R, b operand) amd64.R {
	as := x.wider(p, func(h amd64.R) amd64.R { return x.intToDouble(t, h) })
	var bs [2]amd64.R
	if !b.k {
		bs = x.wider(b.r, func(h amd64.R) amd64.R { return x.intToDouble(t, h) })
	}
	var q [2]amd64.R
	for h := range q {
		switch {
		case as[h] == 0:
		case b.k:
			q[h] = x.opX(amd64.VMulPD, as[h], konst(math.Float64bits(reciprocal(t, b.bits))), true)
		default:
			q[h] = x.op2(amd64.VDivPD, as[h], bs[h])
		}
	}
	return x.nonZeroQuotient(b, x.narrower(q, func(h amd64.R) amd64.R { return x.doubleToInt(t, h) }))
}

// nonZeroQuotient clears the quotients whose divisor is 0.
func (x lane) nonZeroQuotient(b operand, q amd64.R) amd64.R {
	return x.whereNonZero(b, func(k amd64.R) amd64.R {
		if k == 0 {
			return q
		}
		z := x.reg(amd64.Vec)
		x.emit(amd64.Inst{Op: amd64.VMovDQA32, W: x.w, Dst: z, A: q, KM: k, Zero: true})
		return z
	})
}

// reciprocal returns a float64 r such that trunc(a*r) is a/c for every 32-bit a: 1/c, rounded away from zero.
func reciprocal(t kir.Type, c uint64) float64 {
	f := float64(uint32(c))
	if t.IsSigned() {
		f = float64(int32(c))
	}
	r := 1 / f
	if math.FMA(r, f, -1) < 0 {
		r = math.Float64frombits(math.Float64bits(r) + 1)
	}
	return r
}

// byUniform reports whether an operation divides lanes by one number that is not a constant.
func (s *selector) byUniform(i *kir.Instr) bool {
	if i.Op != kir.Div && i.Op != kir.Rem || !i.Type.IsInt() || i.Type.Size() != 4 {
		return false
	}
	b := i.Args[1]
	return b.Op != kir.Const && s.info.Patterns[b.ID].Kind == lanes.Uniform
}

// longDivision reports whether an operation divides lanes of 64-bit integers by what is not constant.
func (s *selector) longDivision(i *kir.Instr) bool {
	return (i.Op == kir.Div || i.Op == kir.Rem) && i.Type.IsInt() && wide(i.Type) && i.Args[1].Op != kir.Const
}

// divideLong divides 64-bit integers. No vector instruction does that, but most numbers have no more than 32 bits: if
// all have, they are divided as such.
func (s *selector) divideLong(i *kir.Instr) val {
	a, b := s.laneVal(i.Args[0]), s.laneVal(i.Args[1])
	if s.info.Bits[i.Args[0].ID] <= 32 && s.info.Bits[i.Args[1].ID] <= 32 {
		return s.divideShort(i, a, b)
	}
	slow, done := s.label(), s.label()
	all := amd64.R(0)
	for _, v := range [2]val{a, b} {
		for _, r := range v.vec {
			switch {
			case r == 0:
			case all == 0:
				all = r
			default:
				all = s.vop(s.pick(amd64.VPOrQ, amd64.VPOr), all, r)
			}
		}
	}
	high := s.vopI(amd64.VPSrlQ, all, 32)
	if s.level == amd64.AVX512 {
		k := s.reg(amd64.Mask)
		s.emit(amd64.Inst{Op: amd64.VPTestMD, W: s.w, Dst: k, A: high, B: high})
		high = k
	}
	s.anyBad([]amd64.R{high}, slow)
	v := s.divideShort(i, a, b)
	s.f.ColdBegin()
	s.bind(slow)
	s.moveVal(v, s.onParts(i.Op, i.Type, i.Type, a, b))
	s.jump(done)
	s.f.ColdEnd()
	s.bind(done)
	return v
}

// divideShort divides 64-bit integers of no more than 32 bits as unsigned ones.
func (s *selector) divideShort(i *kir.Instr, a, b val) val {
	short := func(v val) val {
		if !v.splat {
			return s.onParts(kir.Convert, kir.U32, kir.U64, v)
		}
		u := s.pureConst(kir.Convert, kir.U32, kir.U64, []unit{{r: [2]amd64.R{v.vec[0]}}}, nil, true)
		return val{typ: kir.U32, splat: true, vec: [maxRegs]amd64.R{u.r[0]}}
	}
	a, b = short(a), short(b)
	if b.splat {
		a = s.divideByUniform(i, kir.U32, a, b)
	} else {
		a = s.onParts(i.Op, kir.U32, kir.U32, a, b)
	}
	v := s.onParts(kir.Convert, kir.U64, kir.U32, a)
	v.typ = i.Type
	return v
}

// divideByUniform divides 32-bit integers of a type by one number: they are multiplied by its reciprocal.
func (s *selector) divideByUniform(i *kir.Instr, t kir.Type, a, all val) val {
	b := inReg(all.vec[0])
	r := s.reciprocals(t, b.r)
	x := lane{selector: s, w: s.w}
	v := val{typ: t}
	for p := range s.parts {
		n := a.unitOf(p).r[0]
		q := x.wider(n, func(h amd64.R) amd64.R { return x.op2(amd64.VMulPD, x.intToDouble(t, h), r) })
		d := x.nonZeroQuotient(b, x.narrower(q, func(h amd64.R) amd64.R { return x.doubleToInt(t, h) }))
		if i.Op == kir.Rem {
			d = x.op2(amd64.VPSubD, n, x.op2(amd64.VPMulLD, d, b.r))
		}
		v.setUnit(p, unit{r: [2]amd64.R{d}})
	}
	return v
}

// reciprocals is the reciprocal, as the function of that name makes it, of the number in all lanes of b, in all lanes.
func (s *selector) reciprocals(t kir.Type, b amd64.R) amd64.R {
	x := lane{selector: s, w: 16, splat: true}
	f, one := x.intToDouble(t, b), x.load(math.Float64bits(1), true)
	r := x.op2(amd64.VDivPD, one, f)
	e := x.move(r)
	x.emit(amd64.Inst{Op: amd64.VFMSub213PD, W: x.w, Dst: e, A: f, B: one})
	r = x.op2(amd64.VPSubQ, r, x.negative64(e))
	x.w = s.w
	return x.first(r, true)
}

// intToDouble converts the lower half of 32-bit integer lanes.
func (x lane) intToDouble(t kir.Type, r amd64.R) amd64.R {
	switch {
	case t.IsSigned() || t.Bits() < 32:
		return x.op1(amd64.VCvtDQ2PD, r)
	case x.level == amd64.AVX512:
		return x.op1(amd64.VCvtUDQ2PD, r)
	}
	d := x.op1(amd64.VCvtDQ2PD, x.xor(r, konst(signF32), false))
	return x.opX(amd64.VAddPD, d, konst(math.Float64bits(1<<31)), true)
}

// doubleToInt truncates float64 lanes that are in range (else anything) to 32-bit ones in the lower half.
func (x lane) doubleToInt(t kir.Type, r amd64.R) amd64.R {
	switch {
	case t.IsSigned() || t.Bits() < 32:
		return x.op1(amd64.VCvtTPD2DQ, r)
	case x.level == amd64.AVX512:
		return x.op1(amd64.VCvtTPD2UDQ, r)
	}
	// Truncated first, so that taking 2^31 away is exact and moves no fraction across zero.
	r = x.opX(amd64.VSubPD, x.toIntegral(r, roundZero, true), konst(math.Float64bits(1<<31)), true)
	return x.xor(x.op1(amd64.VCvtTPD2DQ, r), konst(signF32), false)
}

// div64 computes Div and Rem of 64-bit integers.
func (x lane) div64(op kir.Op, t kir.Type, p amd64.R, b operand) amd64.R {
	if b.k {
		if r, ok := x.divPow2(op, t, p, b.bits, true); ok {
			return r
		}
	}
	return x.perLane(8, p, x.in(b, true), func(a, b, result amd64.Mem) {
		x.emit(amd64.Inst{Op: amd64.Mov, W: 8, Dst: amd64.RAX, Mem: a})
		x.emit(amd64.Inst{Op: amd64.Mov, W: 8, Dst: amd64.RCX, Mem: b})
		x.divide(op, t)
		x.emit(amd64.Inst{Op: amd64.Mov, W: 8, Mem: result, A: amd64.RAX})
	})
}

// divide computes RAX = RAX / RCX or RAX % RCX; it changes RCX and RDX. Types of up to 32 bits have 32 valid bits.
func (s *selector) divide(op kir.Op, t kir.Type) {
	w := uint8(4)
	if wide(t) {
		w = 8
	}
	end, zero := s.label(), s.label()
	s.emit(amd64.Inst{Op: amd64.Test, W: w, A: amd64.RCX, B: amd64.RCX})
	s.jcc(amd64.CondE, zero)
	if t.IsSigned() {
		minus1 := s.label()
		s.emit(amd64.Inst{Op: amd64.Cmp, W: w, A: amd64.RCX, Imm: -1})
		s.jcc(amd64.CondE, minus1)
		s.emit(amd64.Inst{Op: amd64.Cdq, W: w})
		s.emit(amd64.Inst{Op: amd64.IDiv, W: w, A: amd64.RCX})
		s.remainder(op, end)
		s.bind(minus1) // apart, as MIN / -1 traps
		if op == kir.Div {
			s.emit(amd64.Inst{Op: amd64.Neg, W: w, Dst: amd64.RAX})
		} else {
			s.emit(amd64.Inst{Op: amd64.Mov, W: 4, Dst: amd64.RAX, Imm: 0})
		}
		s.jump(end)
	} else {
		s.emit(amd64.Inst{Op: amd64.Mov, W: 4, Dst: amd64.RDX, Imm: 0})
		s.emit(amd64.Inst{Op: amd64.Div, W: w, A: amd64.RCX})
		s.remainder(op, end)
	}
	s.bind(zero)
	if op == kir.Div {
		s.emit(amd64.Inst{Op: amd64.Mov, W: 4, Dst: amd64.RAX, Imm: 0})
	}
	s.bind(end)
}

// remainder takes what is wanted of a division and leaves for end.
func (s *selector) remainder(op kir.Op, end amd64.Label) {
	if op == kir.Rem {
		s.emit(amd64.Inst{Op: amd64.Mov, W: 8, Dst: amd64.RAX, A: amd64.RDX})
	}
	s.jump(end)
}
