package jit

import (
	"github.com/mlxlua/mlxlua/metal/jit/amd64"
	"github.com/mlxlua/mlxlua/metal/jit/lanes"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// Atomics act lane by lane, in the order of lanes.

// atomic selects an AtomicLoad, AtomicStore, AtomicRMW or AtomicCAS.
func (s *selector) atomic(i *kir.Instr) {
	t := i.Type
	if i.Op == kir.AtomicStore {
		t = i.Args[1].Type
	}
	x := s.newAccess(i, t)
	used := i.Op != kir.AtomicStore && (s.info.NeedBase[i.ID] || s.info.NeedVec[i.ID])
	if !used && s.mergeable(x) {
		s.atomicMerged(x)
		return
	}
	if i.Op != kir.AtomicLoad {
		s.laneValues(t, s.laneVal(i.Args[1]), scratchVal)
	}
	if i.Op == kir.AtomicCAS {
		s.laneValues(t, s.laneVal(i.Args[2]), scratchVal2)
	}
	k := subroutine{kind: subAtomic, t: t, size: int(x.size), op: i.Op, mode: i.Mode}
	if s.atomicAt(x, k) {
		s.f.ColdBegin()
		s.bind(x.cold)
		s.bind(x.slow)
		s.lanePointers(x)
		s.activeBits(amd64.RAX)
		s.laneCallBits(x, k)
		s.jump(x.done)
		s.f.ColdEnd()
	} else {
		s.lanePointers(x)
		s.activeBits(amd64.RAX)
		s.laneCallBits(x, k)
	}
	s.bind(x.done)
	if used {
		s.result(i, s.laneResult(x))
	}
}

// atomicAt does an atomic where the range of all lanes can be checked at once. It reports whether it could.
func (s *selector) atomicAt(x *access, k subroutine) bool {
	a := x.a
	if a.Object == 0 || a.Mode == lanes.AccessDynamic || a.Mode == lanes.AccessGather && !s.gathers(x, false) {
		return false
	}
	if a.Mode == lanes.AccessOffsets {
		for _, o := range a.Offsets[:s.group] {
			if int64(o)%x.size != 0 {
				return false
			}
		}
	}
	var m amd64.Mem
	idx := make([]amd64.R, s.parts)
	if a.Mode == lanes.AccessGather {
		if a.Index.Scale%x.size != 0 {
			return false
		}
		m, idx, _ = s.gathered(x, false)
		m, idx = s.inBytes(m, idx)
	} else {
		var offs []int32
		m, offs = s.patternPlace(x)
		for p := range idx {
			idx[p] = s.vopM(amd64.VMovUPS, 0, s.table(offs[p*s.per:(p+1)*s.per], 4))
		}
	}
	at := s.lea(m)
	if x.size > 1 {
		s.emit(amd64.Inst{Op: amd64.Test, W: 4, A: at, Imm: x.size - 1})
		s.jcc(amd64.CondNE, x.slow)
	}
	s.storeR(8, s.scratchMem(wordAddr), at)
	k.kind = subAtomicAt
	s.callAt(k, idx)
	return true
}

// emitAt emits subAtomicAt and subStoreAt for the lanes in RAX. Only RAX, RCX, RDX, R10 and R11 change.
func (s *selector) emitAt(k subroutine) {
	const mask, lane, ptr = amd64.RAX, amd64.RCX, amd64.R10
	again := s.label()
	s.storeR(8, s.scratchMem(wordSI), amd64.RSI)
	s.storeR(8, s.scratchMem(wordDI), amd64.RDI)
	idx := s.scratchMem(wordIndex)
	idx.Index, idx.Scale = lane, 4
	s.bind(again)
	s.emit(amd64.Inst{Op: amd64.TZCnt, W: 4, Dst: lane, A: mask})
	s.loadR(4, ptr, idx)
	s.gopM(amd64.Add, 8, ptr, s.scratchMem(wordAddr))
	if k.kind == subStoreAt {
		s.followStore(k.size, s.valueSlot(k, lane), amd64.Mem{Base: ptr})
	} else {
		s.followAtomic(k, s.valueSlot(k, lane))
	}
	s.emit(amd64.Inst{Op: amd64.BlsR, W: 4, Dst: mask, A: mask})
	s.emit(amd64.Inst{Op: amd64.Test, W: 4, A: mask, B: mask})
	s.jcc(amd64.CondNE, again)
	s.loadR(8, amd64.RSI, s.scratchMem(wordSI))
	s.loadR(8, amd64.RDI, s.scratchMem(wordDI))
	s.emit(amd64.Inst{Op: amd64.Jmp, A: amd64.RDX})
}

// mergeable reports whether the lanes' operations on one address may be one, as their results are not used: integer
// operations whose order does not matter.
func (s *selector) mergeable(x *access) bool {
	if x.i.Op != kir.AtomicRMW || x.t.IsFloat() || x.a.Object == 0 || x.a.Mode != lanes.AccessUniform {
		return false
	}
	switch x.i.Mode {
	case kir.ModeAdd, kir.ModeSub, kir.ModeAnd, kir.ModeOr, kir.ModeXor, kir.ModeMin, kir.ModeMax:
		return true
	}
	return false
}

// atomicMerged combines the lanes' values and does one operation.
func (s *selector) atomicMerged(x *access) {
	arg := x.i.Args[1]
	s.checkWraps(x.a, x.slow)
	s.check(x.a.Object, x.l, x.size, x.cold)
	at := s.lea(s.place(x, 0))
	s.emit(amd64.Inst{Op: amd64.Test, W: 4, A: at, Imm: x.size - 1})
	s.jcc(amd64.CondNE, x.slow)
	w := uint8(x.size)
	k := subroutine{kind: subAtomic, t: x.t, size: int(x.size), op: kir.AtomicRMW, mode: x.i.Mode}
	// The lanes' values into one.
	sum := s.reg(amd64.GPR)
	if s.info.Patterns[arg.ID].Kind == lanes.Uniform {
		v := s.base(arg)
		s.activeBits(amd64.RAX)
		s.timesLanes(k, w, sum, v)
	} else {
		s.laneValues(x.t, s.laneVal(arg), scratchVal)
		s.activeBits(amd64.RAX)
		s.mergeLanes(k, w, sum)
	}
	m := amd64.Mem{Base: at}
	switch k.mode {
	case kir.ModeAdd:
		s.emit(amd64.Inst{Op: amd64.LockAdd, W: w, Mem: m, A: sum})
	case kir.ModeSub:
		s.emit(amd64.Inst{Op: amd64.LockSub, W: w, Mem: m, A: sum})
	case kir.ModeAnd:
		s.emit(amd64.Inst{Op: amd64.LockAnd, W: w, Mem: m, A: sum})
	case kir.ModeOr:
		s.emit(amd64.Inst{Op: amd64.LockOr, W: w, Mem: m, A: sum})
	case kir.ModeXor:
		s.emit(amd64.Inst{Op: amd64.LockXor, W: w, Mem: m, A: sum})
	default:
		again, next := s.label(), s.reg(amd64.GPR)
		s.loadR(w, amd64.RAX, m)
		s.f.Loop()
		s.bind(again)
		s.gop(amd64.Mov, 8, next, amd64.RAX)
		s.take(k, w, next, sum)
		s.emit(amd64.Inst{Op: amd64.LockCmpXchg, W: w, Mem: m, A: next})
		s.jcc(amd64.CondNE, again)
		s.f.EndLoop()
	}
	s.f.ColdBegin()
	s.bind(x.cold)
	s.bind(x.slow)
	s.lanePointers(x)
	s.laneValues(x.t, s.laneVal(arg), scratchVal)
	s.activeBits(amd64.RAX)
	s.laneCallBits(x, k)
	s.jump(x.done)
	s.f.ColdEnd()
	s.bind(x.done)
}

// timesLanes sets sum to what all lanes in RAX (at least one) make of one value.
func (s *selector) timesLanes(k subroutine, w uint8, sum, v amd64.R) {
	switch k.mode {
	case kir.ModeAdd, kir.ModeSub, kir.ModeXor:
		s.emit(amd64.Inst{Op: amd64.PopCnt, W: 4, Dst: sum, A: amd64.RAX})
		if k.mode == kir.ModeXor {
			s.gopI(amd64.And, 4, sum, 1)
		}
		s.gop(amd64.IMul, w, sum, v)
	default:
		s.gop(amd64.Mov, 8, sum, v)
	}
}

// mergeLanes sets sum to what the values of the lanes in RAX come to.
func (s *selector) mergeLanes(k subroutine, w uint8, sum amd64.R) {
	again, over := s.label(), s.label()
	slot := s.valueSlot(k, amd64.RCX)
	s.emit(amd64.Inst{Op: amd64.TZCnt, W: 4, Dst: amd64.RCX, A: amd64.RAX})
	s.loadR(w, sum, slot)
	s.f.Loop()
	s.bind(again)
	s.emit(amd64.Inst{Op: amd64.BlsR, W: 4, Dst: amd64.RAX, A: amd64.RAX})
	s.emit(amd64.Inst{Op: amd64.Test, W: 4, A: amd64.RAX, B: amd64.RAX})
	s.jcc(amd64.CondE, over)
	s.emit(amd64.Inst{Op: amd64.TZCnt, W: 4, Dst: amd64.RCX, A: amd64.RAX})
	s.loadR(w, amd64.RDX, slot)
	s.take(k, w, sum, amd64.RDX)
	s.jump(again)
	s.f.EndLoop()
	s.bind(over)
}

// take emits dst = dst op v; a Sub adds.
func (s *selector) take(k subroutine, w uint8, dst, v amd64.R) {
	switch k.mode {
	case kir.ModeAdd, kir.ModeSub:
		s.gop(amd64.Add, w, dst, v)
	case kir.ModeAnd:
		s.gop(amd64.And, w, dst, v)
	case kir.ModeOr:
		s.gop(amd64.Or, w, dst, v)
	case kir.ModeXor:
		s.gop(amd64.Xor, w, dst, v)
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
		s.emit(amd64.Inst{Op: amd64.Cmp, W: w, A: v, B: dst})
		s.emit(amd64.Inst{Op: amd64.CMov, W: w, Cond: c, Dst: dst, A: v})
	}
}

// followAtomic emits the operation of one lane: its address is in R10, its value in slot, where the result goes.
// RCX is the lane, RAX the lanes to do, RSI the description, RDX where to return to: these are kept. RDI and R11
// are free.
func (s *selector) followAtomic(k subroutine, slot amd64.Mem) {
	const v = amd64.RDI
	w, m := uint8(max(k.size, 4)), amd64.Mem{Base: amd64.R10} // a byte's slot has zeros above it, which stay
	switch {
	case k.op == kir.AtomicLoad:
		s.followLoad(k.size, v, m, slot)
		return
	case k.op == kir.AtomicStore || k.op == kir.AtomicRMW && k.mode == kir.ModeExchange:
		s.loadR(w, v, slot)
		s.emit(amd64.Inst{Op: amd64.Xchg, W: uint8(k.size), Mem: m, Dst: v})
		s.storeR(w, slot, v)
		return
	case k.op == kir.AtomicRMW && !k.t.IsFloat() && (k.mode == kir.ModeAdd || k.mode == kir.ModeSub):
		s.loadR(w, v, slot)
		if k.mode == kir.ModeSub {
			s.emit(amd64.Inst{Op: amd64.Neg, W: w, Dst: v})
		}
		s.emit(amd64.Inst{Op: amd64.LockXAdd, W: w, Mem: m, Dst: v})
		s.storeR(w, slot, v)
		return
	}
	s.storeR(8, s.scratchMem(wordMask), amd64.RAX)
	if k.op == kir.AtomicCAS {
		want := slot
		slot2 := slot
		slot2.Disp += scratchVal2 - scratchVal
		s.loadR(w, amd64.RAX, want)
		s.loadR(w, v, slot2)
		s.emit(amd64.Inst{Op: amd64.LockCmpXchg, W: uint8(k.size), Mem: m, A: v})
	} else {
		again := s.label()
		s.loadR(w, amd64.RAX, m)
		s.bind(again)
		s.combine(k, w, slot)
		s.emit(amd64.Inst{Op: amd64.LockCmpXchg, W: w, Mem: m, A: v})
		s.jcc(amd64.CondNE, again)
	}
	s.storeR(w, slot, amd64.RAX)
	s.loadR(8, amd64.RAX, s.scratchMem(wordMask))
}

// combine emits RDI = RAX op slot; RAX stays.
func (s *selector) combine(k subroutine, w uint8, slot amd64.Mem) {
	const old, v, arg = amd64.RAX, amd64.RDI, amd64.R11
	if k.t == kir.F32 {
		s.combineFloat(k, slot)
		return
	}
	s.loadR(w, arg, slot)
	s.gop(amd64.Mov, 8, v, old)
	s.take(k, w, v, arg)
}

// combineFloat emits RDI = RAX op slot for F32; RAX stays.
func (s *selector) combineFloat(k subroutine, slot amd64.Mem) {
	const old, v, arg = amd64.RAX, amd64.RDI, amd64.R11
	if k.mode == kir.ModeAdd || k.mode == kir.ModeSub {
		x := amd64.V(15) // the allocator's own with AVX2, and saved with AVX-512
		if s.level == amd64.AVX512 {
			x = amd64.V(31)
		}
		op := amd64.VAddSS
		if k.mode == kir.ModeSub {
			op = amd64.VSubSS
		}
		s.emit(amd64.Inst{Op: amd64.VMovD, W: 16, Dst: x, A: old})
		s.emit(amd64.Inst{Op: op, W: 16, Dst: x, A: x, Mem: slot})
		s.emit(amd64.Inst{Op: amd64.VMovD, W: 16, Dst: v, A: x})
		return
	}
	// The number beats a NaN, and numbers are compared as integers in the order of floats: -0 is less than +0.
	s.storeR(8, s.scratchMem(wordLane), amd64.RCX)
	s.storeR(8, s.scratchMem(wordDesc), amd64.RSI)
	done, useOld, useArg := s.label(), s.label(), s.label()
	s.loadR(4, arg, slot)
	nan := func(r amd64.R, to amd64.Label) {
		s.emit(amd64.Inst{Op: amd64.Lea, W: 4, Dst: v, Mem: amd64.Mem{Base: r, Index: r, Scale: 1}})
		s.emit(amd64.Inst{Op: amd64.Cmp, W: 4, A: v, Imm: int64(int32(-0x1000000))})
		s.jcc(amd64.CondA, to)
	}
	nan(old, useArg)
	nan(arg, useOld)
	key := func(dst, r amd64.R) { // r, with the other bits flipped if it is negative
		s.gop(amd64.Mov, 4, dst, r)
		s.gopI(amd64.Sar, 4, dst, 31)
		s.gopI(amd64.Shr, 4, dst, 1)
		s.gop(amd64.Xor, 4, dst, r)
	}
	key(amd64.RCX, old)
	key(amd64.RSI, arg)
	c := amd64.CondL
	if k.mode == kir.ModeMax {
		c = amd64.CondG
	}
	s.emit(amd64.Inst{Op: amd64.Cmp, W: 4, A: amd64.RSI, B: amd64.RCX})
	s.jcc(c, useArg)
	s.bind(useOld)
	s.gop(amd64.Mov, 4, v, old)
	s.jump(done)
	s.bind(useArg)
	s.gop(amd64.Mov, 4, v, arg)
	s.bind(done)
	s.loadR(8, amd64.RCX, s.scratchMem(wordLane))
	s.loadR(8, amd64.RSI, s.scratchMem(wordDesc))
}
