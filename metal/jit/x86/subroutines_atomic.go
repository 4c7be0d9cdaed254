package x86

import (
	"github.com/mlxlua/mlxlua/metal/jit/amd64"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// take emits dst = dst op v; a Sub adds.
func (s *subroutines) take(k subroutine, w uint8, dst, v amd64.R) {
	switch k.mode {
	case kir.ModeAdd, kir.ModeSub:
		s.e.gop(amd64.Add, w, dst, v)
	case kir.ModeAnd:
		s.e.gop(amd64.And, w, dst, v)
	case kir.ModeOr:
		s.e.gop(amd64.Or, w, dst, v)
	case kir.ModeXor:
		s.e.gop(amd64.Xor, w, dst, v)
	default:
		c := amd64.CondB
		switch {
		case k.mode == kir.ModeMin && k.t.IsSigned():
			c = amd64.CondL
		case k.mode == kir.ModeMax && k.t.IsSigned():
			c = amd64.CondG
		case k.mode == kir.ModeMax:
			c = amd64.CondA
		}
		s.e.emit(amd64.Inst{Op: amd64.Cmp, W: w, A: v, B: dst})
		s.e.emit(amd64.Inst{Op: amd64.CMov, W: w, Cond: c, Dst: dst, A: v})
	}
}

// followAtomic emits the operation of one lane: its address is in R10, its value in slot, where the result goes.
// RCX is the lane, RAX the lanes to do, RSI the description, RDX where to return to: these are kept. RDI and R11
// are free.
func (s *subroutines) followAtomic(k subroutine, slot amd64.Mem) {
	const v = amd64.RDI
	w, m := uint8(max(k.size, 4)), amd64.Mem{Base: amd64.R10} // a byte's slot has zeros above it, which stay
	switch {
	case k.op == kir.AtomicLoad:
		s.followLoad(k.size, v, m, slot)
		return
	case k.op == kir.AtomicStore || k.op == kir.AtomicRMW && k.mode == kir.ModeExchange:
		s.e.loadReg(w, v, slot)
		s.e.emit(amd64.Inst{Op: amd64.Xchg, W: uint8(k.size), Mem: m, Dst: v})
		s.e.storeReg(w, slot, v)
		return
	case k.op == kir.AtomicRMW && !k.t.IsFloat() && (k.mode == kir.ModeAdd || k.mode == kir.ModeSub):
		s.e.loadReg(w, v, slot)
		if k.mode == kir.ModeSub {
			s.e.emit(amd64.Inst{Op: amd64.Neg, W: w, Dst: v})
		}
		s.e.emit(amd64.Inst{Op: amd64.LockXAdd, W: w, Mem: m, Dst: v})
		s.e.storeReg(w, slot, v)
		return
	}
	s.e.storeReg(8, s.e.scratchMem(wordMask), amd64.RAX)
	if k.op == kir.AtomicCAS {
		want := slot
		slot2 := slot
		slot2.Disp += scratchVal2 - scratchVal
		s.e.loadReg(w, amd64.RAX, want)
		s.e.loadReg(w, v, slot2)
		s.e.emit(amd64.Inst{Op: amd64.LockCmpXchg, W: uint8(k.size), Mem: m, A: v})
	} else {
		again := s.e.label()
		s.e.loadReg(w, amd64.RAX, m)
		s.e.bind(again)
		s.combine(k, w, slot)
		s.e.emit(amd64.Inst{Op: amd64.LockCmpXchg, W: w, Mem: m, A: v})
		s.e.jcc(amd64.CondNE, again)
	}
	s.e.storeReg(w, slot, amd64.RAX)
	s.e.loadReg(8, amd64.RAX, s.e.scratchMem(wordMask))
}

// combine emits RDI = RAX op slot; RAX stays.
func (s *subroutines) combine(k subroutine, w uint8, slot amd64.Mem) {
	const old, v, arg = amd64.RAX, amd64.RDI, amd64.R11
	if k.t == kir.F32 {
		s.combineFloat(k, slot)
		return
	}
	s.e.loadReg(w, arg, slot)
	s.e.gop(amd64.Mov, 8, v, old)
	s.take(k, w, v, arg)
}

// combineFloat emits RDI = RAX op slot for F32; RAX stays.
func (s *subroutines) combineFloat(k subroutine, slot amd64.Mem) {
	const old, v, arg = amd64.RAX, amd64.RDI, amd64.R11
	if k.mode == kir.ModeAdd || k.mode == kir.ModeSub {
		x := amd64.V(15) // the allocator's own with AVX2, and saved with AVX-512
		if s.e.avx512() {
			x = amd64.V(31)
		}
		op := amd64.VAddSS
		if k.mode == kir.ModeSub {
			op = amd64.VSubSS
		}
		s.e.emit(amd64.Inst{Op: amd64.VMovD, W: 16, Dst: x, A: old})
		s.e.emit(amd64.Inst{Op: op, W: 16, Dst: x, A: x, Mem: slot})
		s.e.emit(amd64.Inst{Op: amd64.VMovD, W: 16, Dst: v, A: x})
		return
	}
	// The number beats a NaN, and numbers are compared as integers in the order of floats: -0 is less than +0.
	s.e.storeReg(8, s.e.scratchMem(wordLane), amd64.RCX)
	s.e.storeReg(8, s.e.scratchMem(wordDesc), amd64.RSI)
	done, useOld, useArg := s.e.label(), s.e.label(), s.e.label()
	s.e.loadReg(4, arg, slot)
	nan := func(r amd64.R, to amd64.Label) {
		s.e.emit(amd64.Inst{Op: amd64.Lea, W: 4, Dst: v, Mem: amd64.Mem{Base: r, Index: r, Scale: 1}})
		s.e.emit(amd64.Inst{Op: amd64.Cmp, W: 4, A: v, Imm: int64(int32(-0x1000000))})
		s.e.jcc(amd64.CondA, to)
	}
	nan(old, useArg)
	nan(arg, useOld)
	key := func(dst, r amd64.R) { // r, with the other bits flipped if it is negative
		s.e.gop(amd64.Mov, 4, dst, r)
		s.e.gopImm(amd64.Sar, 4, dst, 31)
		s.e.gopImm(amd64.Shr, 4, dst, 1)
		s.e.gop(amd64.Xor, 4, dst, r)
	}
	key(amd64.RCX, old)
	key(amd64.RSI, arg)
	c := amd64.CondL
	if k.mode == kir.ModeMax {
		c = amd64.CondG
	}
	s.e.emit(amd64.Inst{Op: amd64.Cmp, W: 4, A: amd64.RSI, B: amd64.RCX})
	s.e.jcc(c, useArg)
	s.e.bind(useOld)
	s.e.gop(amd64.Mov, 4, v, old)
	s.e.jump(done)
	s.e.bind(useArg)
	s.e.gop(amd64.Mov, 4, v, arg)
	s.e.bind(done)
	s.e.loadReg(8, amd64.RCX, s.e.scratchMem(wordLane))
	s.e.loadReg(8, amd64.RSI, s.e.scratchMem(wordDesc))
}
