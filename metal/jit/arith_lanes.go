package jit

import (
	"math"

	"github.com/mlxlua/mlxlua/metal/jit/amd64"
)

// What no vector instruction does: lane by lane, through the block's scratch.

// laneLoop runs body n times with a register that counts 0, step, 2*step, ... The body may change RAX, RCX and RDX,
// and must not jump out.
func (s *selector) laneLoop(n, step int, body func(at amd64.R)) {
	at, again := s.reg(amd64.GPR), s.label()
	s.emit(amd64.Inst{Op: amd64.Mov, W: 4, Dst: at, Imm: 0})
	s.f.Loop()
	s.bind(again)
	body(at)
	s.emit(amd64.Inst{Op: amd64.Add, W: 4, Dst: at, Imm: int64(step)})
	s.emit(amd64.Inst{Op: amd64.Cmp, W: 4, A: at, Imm: int64(n * step)})
	s.jcc(amd64.CondB, again)
	s.f.EndLoop()
}

// scratchMem is a place in the block's scratch.
func (s *selector) scratchMem(off int) amd64.Mem { return block(int32(s.lay.scratch + off)) }

// perLane computes a binary operation on one register by code that handles one lane of size bytes in memory.
func (x lane) perLane(size int, a, b amd64.R, body func(a, b, result amd64.Mem)) amd64.R {
	x.emit(amd64.Inst{Op: amd64.VMovUPS, W: x.w, Mem: x.scratchMem(scratchPtr), A: a})
	x.emit(amd64.Inst{Op: amd64.VMovUPS, W: x.w, Mem: x.scratchMem(scratchVal), A: b})
	d := x.reg(amd64.Vec)
	if x.splat {
		body(x.scratchMem(scratchPtr), x.scratchMem(scratchVal), x.scratchMem(scratchVal2))
		x.emit(amd64.Inst{Op: by(size == 8, amd64.VPBroadcastD, amd64.VPBroadcastQ), W: x.w, Dst: d,
			Mem: x.scratchMem(scratchVal2)})
		return d
	}
	x.laneLoop(int(x.w)/size, size, func(at amd64.R) {
		mem := func(off int) amd64.Mem {
			m := x.scratchMem(off)
			m.Index, m.Scale = at, 1
			return m
		}
		body(mem(scratchPtr), mem(scratchVal), mem(scratchVal2))
	})
	x.emit(amd64.Inst{Op: amd64.VMovUPS, W: x.w, Dst: d, Mem: x.scratchMem(scratchVal2)})
	return d
}

// fmod computes C's fmod. If all quotients are small, a - trunc(a/b)*b is exact and right but for one b, which a
// quotient that was rounded up to an integer has taken too much; else the x87's instruction does it.
func (x lane) fmod(a, b amd64.R, big bool) amd64.R {
	limit := math.Float32frombits(0x4a800000) // 2^22
	bound := float64(limit)
	if big {
		bound = 1 << 50
	}
	sign := konst(signBit(big))
	q := x.toIntegral(x.op2(by(big, amd64.VDivPS, amd64.VDivPD), a, b), roundZero, big)
	size := x.and(q, konst(signBit(big)-1), big)
	absB := x.and(b, konst(signBit(big)-1), big)
	d := x.reg(amd64.Vec)
	x.moveTo(d, a, 0)
	x.emit(amd64.Inst{Op: by(big, amd64.VFNMAdd231PS, amd64.VFNMAdd231PD), W: x.w, Dst: d, A: q, B: b})
	signA := x.and(a, sign, big)
	r := x.xor(d, inReg(signA), big) // now the remainder of |a|
	add := by(big, amd64.VAddPS, amd64.VAddPD)
	slow, back := x.label(), x.label()
	maxLane, inf := floatLane(bound, big), floatLane(math.Inf(1), big)
	if x.level == amd64.AVX512 {
		cmp := by(big, amd64.VCmpPSK, amd64.VCmpPDK)
		k := x.cmpK(cmp, r, x.load(0, big), cmpLt)
		x.masked(add, r, r, absB, k)
		x.moveTo(d, x.or(x.and(r, konst(signBit(big)-1), big), inReg(signA), big), 0)
		small, finite := x.reg(amd64.Mask), x.reg(amd64.Mask)
		x.emit(amd64.Inst{Op: cmp, W: x.w, Dst: small, A: size, Mem: x.constMem(maxLane, big), Imm: cmpLt})
		x.emit(amd64.Inst{Op: cmp, W: x.w, Dst: finite, A: absB, Mem: x.constMem(inf, big), Imm: cmpLt, KM: small})
		w := uint8(2)
		if big {
			w = 1
		}
		x.emit(amd64.Inst{Op: amd64.KOrTest, W: w, A: finite, B: finite})
		x.jcc(amd64.CondAE, slow) // no carry: not all ones
	} else {
		cmp := by(big, amd64.VCmpPS, amd64.VCmpPD)
		less := x.op2i(cmp, r, x.load(0, big), cmpLt)
		r = x.op2(add, r, x.and(less, inReg(absB), big))
		x.moveTo(d, x.or(x.and(r, konst(signBit(big)-1), big), inReg(signA), big), 0)
		small, finite := x.reg(amd64.Vec), x.reg(amd64.Vec)
		x.emit(amd64.Inst{Op: cmp, W: x.w, Dst: small, A: size, Mem: x.constMem(maxLane, big), Imm: cmpLt})
		x.emit(amd64.Inst{Op: cmp, W: x.w, Dst: finite, A: absB, Mem: x.constMem(inf, big), Imm: cmpLt})
		bits, all := x.reg(amd64.GPR), int64(0xff)
		if big {
			all = 0xf
		}
		x.emit(amd64.Inst{Op: by(big, amd64.VMovMskPS, amd64.VMovMskPD), W: x.w, Dst: bits,
			A: x.and(small, inReg(finite), big)})
		x.emit(amd64.Inst{Op: amd64.Cmp, W: 4, A: bits, Imm: all})
		x.jcc(amd64.CondNE, slow)
	}
	x.bind(back)
	x.f.ColdBegin()
	x.bind(slow)
	x.moveTo(d, x.fprem(a, b, big), 0)
	x.jump(back)
	x.f.ColdEnd()
	return d
}

// fprem computes fmod with the x87, whose instruction does up to 63 bits of a quotient at a time.
func (x lane) fprem(a, b amd64.R, big bool) amd64.R {
	size := uint8(4)
	if big {
		size = 8
	}
	return x.perLane(int(size), a, b, func(a, b, result amd64.Mem) {
		again := x.label()
		x.emit(amd64.Inst{Op: amd64.FLd, W: size, Mem: b})
		x.emit(amd64.Inst{Op: amd64.FLd, W: size, Mem: a})
		x.bind(again)
		x.emit(amd64.Inst{Op: amd64.FPRem})
		x.emit(amd64.Inst{Op: amd64.FNStSW})
		x.emit(amd64.Inst{Op: amd64.Test, W: 4, A: amd64.RAX, Imm: 0x400}) // C2: not done yet
		x.jcc(amd64.CondNE, again)
		x.emit(amd64.Inst{Op: amd64.FStP, W: size, Mem: result})
		x.emit(amd64.Inst{Op: amd64.FPop})
	})
}
