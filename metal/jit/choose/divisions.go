package choose

import (
	"math"

	"github.com/mlxlua/mlxlua/metal/jit/code"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// divisions divides lanes of integers: x / 0 is 0, x % 0 is x, MIN / -1 is MIN. Remainders are a - (a/b)*b, which then
// gives what kir wants.
type divisions struct{ v vector }

// div32 computes Div and Rem of integers of up to 32 bits.
func (x divisions) div32(op kir.Op, t kir.Type, a, b operand) code.R {
	p := x.v.in(a, false)
	if b.k {
		if r, ok := x.pow2(op, t, p, b.bits, false); ok {
			return r
		}
	}
	var q code.R
	switch {
	case t.Bits() < 32:
		q = x.narrow(t, p, b)
	default:
		q = x.byDoubles(t, p, b)
	}
	if op == kir.Div {
		return x.v.integers().canon(t, q)
	}
	return x.v.integers().canon(t, x.v.op2(code.VPSubD, p, x.v.opX(code.VPMulLD, q, b, false)))
}

// pow2 divides by constants that are powers of two, and by 0.
func (x divisions) pow2(op kir.Op, t kir.Type, p code.R, c uint64, big bool) (r code.R, ok bool) {
	if c == 0 {
		if op == kir.Rem {
			return x.v.move(p), true
		}
		return x.v.load(0, big), true
	}
	limit := uint64(1) << (t.Bits() - 1) // as a signed number this one is negative
	if !isPow2(c) || t.IsSigned() && c >= limit {
		return 0, false
	}
	n := log2(c)
	srl, sll := by(big, code.VPSrlD, code.VPSrlQ), by(big, code.VPSllD, code.VPSllQ)
	if !t.IsSigned() {
		if op == kir.Rem {
			return x.v.and(p, konst(c-1), big), true
		}
		return x.v.shift(srl, p, n), true
	}
	if n == 0 {
		if op == kir.Rem {
			return x.v.load(0, big), true
		}
		return x.v.move(p), true
	}
	width := 32
	sign := func(v code.R) code.R { return x.v.shift(code.VPSraD, v, 31) }
	sra := func(v code.R) code.R { return x.v.shift(code.VPSraD, v, n) }
	if big {
		width = 64
		sign = x.v.integers().negative64
		sra = func(v code.R) code.R { return x.v.integers().sra64(v, n) }
	}
	// Negative numbers get c-1 added, so that the shift truncates.
	q := sra(x.v.op2(by(big, code.VPAddD, code.VPAddQ), p, x.v.shift(srl, sign(p), width-n)))
	if op == kir.Div {
		return q, true
	}
	return x.v.op2(by(big, code.VPSubD, code.VPSubQ), p, x.v.shift(sll, q, n)), true
}

// whereNonZero calls f to compute quotients and clears those whose divisor is 0. f's mask is one to compute under,
// or 0.
func (x divisions) whereNonZero(b operand, f func(k code.R) code.R) code.R {
	if b.k { // constants that come here are not 0
		return f(0)
	}
	if x.v.avx512() {
		k := x.v.reg(code.Mask)
		x.v.emit(code.Inst{Op: code.VPTestMD, W: x.v.w, Dst: k, A: b.r, B: b.r})
		return f(k)
	}
	zero := x.v.opX(code.VPCmpEqD, b.r, konst(0), false)
	return x.v.op2(code.VPAndN, zero, f(0))
}

// narrow divides integers of 8 or 16 bits: the quotient of floats is never so near to the next integer that
// rounding reaches it.
func (x divisions) narrow(t kir.Type, p code.R, b operand) code.R {
	f := x.v.op1(code.VCvtDQ2PS, p)
	if b.k {
		f = x.v.opX(code.VDivPS, f, konst(floatLane(float64(int32(b.bits)), false)), false)
	} else {
		f = x.v.op2(code.VDivPS, f, x.v.op1(code.VCvtDQ2PS, b.r))
	}
	return x.whereNonZero(b, func(k code.R) code.R {
		d := x.v.reg(code.Vec)
		x.v.emit(code.Inst{Op: code.VCvtTPS2DQ, W: x.v.w, Dst: d, A: f, KM: k, Zero: k != 0})
		return d
	})
}

// byDoubles divides 32-bit integers as float64, whose quotient too is never rounded up to an integer.
func (x divisions) byDoubles(t kir.Type, p code.R, b operand) code.R {
	as := x.v.wider(p, func(h code.R) code.R { return x.intToDouble(t, h) })
	var bs [2]code.R
	if !b.k {
		bs = x.v.wider(b.r, func(h code.R) code.R { return x.intToDouble(t, h) })
	}
	var q [2]code.R
	for h := range q {
		switch {
		case as[h] == 0:
		case b.k:
			q[h] = x.v.opX(code.VMulPD, as[h], konst(math.Float64bits(reciprocal(t, b.bits))), true)
		default:
			q[h] = x.v.op2(code.VDivPD, as[h], bs[h])
		}
	}
	return x.nonZeroQuotient(b, x.v.narrower(q, func(h code.R) code.R { return x.doubleToInt(t, h) }))
}

// nonZeroQuotient clears the quotients whose divisor is 0.
func (x divisions) nonZeroQuotient(b operand, q code.R) code.R {
	return x.whereNonZero(b, func(k code.R) code.R {
		if k == 0 {
			return q
		}
		z := x.v.reg(code.Vec)
		x.v.emit(code.Inst{Op: code.VMovDQA32, W: x.v.w, Dst: z, A: q, KM: k, Zero: true})
		return z
	})
}

// intToDouble converts the lower half of 32-bit integer lanes.
func (x divisions) intToDouble(t kir.Type, r code.R) code.R {
	switch {
	case t.IsSigned() || t.Bits() < 32:
		return x.v.op1(code.VCvtDQ2PD, r)
	case x.v.extras():
		return x.v.op1(code.VCvtUDQ2PD, r)
	}
	d := x.v.op1(code.VCvtDQ2PD, x.v.xor(r, konst(signF32), false))
	return x.v.opX(code.VAddPD, d, konst(math.Float64bits(1<<31)), true)
}

// doubleToInt truncates float64 lanes that are in range (else anything) to 32-bit ones in the lower half.
func (x divisions) doubleToInt(t kir.Type, r code.R) code.R {
	switch {
	case t.IsSigned() || t.Bits() < 32:
		return x.v.op1(code.VCvtTPD2DQ, r)
	case x.v.extras():
		return x.v.op1(code.VCvtTPD2UDQ, r)
	}
	// Truncated first, so that taking 2^31 away is exact and moves no fraction across zero.
	r = x.v.opX(code.VSubPD, x.v.floats().toIntegral(r, roundZero, true), konst(math.Float64bits(1<<31)), true)
	return x.v.xor(x.v.op1(code.VCvtTPD2DQ, r), konst(signF32), false)
}

// div64 computes Div and Rem of 64-bit integers.
func (x divisions) div64(op kir.Op, t kir.Type, p code.R, b operand) code.R {
	if b.k {
		if r, ok := x.pow2(op, t, p, b.bits, true); ok {
			return r
		}
	}
	return x.v.perLane(8, p, x.v.in(b, true), func(a, b, result code.Mem) {
		x.v.emit(code.Inst{Op: code.Mov, W: 8, Dst: code.RAX, Mem: a})
		x.v.emit(code.Inst{Op: code.Mov, W: 8, Dst: code.RCX, Mem: b})
		general{x.v.e}.divide(op, t)
		x.v.emit(code.Inst{Op: code.Mov, W: 8, Mem: result, A: code.RAX})
	})
}
