package choose

import (
	"github.com/mlxlua/mlxlua/metal/jit/code"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// take emits dst = dst op v; a Sub adds.
func (s *subroutines) take(k subroutine, w uint8, dst, v code.R) {
	switch k.mode {
	case kir.ModeAdd, kir.ModeSub:
		s.e.gop(code.Add, w, dst, v)
	case kir.ModeAnd:
		s.e.gop(code.And, w, dst, v)
	case kir.ModeOr:
		s.e.gop(code.Or, w, dst, v)
	case kir.ModeXor:
		s.e.gop(code.Xor, w, dst, v)
	default:
		c := code.CondB
		switch {
		case k.mode == kir.ModeMin && k.t.IsSigned():
			c = code.CondL
		case k.mode == kir.ModeMax && k.t.IsSigned():
			c = code.CondG
		case k.mode == kir.ModeMax:
			c = code.CondA
		}
		s.e.emit(code.Inst{Op: code.Cmp, W: w, A: v, B: dst})
		s.e.emit(code.Inst{Op: code.CMov, W: w, Cond: c, Dst: dst, A: v})
	}
}

// followAtomic emits the operation of one lane: its address is in R10, its value in slot, where the result goes.
// RCX is the lane, RAX the lanes to do, RSI the description, RDX where to return to: these are kept. RDI and R11
// are free.
func (s *subroutines) followAtomic(k subroutine, slot code.Mem) {
	const v = code.RDI
	w, m := uint8(max(k.size, 4)), code.Mem{Base: code.R10} // a byte's slot has zeros above it, which stay
	switch {
	case k.op == kir.AtomicLoad:
		s.followLoad(k.size, v, m, slot)
		return
	case k.op == kir.AtomicStore || k.op == kir.AtomicRMW && k.mode == kir.ModeExchange:
		s.e.loadReg(w, v, slot)
		s.e.emit(code.Inst{Op: code.Xchg, W: uint8(k.size), Mem: m, Dst: v})
		s.e.storeReg(w, slot, v)
		return
	case k.op == kir.AtomicRMW && !k.t.IsFloat() && (k.mode == kir.ModeAdd || k.mode == kir.ModeSub):
		s.e.loadReg(w, v, slot)
		if k.mode == kir.ModeSub {
			s.e.emit(code.Inst{Op: code.Neg, W: w, Dst: v})
		}
		s.e.emit(code.Inst{Op: code.LockXAdd, W: w, Mem: m, Dst: v})
		s.e.storeReg(w, slot, v)
		return
	}
	s.e.storeReg(8, s.e.scratchMem(wordMask), code.RAX)
	if k.op == kir.AtomicCAS {
		want := slot
		slot2 := slot
		slot2.Disp += scratchVal2 - scratchVal
		s.e.loadReg(w, code.RAX, want)
		s.e.loadReg(w, v, slot2)
		s.e.emit(code.Inst{Op: code.LockCmpXchg, W: uint8(k.size), Mem: m, A: v})
	} else {
		again := s.e.label()
		s.e.loadReg(w, code.RAX, m)
		s.e.bind(again)
		s.combine(k, w, slot)
		s.e.emit(code.Inst{Op: code.LockCmpXchg, W: w, Mem: m, A: v})
		s.e.jcc(code.CondNE, again)
	}
	s.e.storeReg(w, slot, code.RAX)
	s.e.loadReg(8, code.RAX, s.e.scratchMem(wordMask))
}

// combine emits RDI = RAX op slot; RAX stays.
func (s *subroutines) combine(k subroutine, w uint8, slot code.Mem) {
	const old, v, arg = code.RAX, code.RDI, code.R11
	if k.t == kir.F32 {
		s.combineFloat(k, slot)
		return
	}
	s.e.loadReg(w, arg, slot)
	s.e.gop(code.Mov, 8, v, old)
	s.take(k, w, v, arg)
}

// combineFloat emits RDI = RAX op slot for F32; RAX stays.
func (s *subroutines) combineFloat(k subroutine, slot code.Mem) {
	const old, v, arg = code.RAX, code.RDI, code.R11
	if k.mode == kir.ModeAdd || k.mode == kir.ModeSub {
		x := code.V(15) // the allocator's own with AVX2, and saved with AVX-512
		if s.e.avx512() {
			x = code.V(31)
		}
		op := code.VAddSS
		if k.mode == kir.ModeSub {
			op = code.VSubSS
		}
		s.e.emit(code.Inst{Op: code.VMovD, W: 16, Dst: x, A: old})
		s.e.emit(code.Inst{Op: op, W: 16, Dst: x, A: x, Mem: slot})
		s.e.emit(code.Inst{Op: code.VMovD, W: 16, Dst: v, A: x})
		return
	}
	// The number beats a NaN, and numbers are compared as integers in the order of floats: -0 is less than +0.
	s.e.storeReg(8, s.e.scratchMem(wordLane), code.RCX)
	s.e.storeReg(8, s.e.scratchMem(wordDesc), code.RSI)
	done, useOld, useArg := s.e.label(), s.e.label(), s.e.label()
	s.e.loadReg(4, arg, slot)
	nan := func(r code.R, to code.Label) {
		s.e.emit(code.Inst{Op: code.Lea, W: 4, Dst: v, Mem: code.Mem{Base: r, Index: r, Scale: 1}})
		s.e.emit(code.Inst{Op: code.Cmp, W: 4, A: v, Imm: int64(int32(-0x1000000))})
		s.e.jcc(code.CondA, to)
	}
	nan(old, useArg)
	nan(arg, useOld)
	key := func(dst, r code.R) { // r, with the other bits flipped if it is negative
		s.e.gop(code.Mov, 4, dst, r)
		s.e.gopImm(code.Sar, 4, dst, 31)
		s.e.gopImm(code.Shr, 4, dst, 1)
		s.e.gop(code.Xor, 4, dst, r)
	}
	key(code.RCX, old)
	key(code.RSI, arg)
	c := code.CondL
	if k.mode == kir.ModeMax {
		c = code.CondG
	}
	s.e.emit(code.Inst{Op: code.Cmp, W: 4, A: code.RSI, B: code.RCX})
	s.e.jcc(c, useArg)
	s.e.bind(useOld)
	s.e.gop(code.Mov, 4, v, old)
	s.e.jump(done)
	s.e.bind(useArg)
	s.e.gop(code.Mov, 4, v, arg)
	s.e.bind(done)
	s.e.loadReg(8, code.RCX, s.e.scratchMem(wordLane))
	s.e.loadReg(8, code.RSI, s.e.scratchMem(wordDesc))
}
