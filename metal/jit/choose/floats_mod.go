package choose

import (
	"math"

	"github.com/mlxlua/mlxlua/metal/jit/code"
)

// What no vector instruction does: lane by lane, through the arena's scratch.

// fmod computes C's fmod. If all quotients are small, a - trunc(a/b)*b is exact and right but for one b, which a
// quotient that was rounded up to an integer has taken too much; else the x87's instruction does it.
func (x floats) fmod(a, b code.R, big bool) code.R {
	limit := math.Float32frombits(0x4a800000) // 2^22
	bound := float64(limit)
	if big {
		bound = 1 << 50
	}
	sign := konst(signBit(big))
	q := x.toIntegral(x.v.op2(by(big, code.VDivPS, code.VDivPD), a, b), roundZero, big)
	size := x.v.and(q, konst(signBit(big)-1), big)
	absB := x.v.and(b, konst(signBit(big)-1), big)
	d := x.v.reg(code.Vec)
	x.v.moveTo(d, a, 0)
	x.v.emit(code.Inst{Op: by(big, code.VFNMAdd231PS, code.VFNMAdd231PD), W: x.v.w, Dst: d, A: q, B: b})
	signA := x.v.and(a, sign, big)
	r := x.v.xor(d, inReg(signA), big) // now the remainder of |a|
	add := by(big, code.VAddPS, code.VAddPD)
	slow, back := x.v.e.label(), x.v.e.label()
	maxLane, inf := floatLane(bound, big), floatLane(math.Inf(1), big)
	if x.v.avx512() {
		cmp := by(big, code.VCmpPSK, code.VCmpPDK)
		k := x.v.cmpK(cmp, r, x.v.load(0, big), cmpLt)
		x.v.masked(add, r, r, absB, k)
		x.v.moveTo(d, x.v.or(x.v.and(r, konst(signBit(big)-1), big), inReg(signA), big), 0)
		small, finite := x.v.reg(code.Mask), x.v.reg(code.Mask)
		x.v.emit(code.Inst{Op: cmp, W: x.v.w, Dst: small, A: size, Mem: x.v.constMem(maxLane, big), Imm: cmpLt})
		x.v.emit(code.Inst{Op: cmp, W: x.v.w, Dst: finite, A: absB, Mem: x.v.constMem(inf, big), Imm: cmpLt, KM: small})
		w := uint8(2)
		if big {
			w = 1
		}
		x.v.emit(code.Inst{Op: code.KOrTest, W: w, A: finite, B: finite})
		x.v.e.jcc(code.CondAE, slow) // no carry: not all ones
	} else {
		cmp := by(big, code.VCmpPS, code.VCmpPD)
		less := x.v.op2Imm(cmp, r, x.v.load(0, big), cmpLt)
		r = x.v.op2(add, r, x.v.and(less, inReg(absB), big))
		x.v.moveTo(d, x.v.or(x.v.and(r, konst(signBit(big)-1), big), inReg(signA), big), 0)
		small, finite := x.v.reg(code.Vec), x.v.reg(code.Vec)
		x.v.emit(code.Inst{Op: cmp, W: x.v.w, Dst: small, A: size, Mem: x.v.constMem(maxLane, big), Imm: cmpLt})
		x.v.emit(code.Inst{Op: cmp, W: x.v.w, Dst: finite, A: absB, Mem: x.v.constMem(inf, big), Imm: cmpLt})
		bits, all := x.v.reg(code.GPR), int64(0xff)
		if big {
			all = 0xf
		}
		x.v.emit(code.Inst{Op: by(big, code.VMovMskPS, code.VMovMskPD), W: x.v.w, Dst: bits,
			A: x.v.and(small, inReg(finite), big)})
		x.v.emit(code.Inst{Op: code.Cmp, W: 4, A: bits, Imm: all})
		x.v.e.jcc(code.CondNE, slow)
	}
	x.v.e.bind(back)
	x.v.e.f.ColdBegin()
	x.v.e.bind(slow)
	x.v.moveTo(d, x.fprem(a, b, big), 0)
	x.v.e.jump(back)
	x.v.e.f.ColdEnd()
	return d
}

// fprem computes fmod with the x87, whose instruction does up to 63 bits of a quotient at a time, or in integers.
func (x floats) fprem(a, b code.R, big bool) code.R {
	size := uint8(4)
	if big {
		size = 8
	}
	if !x.v.e.target.X87 {
		return x.v.perLane(int(size), a, b, func(a, b, result code.Mem) { x.remainder(size, a, b, result) })
	}
	return x.v.perLane(int(size), a, b, func(a, b, result code.Mem) {
		again := x.v.e.label()
		x.v.emit(code.Inst{Op: code.FLd, W: size, Mem: b})
		x.v.emit(code.Inst{Op: code.FLd, W: size, Mem: a})
		x.v.e.bind(again)
		x.v.emit(code.Inst{Op: code.FPRem})
		x.v.emit(code.Inst{Op: code.FNStSW})
		x.v.emit(code.Inst{Op: code.Test, W: 4, A: code.RAX, Imm: 0x400}) // C2: not done yet
		x.v.e.jcc(code.CondNE, again)
		x.v.emit(code.Inst{Op: code.FStP, W: size, Mem: result})
		x.v.emit(code.Inst{Op: code.FPop})
	})
}

// remainder computes fmod of one number of size bytes in integers: a number is fraction * 2^(exponent - bias), with an
// exponent of at least 1. The fraction of a is doubled as often as its exponent is greater, and each time that of b is
// taken away if it is not too large.
func (x floats) remainder(size uint8, a, b, result code.Mem) {
	e, frac, most := x.v.e, int64(23), int64(255)
	if size == 8 {
		frac, most = 52, 2047
	}
	nan, done, over := e.label(), e.label(), e.label()
	sign, r, exp, by, byExp := e.reg(code.GPR), e.reg(code.GPR), e.reg(code.GPR), e.reg(code.GPR), e.reg(code.GPR)
	e.loadReg(size, sign, a)
	// parts takes |number| apart: r is the fraction, exp the exponent.
	parts := func(r, exp code.R, m code.Mem) {
		normal, end := e.label(), e.label()
		e.loadReg(size, r, m)
		e.gopImm(code.Shl, 8, r, 65-8*int64(size))
		e.gopImm(code.Shr, 8, r, 65-8*int64(size))
		e.gop(code.Mov, 8, exp, r)
		e.gopImm(code.Shr, 8, exp, frac)
		e.emit(code.Inst{Op: code.Test, W: 8, A: exp, B: exp})
		e.jcc(code.CondNE, normal)
		e.gopImm(code.Mov, 4, exp, 1)
		e.jump(end)
		e.bind(normal)
		e.gopImm(code.Shl, 8, r, 64-frac)
		e.gopImm(code.Shr, 8, r, 64-frac)
		e.gopImm(code.Mov, 8, code.RAX, 1<<frac)
		e.gop(code.Or, 8, r, code.RAX)
		e.bind(end)
	}
	parts(r, exp, a)
	parts(by, byExp, b)
	e.cmpImm(exp, most) // infinite, or no number
	e.jcc(code.CondE, nan)
	e.jumpIfZero(by, nan)
	infinite := e.label()
	e.cmpImm(byExp, most)
	e.jcc(code.CondE, infinite)
	same := e.label()
	e.emit(code.Inst{Op: code.Cmp, W: 8, A: exp, B: byExp})
	e.jcc(code.CondL, infinite) // |a| is less than |b|
	// The fraction of a denormal has fewer bits, so that the first time there may be much to take away.
	e.gop(code.Mov, 8, code.RAX, r)
	e.gopImm(code.Mov, 4, code.RDX, 0)
	e.emit(code.Inst{Op: code.Div, W: 8, A: by})
	e.gop(code.Mov, 8, r, code.RDX)
	again := e.label()
	e.f.Loop()
	e.bind(again)
	e.emit(code.Inst{Op: code.Cmp, W: 8, A: exp, B: byExp})
	e.jcc(code.CondE, same)
	e.gopImm(code.Shl, 8, r, 1)
	e.gopImm(code.Sub, 8, exp, 1)
	e.emit(code.Inst{Op: code.Cmp, W: 8, A: r, B: by})
	e.jcc(code.CondB, again)
	e.gop(code.Sub, 8, r, by)
	e.jump(again)
	e.f.EndLoop()
	e.bind(same)
	zero, put := e.label(), e.label()
	e.jumpIfZero(r, zero)
	// The leading one goes to its place, as far as the exponent allows.
	shift, room := e.reg(code.GPR), e.reg(code.GPR)
	e.emit(code.Inst{Op: code.LZCnt, W: 8, Dst: shift, A: r})
	e.gopImm(code.Sub, 8, shift, 63-frac)
	e.gop(code.Mov, 8, room, exp)
	e.gopImm(code.Sub, 8, room, 1)
	e.emit(code.Inst{Op: code.Cmp, W: 8, A: shift, B: room})
	e.emit(code.Inst{Op: code.CMov, W: 8, Cond: code.CondG, Dst: shift, A: room})
	shifted := e.reg(code.GPR)
	e.emit(code.Inst{Op: code.ShlX, W: 8, Dst: shifted, A: r, B: shift})
	e.gop(code.Sub, 8, exp, shift)
	e.gopImm(code.Sub, 8, exp, 1) // the leading one, if there is one, adds 1
	e.gopImm(code.Shl, 8, exp, frac)
	e.gop(code.Mov, 8, r, shifted)
	e.gop(code.Add, 8, r, exp)
	e.jump(put)
	e.bind(zero)
	e.gopImm(code.Mov, 4, r, 0)
	e.bind(put)
	e.gopImm(code.Shr, size, sign, 8*int64(size)-1)
	e.gopImm(code.Shl, size, sign, 8*int64(size)-1)
	e.gop(code.Or, 8, r, sign)
	e.jump(done)
	e.bind(nan)
	e.gopImm(code.Mov, 8, r, most<<frac|1<<(frac-1))
	e.jump(done)
	e.bind(infinite) // b is no number, or a is the result
	e.gop(code.Mov, 8, r, sign)
	e.cmpImm(byExp, most)
	e.jcc(code.CondNE, over)
	e.gopImm(code.Mov, 8, code.RAX, 1<<frac)
	e.emit(code.Inst{Op: code.Cmp, W: 8, A: by, B: code.RAX})
	e.jcc(code.CondNE, nan)
	e.bind(over)
	e.bind(done)
	e.storeReg(size, result, r)
}
