package choose

import (
	"math"

	"github.com/mlxlua/mlxlua/metal/jit/code"
)

// What no vector instruction does: lane by lane, through the block's scratch.

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

// fprem computes fmod with the x87, whose instruction does up to 63 bits of a quotient at a time.
func (x floats) fprem(a, b code.R, big bool) code.R {
	size := uint8(4)
	if big {
		size = 8
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
